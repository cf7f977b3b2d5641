"""docs/reference/variants.md: every setting on it is valid, and every kind is on it."""

import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT
from setting_choices import choices

from dragoman.base.settings.config import Config, kinds, union_members
from dragoman.base.settings.load import all_overrides, load_settings
from dragoman.base.settings.yaml import parse_yaml
from dragoman.models.heads.union import HeadConfig
from dragoman.models.kinds.encoder_decoder import PRESETS
from dragoman.models.kinds.statistical import MethodConfig
from dragoman.tasks.registry import TASKS
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.task import RunConfig

START = re.compile(r"`([^`\n]*)…`")
"""Code that starts the settings of the following list: complete settings, and the start of the others."""
SECTIONS = "task data text model train search smoothing mixing tasks auxiliary_tasks".split()


def spelled_out(page: str) -> str:
    """Return the page with complete settings in its lists, without the code that starts them."""
    lines, start = [], ""
    for line in page.split("\n"):
        start = "" if line.startswith("#") else ([start, *START.findall(line)])[-1]
        codes = re.match(r"- (?:`[^`]*`(?: \(default\))?(?:, )?)+", line)
        if codes and start:
            line = re.sub("`(.*?)`", partial(_continued, start), codes[0]) + line[codes.end() :]
        lines.append(START.sub("", line))
    return "\n".join(lines)


def _continued(start: str, code: re.Match[str]) -> str:
    """Return the settings of a list item with their start, unless they start with a section."""
    complete, _, first = start.rpartition(" ")
    found = re.split(r" (?=[a-z_.]+=)", code[1])
    found = [each if each.partition(".")[0] in SECTIONS else first + each for each in found]
    return f"`{' '.join([*complete.split(), *found])}`"


PAGE = spelled_out((ROOT / "docs" / "reference" / "variants.md").read_text(encoding="utf-8"))
SNIPPET = re.compile(rf"`((?:(?:{'|'.join(SECTIONS)})[.\w]*=[^`]*)+)`")
"""One or several settings as on the command line of `dragoman train`."""
# Levels whose default means "chosen from other settings" or "none", and groups that every recipe has.
UNNAMED = {("data", "set"), ("cleaning", "set")}
OPERATION = ("metric", "bleu_tokenizer", "precision", "compile", "cuda_graphs", "of", "parallel")
"""Choices that are no variants of the model, the vocabulary or the loss; docs/reference/settings lists them."""


def snippets(page: str) -> list[str]:
    return SNIPPET.findall(page)


def settings(snippet: str) -> list[str]:
    """Divide a snippet into its settings. Values may contain blanks in brackets."""
    return re.split(r" (?=[a-z_]+[.=])", snippet)


LINES = snippets(PAGE)


def load(snippet: str, folder: Path) -> RunConfig:
    path = folder / "recipe.yaml"
    path.write_text("{}\n", encoding="utf-8")
    kind = next((each.removeprefix("task.kind=") for each in settings(snippet) if each.startswith("task.kind=")), "")
    data, *others = TASKS[kind or "translation"].placeholders
    # in addition to the data of the snippet; a run with several tasks has no data of its own
    corpora = parse_yaml(data.removeprefix("data="), "a task").content if data.startswith("data=") else {}
    rest = {f"data.{name}": corpus for name, corpus in corpora.items()}
    return load_settings(path, all_overrides(rest, others, settings(snippet)), TASKS[kind or "translation"].run)


@pytest.mark.parametrize("snippet", LINES)
def test_every_line_is_valid(snippet: str, tmp_path: Path) -> None:
    config = load(snippet, tmp_path)
    for key, value in leaves(tree(snippet)):
        found: Any = config
        for part in key:
            found = found[part] if isinstance(found, dict) else getattr(found, part)
        if isinstance(found, tuple):
            found = [each.model_dump(exclude_unset=True) if isinstance(each, Config) else each for each in found]
        found = str(found) if isinstance(found, Path) else found
        assert found == value, f"{key} is {found}, not {value}"


def tree(snippet: str) -> dict[str, Any]:
    """Return the settings of a snippet as a tree."""
    found: dict[str, Any] = {}
    for key, value, _ in all_overrides(settings(snippet)):
        level = found
        for part in key[:-1]:
            level = level.setdefault(part, {})
        level[key[-1]] = value
    return found


def test_all_settings_are_tested() -> None:
    """Code that looks like settings is a snippet that the tests above read."""
    code = re.findall(r"`([^`\n]+)`", PAGE)
    assert [each for each in code if "kind" in each and each not in LINES and "kind: " not in each] == PROSE
    assert len(LINES) > 250


PROSE = ["dragoman positions kind=alibi"]
"""Code with a kind that is no setting."""


def leaves(tree: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from leaves(value, (*key, name))
    else:
        yield key, tree


def shown(page: str) -> set[tuple[str, str]]:
    """Return fields and levels, such as (scorer, additive) or (residual, false), in the valid lines."""
    found = set()
    for snippet in snippets(page):
        for key, value in leaves(tree(snippet)):
            field, level = (key[-2], value) if key[-1] == "kind" else (key[-1], value)
            words = {None: "null", True: "true", False: "false"}
            found.add((field, words[level] if level is None or isinstance(level, bool) else str(level)))
            found |= {(name, "set") for name in key[:-1]}
    return found


@cache
def wanted() -> frozenset[tuple[str, str]]:
    """Return every kind of every union, and every level of other choices except the default."""
    found = set()
    for choice in choices(TranslationRun):
        for level in (*choice.levels, *choice.omitted) if choice.path[-1] not in OPERATION else ():
            is_kind = level not in ("true", "false", "null", "auto")
            if is_kind or level != choice.default:
                # the target's scheme is one of the same
                found.add((choice.path[-1].removeprefix("target_"), level))
    # except for attention, null means "by other settings"
    return frozenset(each for each in found - UNNAMED if each[1] != "null" or each[0] == "attention")


def test_every_kind_is_on_the_page() -> None:
    assert sorted(wanted() - shown(PAGE)) == []
    assert {("scorer", "additive"), ("positions", "alibi"), ("subword", "unigram")} <= wanted()


def test_heads_are_on_the_page() -> None:
    heads = {("head", kind) for each in union_members(HeadConfig) for kind in kinds(each)}
    assert heads - {("head", "none")} <= shown(PAGE)  # which no task trains
    assert {("task", "classification"), ("class_weights", "balanced"), ("pooling", "max")} <= shown(PAGE)


def test_statistical_methods_are_on_the_page() -> None:
    methods = {("method", kind) for each in union_members(MethodConfig) for kind in kinds(each)}
    assert {("method", "dictionary"), ("method", "word_based"), ("method", "phrase_based")} <= methods <= shown(PAGE)


def test_presets_are_on_the_page() -> None:
    assert {("preset", name) for name in PRESETS} <= shown(PAGE)


def test_a_kind_whose_lines_are_removed_is_reported() -> None:
    lines = {line: shown(line) for line in PAGE.split("\n") if snippets(line)}
    assert set().union(*lines.values()) == shown(PAGE)
    for level in wanted():
        kept = [line for line, levels in lines.items() if level not in levels]
        assert len(kept) < len(lines)
        assert level not in set().union(*(lines[line] for line in kept))
