"""Linear models of n-grams: their solver against scikit-learn's, their runs, and the choice of a preset."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC
from torch import Tensor

from dragoman import Predictor, inspect, train
from dragoman.base.errors import ConfigError, Interrupted
from dragoman.base.settings.load import load_settings
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.models.families.ngrams import NgramVectors
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.labelled import ngrams, presets
from dragoman.tasks.labelled.config import ClassificationRun
from dragoman.tasks.labelled.ngrams import estimate_ngrams
from dragoman.tasks.labelled.rows import Row, collate_rows
from dragoman.text.tokenizers import VocabularySizes

SIZE, COUNT = 40, 120


def model(head: dict[str, Any], width: int) -> EncoderOnly:
    settings = {"preset": "ngrams", "width": width, "head": head}
    return EncoderOnlyConfig.model_validate(settings).build_for(VocabularySizes(SIZE, SIZE)).eval()


def rows(targets: Any) -> list[Row]:
    """Return rows of random tokens, some of which depend on the target."""
    draw = np.random.default_rng(1)
    made = []
    for target in targets:
        own = [int(10 + 4 * target + draw.integers(4)) for _ in range(2)]
        ids = [1, *own, *draw.integers(4, SIZE, draw.integers(2, 9)).tolist(), 2]
        made.append((ModelInput(ids), target))
    return made


def features(built: EncoderOnly, examples: list[Row]) -> np.ndarray[Any, Any]:
    """Return the features, and a last one of 1 for the intercept."""
    encoder: NgramVectors = built.encoder.tokens
    batch = collate_rows(examples, range(len(examples)))
    found, counts = encoder.occurrences(batch.tokens, batch.mask)
    dense = torch.zeros(len(examples), encoder.buckets + 1).scatter_add_(1, found, encoder.weights(found, counts))
    dense[:, -1] = 1
    return dense[:, dense.abs().sum(0) > 0].numpy()


def outputs(built: EncoderOnly, examples: list[Row]) -> Tensor:
    with torch.no_grad():
        return built(*collate_rows(examples, range(len(examples))).model_inputs)  # type: ignore[no-any-return]


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_those_of_liblinear(classes: int) -> None:
    draw = np.random.default_rng(2)
    targets = draw.integers(0, classes, COUNT).tolist()
    examples = rows(targets)
    built = model({"kind": "classification", "labels": list("abcd")[:classes]}, classes)
    estimate_ngrams(built, examples)
    solver = LinearSVC(C=1, fit_intercept=False, tol=1e-8, max_iter=100_000)
    expected = solver.fit(features(built, examples), targets).decision_function(features(built, examples))
    found = outputs(built, examples)
    if classes == 2:
        found, expected = found[:, 1:], expected[:, None]
        torch.testing.assert_close(outputs(built, examples)[:, 0], -found[:, 0], rtol=1e-3, atol=1e-3)
    factor = (found.numpy() * expected).sum() / (expected**2).sum()  # that of the logits
    assert 0.49 <= factor <= 10.3
    np.testing.assert_allclose(found.numpy(), factor * expected, atol=0.01 * factor)


def test_class_weights_are_those_of_liblinear() -> None:
    targets = [0] * 100 + [1] * 20
    examples = rows(targets)
    built = model({"kind": "classification", "labels": ["a", "b"]}, 2)
    estimate_ngrams(built, examples, torch.tensor([0.6, 3.0]))
    solver = LinearSVC(C=1, fit_intercept=False, tol=1e-8, max_iter=100_000, class_weight={0: 0.6, 1: 3.0})
    expected = solver.fit(features(built, examples), targets).decision_function(features(built, examples))
    found = outputs(built, examples)[:, 1].numpy()
    factor = (found * expected).sum() / (expected**2).sum()
    np.testing.assert_allclose(found, factor * expected, atol=0.01 * factor)


def test_numbers_are_those_of_ridge_regression() -> None:
    draw = np.random.default_rng(3)
    targets = draw.uniform(0, 5, COUNT).round(1)
    examples = rows(targets.tolist())
    built = model({"kind": "regression", "offset": float(targets.mean()), "scale": float(targets.std())}, 2)
    estimate_ngrams(built, examples)
    matrix = features(built, examples)
    solver = Ridge(alpha=0.5, fit_intercept=False).fit(matrix, (targets - targets.mean()) / targets.std())
    expected = targets.mean() + targets.std() * solver.predict(matrix)
    np.testing.assert_allclose(outputs(built, examples).numpy(), expected, atol=0.01)


def test_many_ngrams_are_estimated_from_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = rows([0, 1] * 60)
    monkeypatch.setattr(ngrams, "_MOST_NGRAMS", sum(len(each.ids) for each, _ in examples))
    whole, part = (model({"kind": "classification", "labels": ["a", "b"]}, 2) for _ in range(2))
    estimate_ngrams(whole, examples)
    assert "from 40 of the 120 training examples" in capsys.readouterr().err
    monkeypatch.undo()
    estimate_ngrams(part, examples[::3])
    assert torch.equal(whole.encoder.tokens.vectors.weight, part.encoder.tokens.vectors.weight)


def write_texts(folder: Path, labels: dict[str, str], count: int = 200) -> None:
    draw = np.random.default_rng(4)
    words = "one two three four five six seven eight nine".split()
    lines = []
    for _ in range(count):
        label = str(draw.choice(list(labels)))
        lines.append(" ".join([*draw.choice(words, 4), labels[label], *draw.choice(words, 4)]) + f"\t{label}\n")
    (folder / "train.tsv").write_text("".join(lines))


def test_a_run_estimates_classifies_and_resumes(tmp_path: Path) -> None:
    write_texts(tmp_path, {"good": "lovely", "bad": "awful"})
    settings = {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "train.tsv")},
        "model": {"preset": "ngrams"},
        "out": str(tmp_path / "run"),
    }
    result = train(settings, quiet=True)
    assert result.step == 0 and result.validation["accuracy"].value > 95
    predictor = Predictor.load(tmp_path / "run")
    texts = ["one two lovely three", "one two awful three"]
    found = cast("list[ClassPrediction]", predictor.predict(texts))
    assert [each.label for each in found] == ["good", "bad"]
    assert all(0.5 < max(each.probabilities.values()) < 1 for each in found)
    again = train(settings, resume=True, quiet=True)
    assert again.step == 0 and again.validation["accuracy"].value == result.validation["accuracy"].value
    weights = Predictor.load(tmp_path / "run").model.encoder.tokens.vectors.weight
    assert torch.equal(weights, predictor.model.encoder.tokens.vectors.weight)


def test_the_relevance_of_the_words_adds_up_to_the_logit(tmp_path: Path) -> None:
    write_texts(tmp_path, {"good": "lovely", "bad": "awful"})
    data, out = {"train": str(tmp_path / "train.tsv")}, str(tmp_path / "run")
    train({"task": {"kind": "classification"}, "data": data, "model": {"preset": "ngrams"}, "out": out}, quiet=True)
    found = inspect(out, "one two lovely three").relevance
    assert found is not None
    bias = Predictor.load(out).model.head.output.bias.max().item()
    assert found.total + bias == pytest.approx(found.value, abs=1e-4)
    words = dict(zip(found.texts[0].words, found.texts[0].values, strict=True))
    assert max(words, key=words.__getitem__) == "lovely"


def test_a_linear_model_of_numbers(tmp_path: Path) -> None:
    write_texts(tmp_path, {"5": "lovely", "1": "awful", "3": "fine"})
    out = str(tmp_path / "run")
    settings = {"task": {"kind": "regression"}, "data": {"train": str(tmp_path / "train.tsv")}, "out": out}
    result = train({**settings, "model": {"preset": "ngrams"}}, quiet=True)
    assert result.validation["pearson"].value > 0.9


@pytest.mark.parametrize(
    "head",
    [{"kind": "classification", "hidden": True}, {"kind": "classification", "pair": "separate"}, {"kind": "tagging"}],
)
def test_other_heads_are_not_linear(head: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="ngrams is a linear model"):
        load_settings({"preset": "ngrams", "head": head}, [], EncoderOnlyConfig)


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "_SECONDS", 1.0)


@pytest.mark.usefixtures("short_runs")
def test_auto_selects_the_linear_model_where_it_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_texts(tmp_path, {"good": "lovely", "bad": "awful", "fair": "fine"}, 300)
    settings = {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "train.tsv")},
        "train": {"max_minutes": 2, "threads": 1},
        "out": str(tmp_path / "run"),
    }
    assert train(settings).step == 0
    assert "ngrams 100.00" in capsys.readouterr().err
    assert load_settings(tmp_path / "run" / "config.yaml", [], ClassificationRun).model.preset == "ngrams"
    assert train(settings, resume=True, quiet=True).step == 0
    assert "Preset" not in capsys.readouterr().err


@pytest.mark.usefixtures("short_runs")
def test_seeds_share_a_choice_and_warnings_are_printed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_texts(tmp_path, {"good": "lovely", "bad": "awful"}, 300)
    with (tmp_path / "train.tsv").open("a") as file:
        file.write("the same text\tgood\nthe same text\tbad\n" * 2)
    settings = {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "train.tsv")},
        "train": {"max_minutes": 1, "threads": 1},
        "seeds": 2,
        "out": str(tmp_path / "run"),
    }
    assert train(settings).step == 0
    said = capsys.readouterr().err
    assert said.count("Preset: trying") == 4
    assert said.count("different labels in") == 2  # once for each seed
    monkeypatch.setattr(presets, "CANDIDATES", ())  # nothing is compared again
    for seed in (1, 2):
        run = load_settings(tmp_path / f"run/seed-{seed}/config.yaml", [], ClassificationRun)
        assert run.model.preset == "ngrams"
    assert train(settings, resume=True).step == 0
    assert "Preset" not in capsys.readouterr().err


def test_an_interrupted_comparison_names_the_folder_of_the_run(tmp_path: Path) -> None:
    settings = {"task": {"kind": "classification"}, "data": {"train": "x.tsv"}, "out": str(tmp_path / "run")}

    def trial(candidate: Any) -> Any:
        raise Interrupted(f"Resume with: dragoman train --resume --out {candidate.out}", 15)

    with pytest.raises(Interrupted, match=f"nothing was written to {tmp_path / 'run'}") as raised:
        presets.choose_preset(load_settings(settings, [], ClassificationRun), trial)
    assert raised.value.exit_code == 143


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize(
    ("changes", "tried"),
    [
        ({"train": {"max_steps": 2}}, False),
        ({"model": {"preset": "mean"}}, False),
        ({"model": {"encoder": {"kind": "mean"}}}, False),
        ({"model": {"head": {"hidden": True}}}, False),
        ({"train": {"max_minutes": 1}}, True),
    ],
)
def test_auto_measures_only_if_nothing_else_decides(tmp_path: Path, changes: dict[str, Any], tried: bool) -> None:
    base: dict[str, Any] = {
        "task": {"kind": "classification"},
        "data": {"train": "x.tsv"},
        "out": str(tmp_path / "run"),
    }
    config = load_settings({**base, **changes}, [], ClassificationRun)

    class Tried(Exception):
        pass

    def trial(candidate: Any) -> Any:
        assert candidate.out != config.out
        raise Tried

    if tried:
        with pytest.raises(Tried):
            presets.choose_preset(config, trial)
    else:
        assert presets.choose_preset(config, trial) is config


def test_large_files_are_not_read_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_texts(tmp_path, {"good": "lovely", "bad": "awful"})
    data = [str(tmp_path / "train.tsv"), "missing.tsv"]
    settings = {"task": {"kind": "classification"}, "data": {"train": data}, "out": str(tmp_path / "run")}
    config = load_settings(settings, [], ClassificationRun)
    monkeypatch.setattr(presets, "_MOST_BYTES", (tmp_path / "train.tsv").stat().st_size - 1)
    assert presets.choose_preset(config, lambda _: pytest.fail("it is trained")) is config
