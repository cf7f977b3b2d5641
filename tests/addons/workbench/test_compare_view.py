"""The state of the view of two models: translations, checkpoints, ranked sentence pairs, and messages."""

from pathlib import Path
from typing import Any

import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import write_tiny_model
from workbench_server import log_step

from dragoman import Translator
from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.views.compare import MAX_PAIRS, CompareState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.figures.bars import Bars
from dragoman.figures.comparison import Comparison
from dragoman.inspection.comparison import rank_pairs

SOURCE, REFERENCE = "a dog runs in the park .", "ein Hund rennt im Park ."
TEXTS = ("ein Hund schläft im Park .", "Hund rennt im großen Park .")
PAIRS = ("a dog runs\tein Hund rennt", "two dogs sleep\tzwei Hunde schlafen", "the man\tder Mann")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The models `one` and `two`, the run `trained` with checkpoints, and `started`, which has no model yet."""
    folder = tmp_path_factory.mktemp("workspace")
    for seed, name in enumerate(("one", "two", "trained"), 1):
        write_tiny_model(folder / name, seed=seed)
    for run in ("trained", "started"):
        for step in (5, 10):
            write_tiny_model(folder / run / "checkpoints" / f"step-{step:08d}", step=step, seed=step)
        log_step(folder / run, 1)
    return Workspace([folder / name for name in ("one", "two", "trained", "started")], "cpu")


def comparison_of(state: CompareState, workspace: Workspace) -> Comparison:
    figure = state.content(workspace).figures["comparison"]
    assert isinstance(figure, Comparison)
    return figure


def test_a_view_translates_with_both_models(workspace: Workspace) -> None:
    content = CompareState(source=SOURCE, reference=REFERENCE).content(workspace)
    sides = content.facts["sides"]
    assert [each["name"] for each in sides] == ["one", "two"]
    for each in sides:
        assert each["text"] == workspace.model(each["name"]).translator.translate([SOURCE])[0]
        assert each["steps"] == []
    figure = content.figures["comparison"]
    assert isinstance(figure, Comparison)
    assert [" ".join(words) for words in figure.translations] == [" ".join(each["text"].split()) for each in sides]


def test_checkpoints_are_models(workspace: Workspace) -> None:
    content = CompareState(source=SOURCE, model="trained@5", other="trained").content(workspace)
    first, second = content.facts["sides"]
    assert (first["name"], first["run"], first["step"], first["steps"]) == ("trained@5", "trained", 5, [5, 10])
    assert (second["name"], second["step"]) == ("trained", None)
    loaded = workspace.model("trained@5").translator
    assert loaded.meta.step == 5
    assert first["text"] == loaded.translate([SOURCE])[0]
    assert content.figures["comparison"].title == "Translations by trained, step 5 and trained"
    assert workspace.inspect("trained@5", SOURCE, "", "").source == SOURCE


def test_a_run_without_a_model_has_checkpoints(workspace: Workspace) -> None:
    assert CompareState(source=SOURCE, other="started@10").content(workspace).facts["sides"][1]["step"] == 10
    only = Workspace([workspace.runs["started"]], "cpu")
    sides = CompareState(source=SOURCE).content(only).facts["sides"]
    assert [each["name"] for each in sides] == ["started@10", "started@10"]


def test_new_checkpoints_are_found(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "run" / "checkpoints" / "step-00000001")
    log_step(tmp_path / "run", 1)
    opened = Workspace([tmp_path / "run"], "cpu")
    assert opened.checkpoints("run") == [1] and opened.model().name == "run@1"
    write_tiny_model(tmp_path / "run" / "checkpoints" / "step-00000002")
    assert opened.checkpoints("run") == [1, 2] and opened.model().name == "run@2"


def test_sentence_pairs_are_ranked_in_a_view(workspace: Workspace) -> None:
    source, reference = PAIRS[1].split("\t")
    state = CompareState(source=source, reference=reference, pairs=PAIRS, order="chrf")
    content = state.content(workspace)
    models = [workspace.model(name).translator for name in ("one", "two")]
    sources, references = zip(*(pair.split("\t") for pair in PAIRS), strict=True)
    texts = list(zip(*(model.translate(sources) for model in models), strict=True))
    expected = rank_pairs(texts, references, "chrf")
    assert content.facts["order"] == list(expected.order)
    bars = content.figures["differences"]
    assert isinstance(bars, Bars) and bars.labels[bars.marked[0]] == source
    assert bars.values == tuple(expected.differences[number] for number in expected.order)
    plain = CompareState(source=source, pairs=PAIRS).content(workspace)
    assert plain.facts["order"] == [0, 1, 2] and "differences" not in plain.figures


def test_a_file_is_translated_once_for_all_of_its_sentences(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    translate = Translator.translate_nbest

    def counted(self: Translator, texts: Any, *arguments: Any, **options: Any) -> Any:
        counts.append(len(texts))
        return translate(self, texts, *arguments, **options)

    monkeypatch.setattr(Translator, "translate_nbest", counted)
    pairs = (*PAIRS, "two dogs\tzwei Hunde")
    for pair in pairs:
        source, reference = pair.split("\t")
        CompareState(source=source, reference=reference, pairs=pairs, order="bleu").content(workspace)
    assert counts.count(len(pairs)) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", "the text is blank"),
        ("&source=a&model=three", "there is no model 'three': the loaded models are one, two, trained"),
        ("&source=a&other=trained@7", "trained has no checkpoint of step 7: its checkpoints are 5, 10"),
        ("&source=a&other=one@7", "one has no checkpoint of step 7: it has no checkpoints"),
        ("&source=a&other=started", "started has no model yet: choose one of its checkpoints, started@5, started@10"),
        ("&source=a&other=one@x", "there is no model 'one@x'"),
        ("&source=" + "a+" * 600, "at most 512 per side"),
        ("&source=a&pairs=a", "pairs: should be a sentence, a tab and its reference, not 'a' (the address)"),
        ("&source=a&pairs=a%09+", "pairs: should be a sentence, a tab and its reference, not 'a\\t '"),
        ("&source=a&pairs=a%09b%09c", "pairs: should be a sentence, a tab and its reference"),
        ("&source=a" + "&pairs=a%09b" * (MAX_PAIRS + 1), "the file has 101 sentence pairs, but the limit is 100"),
        ("&source=a&order=ter", "order: should be '', 'chrf' or 'bleu', not 'ter'"),
    ],
)
def test_what_cannot_be_compared_is_refused(workspace: Workspace, settings: str, message: str) -> None:
    with pytest.raises(DragomanError) as error:
        parse_view_state(f"view=compare{settings}").content(workspace)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_models_of_other_languages_and_kinds_are_refused(tmp_path: Path, workspace: Workspace) -> None:
    write_tiny_model(tmp_path / "ende")
    write_tiny_model(tmp_path / "deen")
    meta = tmp_path / "deen" / "meta.json"
    meta.write_text(meta.read_text("utf-8").replace('"source_language": "en"', '"source_language": "fr"'), "utf-8")
    write_tiny_language_model(tmp_path / "lm")
    opened = Workspace([tmp_path / name for name in ("ende", "deen", "lm")], "cpu")
    with pytest.raises(ConfigError, match="ende translates from en, and deen from fr: compare models of the same lang"):
        CompareState(source="a").content(opened)
    with pytest.raises(DragomanError, match="lm is a language model; it cannot translate"):
        CompareState(source="a", other="lm").content(opened)
