"""Runs that train parsers: on a generated grammar, on trees of their own, and their checks."""

from pathlib import Path
from random import Random

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import all_overrides, load_settings
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.evaluation.evaluate_labels import evaluate_labels
from dragoman.inference.prediction.predict import predict
from dragoman.inference.prediction.predictor import Predictor
from dragoman.tasks.labelled.config import ParsingRun
from dragoman.tasks.labelled.parsing import ParsingJob
from dragoman.tasks.train import train
from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.tree import Tree


def grammar(random: Random, depth: int = 0) -> str:
    """Return a random tree of an unambiguous grammar."""

    def phrase(depth: int) -> str:
        noun = f"(DT {random.choice(['the', 'a'])}) (NN {random.choice(['cat', 'dog', 'man'])})"
        if depth < 2 and random.random() < 0.4:
            return f"(NP (NP {noun}) (SBAR (WDT that) {clause(depth + 1)}))"
        return f"(NP {noun})"

    def clause(depth: int) -> str:
        return (
            f"(VP (VB {random.choice(['saw', 'met'])}) {phrase(depth)})" if random.random() < 0.7 else "(VP (VB slept))"
        )

    return f"(S {phrase(depth)} {clause(depth)} (. .))"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("treebank"), Random(4)
    trees = sorted({grammar(random) for _ in range(400)})
    random.shuffle(trees)
    (folder / "valid.mrg").write_text("\n".join(trees[:30]) + "\n")
    (folder / "train.mrg").write_text("\n".join(trees[30:]) + "\n")
    return folder


SETTINGS = {
    "text": {"subword": {"kind": "whitespace"}},
    "model": {
        "width": 32,
        "encoder": {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64, "norm": "pre"},
        "positions": {"kind": "rotary"},
        "dropout": 0,
    },
}


def parsing_run(head: dict[str, object], train: object, valid: object, steps: int, out: Path) -> dict[str, object]:
    """The settings of a run that trains a small parser."""
    return {
        **SETTINGS,
        "model": {**SETTINGS["model"], "head": head},
        "task": {"kind": "parsing"},
        "data": {"train": train, "valid": valid, "batch": {"tokens": 500}},
        "train": {
            "max_steps": steps,
            "validate_every": steps,
            "schedule": {"kind": "linear", "peak": 0.01, "warmup": 0.1},
            "average": {"count": 0},
            "device": "cpu",
            "precision": "float32",
        },
        "out": str(out),
    }


CHART = {"kind": "chart", "hidden": 32, "dropout": 0}
TREE_DECODER = {
    "kind": "tree_decoder",
    "beam": 1,
    "dropout": 0,
    "decoder": {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64, "norm": "pre"},
}


@pytest.mark.parametrize(
    ("head", "steps", "least"),
    [
        pytest.param(TREE_DECODER, 250, 95, marks=pytest.mark.slow),
        pytest.param(TREE_DECODER, 30, 0, marks=pytest.mark.slow),
        (CHART, 60, 95),
    ],
)
def test_a_generated_grammar_is_learned(
    treebank: Path, tmp_path: Path, head: dict[str, object], steps: int, least: float
) -> None:
    """least: the bracket F1 after these steps."""
    corpus = [{"path": str(treebank / "train.mrg"), "tag": "toy", "weight": 2}]
    valid = {"path": str(treebank / "valid.mrg"), "tag": "toy"}
    train(parsing_run(head, corpus, valid, steps, tmp_path / "run"), quiet=True)
    (report,) = evaluate_labels(tmp_path / "run", treebank / "valid.mrg", {"tag": "toy"}, quiet=True).reports
    f1 = report["bracket_f1"].value
    assert f1 is not None and f1 >= least
    assert not report.warnings
    predict(tmp_path / "run", treebank / "valid.mrg", tmp_path / "trees.mrg", {"tag": "toy"}, quiet=True)
    lines = (tmp_path / "trees.mrg").read_text().splitlines()
    assert [parse_tree(line).texts for line in lines] == [
        parse_tree(line).texts for line in (treebank / "valid.mrg").read_text().splitlines()
    ]
    predictor = Predictor.load(tmp_path / "run", "cpu")
    one, none = predictor.predict([ParsedSentence(parse_tree(lines[0]).texts, tag="toy"), ""])
    assert str(one.tree) == lines[0]  # type: ignore[attr-defined]
    assert none.tree == Tree(())  # type: ignore[attr-defined]
    card = (tmp_path / "run/README.md").read_text()
    assert "bracket F1" in card and "| NP |" in card
    with pytest.raises(ConfigError, match="has no tag 'wsj'"):
        predictor.predict([ParsedSentence(("a",), tag="wsj")])


