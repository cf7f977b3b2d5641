"""docs/lecture/decks.md names only settings, commands, options, files, tests, names and headings that exist."""

import pytest
from documented import code, faults, items
from repository import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "lecture" / "decks.md").read_text(encoding="utf-8")
PLAIN = frozenset({"runs/ende", "runs/lm"})
"""Placeholders for the reader's own folders."""


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "somewhere")  # named in recipes, but not opened here


def test_everything_that_the_page_names_exists() -> None:
    assert faults(PAGE, DOCS / "lecture", PLAIN) == []
    assert len(code(PAGE)) > 250
    assert set(code(PAGE)) >= PLAIN


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("`model: {encoder: {norm: post}}`", None),
        ("`model: {encoder: {norm: beside}}`", "should be 'post' or 'pre'"),
        ("`model: {encoder: {norms: post}}`", "did you mean model.encoder.norm?"),
        ("`model: {encoder: {attention: {scorer: {kind: cosine}}}}`", "unknown kind 'cosine'"),
        ("`model: {encoder: {kind: recurrent}, positions: {kind: rotary}}`", "does not have"),
        ("`model: {encoder: {norm: post}`", "expected ',' or '}'"),
        ("`{task: {kind: language_model}, model: {preset: base}}`", None),
        ("`{task: {kind: language_model}, model: {encoder: {layers: 1}}}`", "unknown setting model.encoder"),
        ("`model.encoder.norm=post model.encoder.layers=2`", None),
        ("`model.encoder.norm=beside`", "should be 'post' or 'pre'"),
        ("`task.kind=language_model model.encoder.layers=1`", "unknown setting model.encoder"),
        ("`search.length_factor`", None),
        ("`search.longest_factor`", "no such setting"),
        ("`dragoman translate runs/ende --beam 5`", None),
        ("`dragoman interpret runs/ende`", "no such command"),
        ("`dragoman translate runs/ende --beams 5`", "no option --beams"),
        ("`dragoman train recipes/nowhere.yaml`", "no file recipes/nowhere.yaml"),
        ("`dragoman train recipes/multi30k-en-de.yaml train.seeds=1`", "did you mean train.seed?"),
        ("`dragoman describe model.preset=huge`", "preset"),
        ("`dragoman positions kind=sinusoidal bases=3`", "did you mean base?"),
        ("`torchrun --nproc-per-node 2 -m dragoman train recipes/multi30k-en-de.yaml`", None),
        ("`torchrun --nproc-per-node 2 -m dragoman drain`", "no such command"),
        ("`python benchmarks/variants --speed`", None),
        ("`python benchmarks/variants --fast`", "no option --fast"),
        ("`python benchmarks/nothing.py`", "no such file"),
        ("`make demo`", None),
        ("`make coffee`", "no such target"),
        ("`test_decks.py::test_every_item_can_be_followed`", None),
        ("`test_dock.py::test_every_item_can_be_followed`", "no such file of tests"),
        ("`test_decks.py::test_no_item_can_be_followed`", "no such test"),
        ("`dragoman.Translator.translate`", None),
        ("`dragoman.Translator.hearing`", "no such name"),
        ("`lecture_code.attention_as_convolution.Convolution9d`", "no such name"),
        ("[variants](reference/variants.md#presets), [here](#a-heading-000)\n\n# A heading: 000\n", None),
        ("[variants](variations.md)", "no such file"),
        ("[variants](reference/variants.md#presents)", "no such heading"),
        ("`norm_first=True`", "code of a form that nothing checks"),
        ("`dragoman demo", "half a span of code"),
    ],
)
def test_each_violation_is_noticed(page: str, reason: str | None) -> None:
    found = faults(f"| a formula | {page} |\n", DOCS)
    if reason is None:
        assert found == []
    else:
        assert len(found) == 1 and reason in found[0]


def followable(text: str) -> bool:
    """Return whether an item names a test, or gives a reason or a reference instead."""
    return "test_" in text or "not tested" in text or "](#" in text


def test_every_item_can_be_followed() -> None:
    found = list(items(PAGE.split("## 000", 1)[1]))
    assert len(found) > 120
    assert [slide for slide, text in found if not followable(text)] == []
    assert not followable("`model: {encoder: {norm: post}}`; V: 61.4")


def test_the_five_decks_are_in_order() -> None:
    assert [line[3:6] for line in PAGE.split("\n") if line.startswith("## ")] == ["000", "001", "002", "003", "004"]
