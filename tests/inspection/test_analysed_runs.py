"""One text through the checkpoints of a run, also while it is written; alignments beside annotated links."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from analysed_models import SOURCE, TARGET, translator
from closeness import assert_close
from tiny_model import write_tiny_model

import dragoman.inspection.checkpoints as checkpoints_module
from dragoman import Translator, inspect
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.cli.main import main
from dragoman.inference.subject import SubjectSettings
from dragoman.inspection.alignments import compare_alignments, gold_links
from dragoman.inspection.checkpoints import follow_checkpoints, head_figure, reference_figure
from dragoman.inspection.inspect import open_visible
from dragoman.inspection.relevance import token_relevance
from dragoman.metrics.alignment_error_rate import alignment_metric, count_all
from dragoman.statistical.alignment.word_aligner import WordAligner

GIVEN, HEAD = SubjectSettings(target=TARGET), "decoder.cross_attention:1:2"
SENTENCE, TRANSLATION = "a dog runs in the park .", "ein Hund rennt im Park ."
GOLD = "0-0 1-1 2-2 3-3 4?3 5-4 6-5"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Checkpoints of three different models."""
    for step in (1, 2, 10):
        write_tiny_model(tmp_path / "run" / "checkpoints" / f"step-{step:08d}", step=step, seed=step)
    return tmp_path / "run"


def test_each_checkpoint_has_the_output_of_its_model(run: Path) -> None:
    found = follow_checkpoints(run, SOURCE, GIVEN, HEAD, "cpu")
    assert [each.step for each in found] == [1, 2, 10]
    for each in found:
        model = Translator.load(run / "checkpoints" / f"step-{each.step:08d}", "cpu", "torch")
        assert each.predicted == model.translate([SOURCE])[0]
        assert_close(each.total, model.score([SOURCE], [TARGET])[0].log_probability)
        (expected,) = [
            one for one in inspect(model, SOURCE, target=TARGET).maps if one.name == "decoder.layers.0.cross_attention"
        ]
        assert each.weights is not None
        assert (each.weights.queries, each.weights.keys) == (expected.queries, expected.keys)
        assert np.array_equal(each.weights.weights, expected.weights[1:2])
    weights = head_figure(found)
    assert weights is not None
    assert [panel.heading for row in weights.grid for panel in row] == ["step 1", "step 2", "step 10"]
    (panel,) = reference_figure(found).panels
    assert panel.curves[0].x.tolist() == [1, 2, 10]


def test_a_checkpoint_that_the_run_deletes_meanwhile_is_left_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(folder: Path, *arguments: object, **options: object) -> object:
        if folder.name == "step-00000002":
            shutil.rmtree(folder)
        return open_visible(folder, "cpu")

    monkeypatch.setattr(checkpoints_module, "open_visible", load)
    assert [each.step for each in follow_checkpoints(run, SOURCE, GIVEN)] == [1, 10]


def test_a_checkpoint_that_is_being_written_is_not_read(run: Path) -> None:
    unfinished = run / "checkpoints" / ".step-00000020.tmp"
    unfinished.mkdir()
    (unfinished / "config.yaml").write_text("model:")
    assert [each.step for each in follow_checkpoints(run, SOURCE, GIVEN)] == [1, 2, 10]


def test_a_damaged_checkpoint_and_a_run_without_checkpoints_are_errors(run: Path, tmp_path: Path) -> None:
    (run / "checkpoints" / "step-00000002" / "model.safetensors").write_bytes(b"")
    with pytest.raises(Exception, match="step-00000002"):
        follow_checkpoints(run, SOURCE, GIVEN)
    with pytest.raises(ModelError, match="is not a model folder"):
        follow_checkpoints(tmp_path, SOURCE)
    write_tiny_model(tmp_path / "model")
    with pytest.raises(ConfigError, match="has no checkpoints in .*: give the folder of a run"):
        follow_checkpoints(tmp_path / "model", SOURCE)


