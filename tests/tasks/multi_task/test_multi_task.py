"""Several labelled tasks with one encoder: the loss, the mixture of batches, runs, and the use of their folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines import build_engine

from dragoman import Predictor, describe, evaluate_labels, inspect, predict, train
from dragoman.base.errors import ConfigError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.cli.main import main
from dragoman.data.batches.labelled import LabelledBatch, collate_labelled
from dragoman.metrics.score import Score
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.labelled.objective import LabelObjective, class_loss, squared_error
from dragoman.tasks.multi_task.members import MultiTaskObjective, TaskBatch, TaskMember
from dragoman.tasks.multi_task.mixing import AnnealedConfig, ProportionalConfig, TogetherConfig
from dragoman.tasks.multi_task.validator import TasksValidator, TaskValidator
from dragoman.tasks.registry import open_job
from dragoman.tasks.train import load_recipe
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import Update
from dragoman.training.validation import Validation

STACK = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}
HEADS = {
    "kinds": {"kind": "classification", "labels": ["a", "b", "c"]},
    "scores": {"kind": "regression"},
    "words": {"kind": "tagging", "labels": ["O", "X"]},
}
WEIGHTS = {"kinds": 1.0, "scores": 0.3, "words": 2.0}
WORDS = ["Anna", "sees", "a", "red", "dog", "cat", "the", "park"]


def build() -> EncoderOnly:
    torch.manual_seed(1)
    head = {"kind": "several", "heads": {name: {**head, "dropout": 0.0} for name, head in HEADS.items()}}
    values = {"preset": None, "width": 8, "encoder": STACK, "dropout": 0.0, "head": head}
    return EncoderOnlyConfig.model_validate(values).build_for(VocabularySizes(20, 20)).double().eval()


def batches() -> dict[str, LabelledBatch]:
    """A batch of each task, with different numbers of labels."""
    rows = [[BOS, 5, 6, 7, EOS], [BOS, 8, EOS], [BOS, 9, 10, EOS]]
    tags = [[-100, 0, 1, 1, -100], [-100, 0, -100], [-100, 1, 0, -100]]
    return {
        "kinds": collate_labelled(rows, [0, 2, 1], [1, 1, 1], [0, 1, 2]),
        "scores": collate_labelled(rows[:2], [1.5, -2.0], [1, 1], [0, 1]),
        "words": collate_labelled(rows, tags, [3, 1, 2], [0, 1, 2]),
    }


LOSSES = {
    "kinds": LabelObjective(class_loss()),
    "scores": LabelObjective(squared_error),
    "words": LabelObjective(class_loss()),
}


def test_an_update_moves_by_the_weighted_sum_of_the_tasks_gradients(tmp_path: Path) -> None:
    model, own = build(), batches()

    def gradient(name: str) -> list[torch.Tensor | None]:
        batch = own[name]
        mean = LOSSES[name](model.of_task(name), batch).total / batch.target_tokens
        return list(torch.autograd.grad(mean, list(model.parameters()), allow_unused=True))

    separate = {name: gradient(name) for name in HEADS}
    means = {name: LOSSES[name](model.of_task(name), own[name]).total / own[name].target_tokens for name in HEADS}
    before = [parameter.detach().clone() for parameter in model.parameters()]
    members = {
        name: TaskMember(name, None, weight, lambda model, name=name: model.of_task(name))  # type: ignore[arg-type, misc]
        for name, weight in WEIGHTS.items()
    }
    objective = MultiTaskObjective(members, LOSSES)
    engine = build_engine(model, objective, torch.optim.SGD(model.parameters(), lr=0.0), Journal(tmp_path / "journal"))
    engine.clip = None
    parts = [TaskBatch(name, part) for name in HEADS for part in own[name].split(2)]
    result = engine.step(Update(parts), TrainingPoint(1), 1.0)
    total = sum(WEIGHTS[name] * float(mean.detach()) for name, mean in means.items())
    assert result.loss == pytest.approx(total, rel=1e-12)
    names = [name for name, _ in model.named_parameters()]
    for index, (old, parameter) in enumerate(zip(before, model.parameters(), strict=True)):
        parts_of = {name: gradients[index] for name, gradients in separate.items()}
        expected = sum(WEIGHTS[name] * part for name, part in parts_of.items() if part is not None)
        torch.testing.assert_close(old - parameter.detach(), expected, rtol=1e-9, atol=1e-12)
        owners = {name for name, part in parts_of.items() if part is not None}
        head = names[index].split(".")[1] if names[index].startswith("head.") else None
        assert owners == ({head} if head else set(HEADS)), names[index]


def test_the_numbers_of_batches_follow_the_settings() -> None:
    sizes = [100, 10, 30]
    assert TogetherConfig().counts(sizes, 3, 5) == [100, 100, 100]
    assert ProportionalConfig().counts(sizes, 3, 5) == sizes
    flat = ProportionalConfig(temperature=2).counts(sizes, 0, 1)
    roots = np.sqrt(sizes)
    assert flat == pytest.approx(140 * roots / roots.sum(), abs=0.5)
    assert ProportionalConfig(temperature=1e9).counts(sizes, 0, 1) == pytest.approx([47, 47, 47])
    annealed = AnnealedConfig()
    assert annealed.counts(sizes, 0, 5) == sizes
    powers = np.array(sizes) ** 0.2
    assert annealed.counts(sizes, 4, 5) == pytest.approx(140 * powers / powers.sum(), abs=0.5)
    middle = np.array(sizes) ** 0.6
    assert annealed.counts(sizes, 2, 5) == pytest.approx(140 * middle / middle.sum(), abs=0.5)
    assert ProportionalConfig().counts([1000, 1], 0, 1) == [1000, 1]


def test_several_tasks_are_not_sharded() -> None:
    data = {"train": {"path": "a.tsv"}, "valid": {"path": "b.tsv"}}
    tasks = {name: {"kind": "classification", "data": data} for name in ("one", "two")}
    settings = {"task": {"kind": "multi_task"}, "tasks": tasks, "train": {"parallel": "fsdp"}, "out": "run"}
    with pytest.raises(ConfigError, match="several tasks cannot be combined with train.parallel=fsdp.*parallel=ddp"):
        load_recipe(settings, [])


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    mixing, counts = ProportionalConfig(), [50, 20]
    order = mixing.order(counts, 1, 2)
    assert np.bincount(order).tolist() == counts
    assert np.array_equal(order, mixing.order(counts, 1, 2))
    assert not np.array_equal(order, mixing.order(counts, 1, 3))
    assert not np.array_equal(order, mixing.order(counts, 2, 2))
    assert TogetherConfig().order([2, 2], 1, 0).tolist() == [0, 1, 0, 1]


def recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice(WORDS, 5)) for _ in range(24)]
    files = {
        "animals.tsv": "".join(f"{text}\t{'yes' if 'dog' in text else 'no'}\n" for text in texts),
        "length.tsv": "".join(f"{text}\t{len(text) / 10}\n" for text in texts[:12]),
        "names.conll": "\n".join(
            "".join(f"{word} {'B-PER' if word == 'Anna' else 'O'}\n" for word in text.split()) for text in texts
        ),
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    data = {name: {"train": str(folder / name), "valid": str(folder / name), "batch": {"tokens": 60}} for name in files}
    tasks = {
        "animals": {"kind": "classification", "data": data["animals.tsv"]},
        "length": {"kind": "regression", "weight": 0.5, "data": data["length.tsv"]},
        "names": {"kind": "tagging", "data": data["names.conll"], "head": {"transitions": "learned"}},
    }
    loop = {
        "max_steps": 4,
        "checkpoint_every": 2,
        "average": {"count": 0},
        "schedule": {"kind": "constant", "peak": 0.01, "warmup": 1},
    }
    return {
        "task": {"kind": "multi_task"},
        "tasks": changes.pop("tasks", tasks),
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {"preset": "tiny", "width": 8, "encoder": STACK},
        "train": {**loop, **MACHINE, **changes.pop("train", {})},
        "out": str(folder / changes.pop("out", "run")),
        **changes,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tasks")
    result = train(recipe(root, mixing={"kind": "proportional", "temperature": 2}), quiet=True)
    values = {score.key: score for score in result.validation.scores}
    mean = (values["animals"].value + 100 * values["length"].value + values["names"].value) / 3
    assert values["mean"].value == pytest.approx(mean)
    weighted = sum(
        weight * values[f"{name}_loss"].value for name, weight in (("animals", 1), ("length", 0.5), ("names", 1))
    )
    assert values["loss"].value == pytest.approx(weighted)
    assert {key for key, measure in values.items() if measure.better} == {"mean", "animals", "length", "names", "loss"}
    return root / "run"


def last_checkpoint(folder: Path) -> dict[str, torch.Tensor]:
    return load_tensors(max((folder / "checkpoints").iterdir()) / "model.safetensors")[0]


def test_a_resumed_run_ends_like_an_uninterrupted_one(folder: Path, tmp_path: Path) -> None:
    mixing = {"kind": "proportional", "temperature": 2}
    train(recipe(tmp_path, mixing=mixing, train={"max_steps": 2}), quiet=True)
    assert train(recipe(tmp_path, mixing=mixing), resume=True, quiet=True).step == 4
    whole, resumed = last_checkpoint(folder), last_checkpoint(tmp_path / "run")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_one_task_among_several_is_trained_like_the_task_alone(tmp_path: Path) -> None:
    alone = recipe(tmp_path, out="alone")
    task = alone.pop("tasks")["animals"]
    train({**alone, "task": {"kind": "classification"}, "data": task["data"]}, quiet=True)
    for kind in ("together", "proportional"):
        train(recipe(tmp_path, tasks={"animals": task}, mixing={"kind": kind}, out=kind), quiet=True)
        one = last_checkpoint(tmp_path / "alone")
        other = last_checkpoint(tmp_path / kind)
        assert len(one) == len(other)
        assert all(torch.equal(one[name.replace("head.animals", "head")], other[name]) for name in other)


def test_an_epoch_of_proportional_batches_contains_every_row_once(tmp_path: Path) -> None:
    job: Any = open_job(load_recipe(recipe(tmp_path, mixing={"kind": "proportional"}), ()))
    job.prepare()
    for epoch in range(2):
        plan = job.plan(epoch)
        rows = np.concatenate(list(plan.batches))
        assert sorted(rows.tolist()) == list(range(job.examples)) and job.examples == 24 + 12 + 24
        loaded = list(job.batches(plan, 0, epoch, False))
        assert [each.task for each in job.batches(plan, 3, epoch, False)] == [each.task for each in loaded[3:]]
        ends = {"animals": 0, "length": 24, "names": 36}
        for batch, expected in zip(loaded, plan.batches, strict=True):
            assert [row + ends[batch.task] for row in batch.rows] == expected.tolist()


def test_each_task_predicts_by_its_name(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("Anna sees a dog\n\n")
    printed = {}
    for name in ("animals", "length", "names"):
        assert main(["predict", str(folder), "-i", str(tmp_path / "in.txt"), "--task", name, "--quiet"]) == 0
        printed[name] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["label"] in ("yes", "no") for each in printed["animals"]] == [True, True]
    assert isinstance(printed["length"][0]["value"], float)
    assert printed["names"][0]["words"] == ["Anna", "sees", "a", "dog"]
    assert Predictor.load(folder, "cpu", task="names").labels == ("B-PER", "O")
    vectors = [Predictor.load(folder, "cpu", task=name).vectors("a dog") for name in ("animals", "names")]
    assert np.array_equal(*vectors)
    assert predict(folder, tmp_path / "in.txt", tmp_path / "out.jsonl", task="animals", quiet=True) == 2
    assert inspect(Predictor.load(folder, "cpu", task="animals"), "Anna sees a dog").relevance is not None


def test_unknown_tasks_are_errors_with_the_names(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no task dogs: choose one of animals, length, names with --task"):
        Predictor.load(folder, task="dogs")
    with pytest.raises(ConfigError, match="several tasks: choose one of animals, length, names"):
        Predictor.load(folder)
    for metric in ("dogs", "accuracy"):
        with pytest.raises(ConfigError, match=f"train.metric is {metric}.*mean, loss, animals, length, names"):
            train(recipe(tmp_path, train={"metric": metric}), quiet=True)
    with pytest.raises(ConfigError, match="'items' is reserved"):
        train(recipe(tmp_path, tasks={"items": recipe(tmp_path)["tasks"]["animals"]}), quiet=True)
    with pytest.raises(ConfigError, match=r"set train\.max_epochs"):
        train(recipe(tmp_path, mixing={"kind": "annealed"}), quiet=True)
    tasks = recipe(tmp_path)["tasks"]
    tasks["animals"]["metric"] = "loss"
    with pytest.raises(ConfigError, match=r"tasks\.animals\.metric is loss"):
        train(recipe(tmp_path, tasks=tasks), quiet=True)


def test_evaluation_names_a_task_and_compares_it_with_a_model_of_this_task_alone(folder: Path, tmp_path: Path) -> None:
    alone = recipe(tmp_path, out="alone")
    task = alone.pop("tasks")["animals"]
    train({**alone, "task": {"kind": "classification"}, "data": task["data"]}, quiet=True)
    test = tmp_path / "animals.tsv"
    both = evaluate_labels([folder, tmp_path / "alone"], test, task="animals", device="cpu", quiet=True)
    assert len(both.reports) == 2 and both.comparisons
    with pytest.raises(ConfigError, match="only one task"):
        evaluate_labels(tmp_path / "alone", test, task="animals", quiet=True)


def test_the_card_describes_every_task(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    for name in ("animals", "length", "names"):
        assert f"## Labels of {name}\n" in card
    assert "| Checkpoint selected by | mean on " in card
    assert "| Weights of the tasks | animals 1, length 0.5, names 1 |" in card
    assert card.count("Checkpoint selected by") == 1 and "\n# Prediction model for several tasks" in card
    assert "| B-PER |" in card and "| yes |" in card
    scores = {each["metric"]: each for each in json.loads((folder / "meta.json").read_text())["scores"]}
    assert scores["animals accuracy"]["data"].endswith("animals.tsv")
    assert scores["mean of the tasks"]["signature"].startswith("animals: accuracy, length: Pearson correlation × 100")


def test_a_run_starts_from_the_body_and_the_heads_of_the_same_names(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = recipe(tmp_path)["tasks"]
    tasks["again"] = tasks.pop("length")
    start = {"start": str(folder), "max_steps": 1}
    values = recipe(tmp_path, tasks=tasks, train=start, out="several")
    del values["model"], values["text"]
    train(values)
    reported = capsys.readouterr().err
    assert "copied encoder.embedding, encoder, head.animals, head.names. New: head.again" in reported
    assert "Not used: head.length" in reported
    alone = {**values, "task": {"kind": "classification"}, "data": tasks["animals"]["data"]}
    del alone["tasks"]
    train({**alone, "out": str(tmp_path / "alone")})
    assert "copied encoder.embedding, encoder. New: head" in capsys.readouterr().err


def test_the_named_task_decides_which_checkpoint_is_kept() -> None:
    class Fixed:
        def __init__(self, *values: float) -> None:
            self.values = values

        def run(self, runtime: Any) -> Validation:
            value, loss = self.values
            return Validation(
                (Score("F1", value, key="f1", better="higher"), Score("loss", loss, key="loss", better="lower")), 0.0
            )

    def validated(first: float, second: float) -> Validation:
        tasks = {"a": TaskValidator(Fixed(first, 1.0), "f1", 1.0), "b": TaskValidator(Fixed(second, 2.0), "f1", 0.5)}
        return TasksValidator(tasks).run(None)  # type: ignore[arg-type]

    one, other = validated(80.0, 40.0), validated(70.0, 60.0)
    assert one.rank("a") > other.rank("a")
    assert one.rank("mean") < other.rank("mean")
    assert one["loss"].value == 2.0


def test_a_masked_language_model_is_trained_beside_a_task_with_labels(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a dog sees Anna in the park\nthe red cat\n" * 6)
    corpus = {"text": str(tmp_path / "text.txt")}
    data = {"train": corpus, "valid": corpus, "block": 24, "batch": {"tokens": 60}}
    body = recipe(tmp_path, out="body", train={"max_steps": 1})
    tasks = {"animals": body.pop("tasks")["animals"], "text": {"kind": "masked_language_model", "weight": 0.2}}
    train({**body, "task": {"kind": "masked_language_model"}, "data": data}, quiet=True)
    tasks["text"]["data"] = data
    values = recipe(tmp_path, tasks=tasks, mixing={"kind": "proportional"}, train={"max_steps": 2})
    del values["model"], values["text"]
    with pytest.raises(ConfigError, match=r"vocabulary of train\.start"):
        train(values, quiet=True)
    values["train"]["start"] = str(tmp_path / "body")
    measures = train(values, quiet=True).validation
    assert measures["mean"].value == measures["animals"].value
    loss = measures["animals_loss"].value + 0.2 * measures["text_loss"].value
    assert measures["loss"].value == pytest.approx(loss)
    prediction: Any = Predictor.load(tmp_path / "run", "cpu", 2, task="text").predict("a <mask> runs")[0]
    assert len(prediction.fills[0]) == 2
    # the folder alone suffices, although its settings contain the vocabulary of the body
    assert train(tmp_path / "run", {"train.max_steps": 3}, resume=True, quiet=True).step == 3
    alone = {**values, "task": {"kind": "classification"}, "data": tasks["animals"]["data"]}
    del alone["tasks"], alone["mixing"]
    train({**alone, "out": str(tmp_path / "alone")}, quiet=True)
    assert train(tmp_path / "alone", {"train.max_steps": 3}, resume=True, quiet=True).step == 3


@pytest.mark.slow
def test_parsers_are_trained_beside_a_tagger(tmp_path: Path) -> None:
    settings = recipe(tmp_path)
    trees = [f"(S (NP (DT a) (NN {noun})) (VP (VB sees)))" for noun in ("dog", "cat", "park")]
    (tmp_path / "trees.mrg").write_text("\n".join(trees) + "\n")
    data = {"train": [{"path": str(tmp_path / "trees.mrg"), "tag": "toy"}], "valid": str(tmp_path / "trees.mrg")}
    decoder = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 8}
    tasks = {
        "chart": {"kind": "parsing", "data": data, "head": {"kind": "chart", "hidden": 8}},
        "decoder": {"kind": "parsing", "data": data, "head": {"decoder": decoder, "beam": 1}, "metric": "loss"},
        "names": settings["tasks"]["names"],
    }
    result = train({**settings, "tasks": tasks, "train": {**settings["train"], "metric": "loss"}}, quiet=True)
    values = {score.key: score.value for score in result.validation.scores}
    losses = values["chart_loss"], values["decoder"], values["names_loss"]
    assert values["loss"] == pytest.approx(sum(losses))
    for name in ("chart", "decoder"):
        predictor = Predictor.load(tmp_path / "run", task=name)
        (prediction,) = predictor.predict([["the", "dog", "sees"]])
        assert prediction.tree.texts == ("the", "dog", "sees")  # type: ignore[attr-defined]
        assert prediction.tree.constituents[0][1:] == (0, 3)  # type: ignore[attr-defined]
        (report,) = evaluate_labels(tmp_path / "run", tmp_path / "trees.mrg", task=name, quiet=True).reports
        assert report.task == "parsing"
    smoothed = {**tasks, "chart": {**tasks["chart"], "objective": {"label_smoothing": 0.1}}}
    with pytest.raises(ConfigError, match="label_smoothing does not apply to a head of kind chart"):
        train({**settings, "tasks": smoothed}, quiet=True)


def test_a_recipe_is_described_with_the_heads_of_its_tasks(tmp_path: Path) -> None:
    described = describe(recipe(tmp_path), vocabulary=300)
    names = [part.name for part in described.whole.parts]
    assert {"head.animals", "head.length", "head.names"} <= set(names)
    assert described.whole.operations.training > 0
