"""The learning curve of `evaluate`: parts of the corpus, the runs on them, and what is said about more pairs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from adjectives import sentences
from training_runs import MACHINE

import dragoman
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.verdict import ScoreRange
from dragoman.cli.main import main
from dragoman.evaluation import smaller_corpora
from dragoman.evaluation.learning_curve import CurvePoint, LearningCurve
from dragoman.evaluation.smaller_corpora import measure_learning_curve
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.resampling import Comparison
from dragoman.metrics.score import Interval, Score
from dragoman.tasks.train import load_recipe, train

TEST = sentences(30, 3)
SOURCES, REFERENCES = [source for source, _ in TEST], [target for _, target in TEST]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with one update and a dictionary, which holds out its own validation set."""
    folder = tmp_path_factory.mktemp("curve")
    pairs = [*sentences(700, 1), ("no", "")]
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    recipe = {
        "data": {"train": {"pairs": f"{folder}/pairs.tsv"}, "held_out": {"valid": 20, "test": 20}},
        "model": {"preset": "tiny", "width": 16},
        "text": {"subword": {"size": 300}},
        "train": {**MACHINE, "max_steps": 1, "ema": None},
        "systems": ["dictionary"],
        "out": str(folder / "run"),
    }
    return train(recipe, quiet=True).folder


@pytest.mark.slow
def test_the_system_is_trained_on_parts_of_the_pairs(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without files, the dictionary learns from nested parts without held-out pairs; text, JSON and picture agree."""
    for name, lines in (("test.en", SOURCES), ("test.de", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    command = ["evaluate", str(trained), "--learning-curve", "--metric", "chrf", "--no-verdict", "-q", "--threads", "1"]
    files = ["--source", str(tmp_path / "test.en"), "--reference", str(tmp_path / "test.de")]
    assert main([*command, *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["learning_curve"]
    assert found["system"] == f"{trained} (dictionary)"
    counts = [point["pairs"] for point in found["points"]]
    assert 400 < counts[2] <= 660 and 0.15 < counts[0] / counts[2] < 0.35 and 0.4 < counts[1] / counts[2] < 0.6
    own = dragoman.evaluate(trained, source=SOURCES, reference=REFERENCES, metric=["chrf"], verdict=False, quiet=True)
    assert found["points"][2]["scores"][1]["value"] == pytest.approx(own["chrf"].value)
    assert len(found["gains"]) == 2 and found["gains"][1]["first"]["name"] == "chrF2"
    assert sorted(path.name for path in (trained / "learning_curve").iterdir()) == [
        f"learning-curve.{suffix}" for suffix in ("csv", "json", "png", "svg")
    ]


def test_a_neural_model_is_trained_with_the_settings_of_its_run(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs on parts have the settings of the run, its validation set, no held-out pair, and no other systems."""
    runs, parts = [], []

    def record(run: Any, resume: bool) -> None:
        (tmp_path / "recipe.yaml").write_text(dump_settings(run))
        assert load_recipe(tmp_path / "recipe.yaml", ()) == run and resume
        runs.append(run)
        parts.append([path.read_text().splitlines() for path in run.data.corpora[0].files])

    monkeypatch.setattr(smaller_corpora, "train", record)
    test_set = TestSet(["test"], [REFERENCES], SOURCES)
    found = measure_learning_curve(
        trained, "neural", test_set, REFERENCES, tokenizer="13a", translate=lambda folder: REFERENCES
    )
    assert [point.fraction for point in found.points] == [0.25, 0.5, 1] and found.system.endswith("(neural model)")
    assert [point.pairs for point in found.points[:2]] == [len(sources) for sources, _ in parts]
    own = load_recipe(trained, ())
    assert all(run.train == own.train and run.model == own.model and run.systems == () for run in runs)
    sources = set((trained / "held_out" / "valid.source").read_text().splitlines())
    assert sources and not sources & {*parts[1][0]}
    assert {*zip(*parts[0], strict=True)} <= {*zip(*parts[1], strict=True)}
    assert str(runs[0].data.valid_sets[0]).startswith("20 pairs held out from")


def test_unsuitable_models_and_corpora_are_rejected(trained: Path, tmp_path: Path) -> None:
    texts: dict[str, Any] = {"source": SOURCES, "reference": REFERENCES, "verdict": False, "quiet": True}
    with pytest.raises(ConfigError, match="give the folder of a single model"):
        dragoman.evaluate([trained, trained], learning_curve=True, **texts)
    shutil.copytree(trained, tmp_path / "run")
    settings = (tmp_path / "run" / "config.yaml").read_text()
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{source}\t{target}\n" for source, target in sentences(50, 1)))
    (tmp_path / "run" / "config.yaml").write_text(settings.replace(f"{trained.parent}/pairs.tsv", str(few)))
    with pytest.raises(DataError, match="at least 400 training pairs, but there are"):
        dragoman.evaluate(tmp_path / "run", learning_curve=True, **texts)
    few.unlink()
    with pytest.raises(DataError, match="few.tsv does not exist any more"):
        dragoman.evaluate(tmp_path / "run", learning_curve=True, **texts)


def comparison(difference: float, p_value: float = 0.001) -> Comparison:
    first, second = Score("chrF2", 40.0), Score("chrF2", 40.0 + difference)
    whole, change = Interval(40, 39, 41), Interval(difference, difference - 1, difference + 1)
    return Comparison(first, second, whole, whole, difference, change, p_value, 1000, 1)


@pytest.mark.parametrize(
    ("gains", "p_value", "sentences", "words"),
    [
        (
            (4, 3),
            0.001,
            500,
            "from 2,000 to 4,000 gave +3.0 chrF2 (95% interval +2.0 to +4.0): expect about +2.2 to",
        ),
        ((2, 3), 0.001, 500, "expect about +3.0 chrF2 from doubling"),
        ((4, 0.2), 0.4, 500, "gave +0.2 chrF2 (95% interval -0.8 to +1.2), which is no significant gain"),
        ((4, -2), 0.001, 500, "no significant gain: more pairs of the same kind will hardly help"),
        ((4, 3), 0.001, 9, "9 sentences are too few for a learning curve"),
    ],
)
def test_sentence(gains: tuple[float, float], p_value: float, sentences: int, words: str) -> None:
    score = ScoreRange(metric="chrF2", value=40, low=39, high=41, signature="")
    points = tuple(CurvePoint(fraction, round(4000 * fraction), (score,)) for fraction in (0.25, 0.5, 1.0))
    curve = LearningCurve("a", points, (comparison(gains[0]), comparison(gains[1], p_value)), sentences)
    assert words in curve.sentence and curve.sentence in str(curve)
    assert "Each size was trained once" in curve.sentence or sentences < 10
    assert len(list(curve.figure().table())) == 10
