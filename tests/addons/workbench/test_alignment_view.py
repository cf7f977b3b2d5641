"""The state of the view of alignments: layers of links, their weights, and their agreement with annotated links."""

from pathlib import Path

import numpy as np
import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import SOURCES, TARGETS, tiny_config, write_tiny_model
from workbench_server import write_workspace

import dragoman
from dragoman.addons.workbench.views.alignment import AlignmentState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.figures.alignments import Alignments
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.alignments import gold_links
from dragoman.statistical.alignment.word_aligner import WordAligner

SOURCE, TARGET, GOLD = SOURCES[0], TARGETS[0], "0-0 1-1 2-2 3-3 4?3 5-4 6-5"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    write_tiny_language_model(folder / "lm")
    without = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent", "attention": None})
    write_tiny_model(folder / "plain", config=without)
    dragoman.align(SOURCES, TARGETS, save=folder / "hmm", threads=1, quiet=True)
    return Workspace([*write_workspace(folder), *(folder / name for name in ("lm", "plain", "hmm"))], "cpu")


def links_of(workspace: Workspace, **settings: object) -> Alignments:
    """The figure of the links of a sentence pair."""
    state = AlignmentState.model_validate({"source": SOURCE, "target": TARGET, **settings})
    figure = state.content(workspace).figures["links"]
    assert isinstance(figure, Alignments)
    return figure


def test_layers_are_the_links_of_the_aligners(workspace: Workspace) -> None:
    figure = links_of(workspace, others=("hmm", "two"))
    assert list(figure.aligners) == ["attention", "gradient", "hmm", "attention of two"]
    for name, model in (("attention", "one"), ("attention of two", "two")):
        translator = workspace.model(model).loaded
        assert isinstance(translator, Translator)
        assert figure.aligners[name] == translator.align([SOURCE], [TARGET])[0]
    aligner = workspace.aligners["hmm"]
    assert isinstance(aligner, WordAligner)
    assert figure.aligners["hmm"] == aligner.align([SOURCE], [TARGET])[0]
    assert np.array_equal(figure.weights["hmm"], aligner.link_weights(SOURCE, TARGET).T)
    assert figure.gold is None and figure.metrics == {}


def test_measures_are_those_of_the_evaluation(workspace: Workspace) -> None:
    state = AlignmentState(source=SOURCE, target=TARGET, gold=GOLD, others=("hmm",))
    content = state.content(workspace)
    figure = content.figures["links"]
    assert isinstance(figure, Alignments)
    for name, measures in figure.metrics.items():
        links = content.facts["pharaoh"][name]
        evaluated = dragoman.evaluate_alignments([GOLD], [links], gold_base=0, hypothesis_base=0, quiet=True)
        assert measures == {key: pytest.approx(evaluated[key]) for key in measures}
        assert set(measures) == {"aer", "precision", "recall", "f1"}
    assert content.figures["confusion"].details()["rows"] == ["attention", "gradient", "hmm"]


def test_annotated_links_do_not_align_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = links_of(workspace, gold=GOLD)
    monkeypatch.setattr("dragoman.addons.workbench.workspace.compare_alignments", None)
    assert links_of(workspace, gold="0-0").aligners == first.aligners


def test_layers_that_are_absent_are_named(workspace: Workspace, tmp_path: Path) -> None:
    content = AlignmentState(model="plain", source=SOURCE, target=TARGET, others=("hmm",)).content(workspace)
    reason = "this model's decoder has no attention weights over source tokens"
    assert content.facts["absent"] == [f"attention: {reason}"]
    content = AlignmentState(source=SOURCE, target=TARGET, others=("plain",)).content(workspace)
    assert content.facts["absent"] == [f"plain: {reason}"]
    write_tiny_model(tmp_path / "one")
    content = AlignmentState(source=SOURCE, target=TARGET).content(Workspace([tmp_path / "one"], "cpu"))
    assert content.facts["absent"] == [
        "word aligner: none is open; train one with `dragoman align --save FOLDER`, and pass its folder, too"
    ]


def test_hidden_layers_keep_their_measures(workspace: Workspace) -> None:
    figure = links_of(workspace, gold=GOLD, off=("gradient", "gold"))
    assert {row[0] for row in figure.table()} == {"aligner", "attention"}
    assert set(figure.metrics) == {"attention", "gradient"}
    assert links_of(workspace, model="plain", off=("attention", "hmm", "attention of two")).hidden, "of other models"


def test_the_links_of_the_demo_are_those_of_its_reference(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = {(SOURCE, TARGET): gold_links(GOLD)}
    monkeypatch.setattr("dragoman.addons.workbench.views.alignment.grammar_translation", {SOURCE: TARGET}.__getitem__)
    monkeypatch.setattr("dragoman.addons.workbench.views.alignment.grammar_gold", lambda *pair: pairs[pair])
    content = AlignmentState(source=SOURCE, gold="demo").content(workspace)
    assert content.facts["target"] == TARGET
    figure = content.figures["links"]
    assert isinstance(figure, Alignments) and figure.gold == pairs[SOURCE, TARGET]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"source": " "}, DataError, "the text is blank"),
        ({"gold": "0-0", "target": ""}, ConfigError, "annotated links belong to a translation: give the translation"),
        ({"gold": "0-"}, DataError, "'0-' is not a link"),
        ({"gold": "9-0"}, DataError, "the annotated link 9-0 is outside of the sentence pair"),
        ({"off": ["colour"]}, ConfigError, "there is no layer 'colour': the layers are attention, gradient, gold"),
        ({"others": ["x"]}, ConfigError, "there is no word aligner or model 'x': hmm, one, two, lm, plain are open"),
        ({"others": ["lm"]}, ModelError, "lm is a language model; it cannot translate"),
        ({"model": "lm"}, ModelError, "lm is a language model; it cannot translate"),
    ],
)
def test_what_cannot_be_aligned_is_refused(
    workspace: Workspace, settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        links_of(workspace, **settings)