@pytest.mark.parametrize("family", ["transformer", "recurrent without attention", "bytenet"])
def test_alignments_of_a_model_are_those_of_attention_and_of_gradients(family: str) -> None:
    model = translator(family)
    settings = SubjectSettings(target=TRANSLATION)
    found = compare_alignments(model, SENTENCE, settings, GOLD)
    if family == "transformer":
        assert found.links["attention"] == model.align([SENTENCE], [TRANSLATION])[0]
        assert found.weights["attention"].shape == (6, 7)
        assert (found.weights["attention"].sum(1) <= 1 + 1e-5).all()
    else:
        assert found.absent == ("attention: this model's decoder has no attention weights over source tokens",)
        assert "attention" not in found.links
    relevance = np.abs(token_relevance(model, SENTENCE, settings).of_source).sum()
    assert 0 < found.weights["gradient"].sum() <= relevance
    for source, target in found.links["gradient"]:
        assert found.weights["gradient"][target].argmax() == source


def test_error_rates_are_those_of_the_measure() -> None:
    gold = gold_links(GOLD)
    assert gold.possible - gold.sure == {(4, 3)}
    aligner, _ = WordAligner.train([SENTENCE, "a dog", "the park"], [TRANSLATION, "ein Hund", "der Park"], threads=1)
    found = compare_alignments(translator(), SENTENCE, SubjectSettings(target=TRANSLATION), GOLD, {"HMM": aligner})
    assert list(found.links) == ["attention", "gradient", "HMM"]
    assert found.links["HMM"] == aligner.align([SENTENCE], [TRANSLATION], 1)[0]
    assert np.array_equal(found.weights["HMM"], aligner.link_weights(SENTENCE, TRANSLATION))
    weights = found.figure().weights
    assert weights["HMM"].shape == (7, 6) and weights["HMM"].max() <= 1 + 1e-12
    assert (weights["attention"].sum(0) <= 1 + 1e-5).all()
    assert weights["gradient"].sum(0) == pytest.approx(1)
    counts = found.confusion().counts
    for name, (sure, possible, wrong, missed) in zip(found.links, counts.tolist(), strict=True):
        assert (sure + possible + wrong, sure + missed) == (len(found.links[name]), len(gold.sure))
    for name, rate in found.error_rates.items():
        assert rate == pytest.approx(float(alignment_metric(count_all([gold], [set(found.links[name])]).sum(0), "aer")))
    plain = compare_alignments(translator(), SENTENCE, SubjectSettings(target=TRANSLATION))
    assert plain.error_rates == {} and plain.with_gold(GOLD).error_rates["gradient"] == found.error_rates["gradient"]
    with pytest.raises(ConfigError, match="there are no annotated links"):
        plain.confusion()
    with pytest.raises(ConfigError, match="two aligners are called gold"):
        compare_alignments(translator(), SENTENCE, SubjectSettings(target=TRANSLATION), aligners={"gold": aligner})


def test_links_of_words_that_do_not_exist_are_rejected() -> None:
    settings = SubjectSettings(target=TRANSLATION)
    with pytest.raises(
        DataError, match="the annotated link 9-0 is outside of the sentence pair, which has 7 source words"
    ):
        compare_alignments(translator(), SENTENCE, settings, "9-0")
    with pytest.raises(DataError, match="'x' is not a link"):
        compare_alignments(translator(), SENTENCE, settings, "x")


@pytest.mark.slow
def test_the_commands_print_and_write_figures(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["inspect", "checkpoints", str(run), SOURCE, "--target", TARGET, "--head", HEAD, "--device", "cpu"]
    assert main([*command, "--out", str(tmp_path / "followed")]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 1 + 3
    assert {each.stem for each in (tmp_path / "followed").iterdir()} == {"output", "head"}
    assert main([*command, "--json"]) == 0
    assert [each["step"] for each in json.loads(capsys.readouterr().out)] == [1, 2, 10]
    model = str(run / "checkpoints" / "step-00000001")
    command = ["inspect", "alignment", model, SENTENCE, "--target", TRANSLATION, "--gold", GOLD, "--device", "cpu"]
    assert main([*command, "--out", str(tmp_path / "aligned")]) == 0
    assert "AER" in capsys.readouterr().out
    assert {each.name for each in (tmp_path / "aligned").iterdir()} == {
        f"alignment.{suffix}" for suffix in ("csv", "json", "png", "svg")
    }