@pytest.mark.slow
def test_a_parser_learns_from_its_own_trees_beside_correct_ones_and_starts_another(
    treebank: Path, tmp_path: Path
) -> None:
    trees = (treebank / "train.mrg").read_text().splitlines()
    gold, silver, texts = (tmp_path / name for name in ("gold.mrg", "silver.mrg", "texts.txt"))
    gold.write_text("\n".join(trees[:40]) + "\n")
    sentences = [parse_tree(tree).texts for tree in trees[40:120]]
    texts.write_text("\n" + "\n".join(map(" ".join, sentences)) + "\n")
    valid = str(treebank / "valid.mrg")
    train(parsing_run(CHART, str(gold), valid, 40, tmp_path / "first"), quiet=True)
    assert predict(tmp_path / "first", texts, silver, quiet=True) == 81
    read = [parse_tree(line) for line in silver.read_text().splitlines() if line]
    assert [tree.texts for tree in read] == sentences
    corpora = [str(gold), {"path": str(silver), "weight": 0.5}]
    run = parsing_run(CHART, corpora, valid, 60, tmp_path / "second")
    job = ParsingJob(ParsingRun.model_validate(run))
    job.prepare()
    halves = []
    for epoch in range(2):
        rows = sorted(row for batch in job.plan(epoch).batches for row in batch.tolist())
        assert rows[:40] == list(range(40))
        halves.append(set(rows[40:]))
    assert [len(half) for half in halves] == [40, 40]
    assert halves[0] | halves[1] == set(range(40, 120))
    train(run, quiet=True)
    scores = [
        evaluate_labels(tmp_path / name, valid, quiet=True).reports[0]["bracket_f1"].value
        for name in ("first", "second")
    ]
    assert scores[1] is not None and scores[1] >= 90
    assert scores[0] is not None and scores[1] >= scores[0]
    rates = []
    for head in (CHART, TREE_DECODER):
        settings = parsing_run(head, str(gold), valid, 1, tmp_path / "third")
        del settings["text"]
        settings["train"] |= {"start": str(tmp_path / "first")}
        started = ParsingJob(ParsingRun.model_validate(settings))
        started.prepare()
        rates.append(started.run.train.head_rate)
    assert rates == [1, 2]  # the first continues with its own head


def test_unknown_labels_of_validation_trees_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.mrg").write_text("(S (NP (NN a)) (VP (VB b)))\n" * 3)
    (tmp_path / "valid.mrg").write_text("(S (QP (CD a)) (S (VP (VB b))))\n")
    cases: list[tuple[dict[str, object], int]] = [
        ({"kind": "tree_decoder"}, 2),
        ({"kind": "tree_decoder", "tagged": False}, 1),
        (CHART, 3),
    ]
    for head, unknown in cases:
        run = parsing_run(head, str(tmp_path / "train.mrg"), str(tmp_path / "valid.mrg"), 1, tmp_path / "run")
        job = ParsingJob(ParsingRun.model_validate(run))
        (finding,) = job.check_labels()
        assert f"{unknown} labels of {tmp_path / 'valid.mrg'} do not occur in the training data" in finding.message


def test_a_chart_has_no_label_smoothing() -> None:
    settings = {"task.kind": "parsing", "data": {"train": "a.mrg", "valid": "b.mrg"}, "out": "run"}
    run = load_settings(None, all_overrides(settings, {"train.objective.label_smoothing": 0.1}), ParsingRun)
    assert run.model.head.kind == "tree_decoder"
    with pytest.raises(ConfigError, match="label_smoothing does not apply to a head of kind chart"):
        load_settings(
            None,
            all_overrides(settings, {"model.head.kind": "chart", "train.objective.label_smoothing": 0.1}),
            ParsingRun,
        )
