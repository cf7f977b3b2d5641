"""The reference of settings contains every setting."""

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field
from repository import ROOT

from dragoman.base.settings.config import Config, known_settings
from dragoman.base.settings.reference import markdown, plain, sections, select
from dragoman.base.settings.shared_groups import ListedPaths
from dragoman.cli.main import main
from dragoman.cli.settings_addresses import addresses
from dragoman.tasks.registry import TASKS
from dragoman.tasks.translation.config import TranslationRun

sys.path.insert(0, str(ROOT / "docs"))
from settings_pages import SettingsPages


class Apple(Config):
    """A fruit."""

    kind: Literal["apple"] = "apple"
    weight: float = Field(0.25, gt=0, le=2, description="how heavy (kg)")


class Pear(Config):
    """Another | fruit."""

    kind: Literal["pear"] = "pear"


class Basket(Config):
    """Holds fruit.

    And this is for programmers.
    """

    fruit: Annotated[Apple | Pear, Field(discriminator="kind")] = Field(Apple(weight=0.5), description="what is in it")
    label: str | None = Field(None, description="what is written on it")
    owner: Path = Field(description="whose it is")


class Orchard(Config):
    """Grows fruit."""

    first: Annotated[Apple | Pear, Field(discriminator="kind")] = Field(Apple(), description="what grows first")
    second: Annotated[Pear | Apple, Field(discriminator="kind")] = Field(Pear(), description="what grows next")


class Garden(Config):
    """Grows what is in the basket."""

    beds: int = Field(3, description="how many beds")
    label: str | None = Field(None, description="what is written on it")
    paths: int = Field(4, description="how many paths")


def rows(path: str) -> dict[str, tuple[str, str | None]]:
    return {row.key: (row.type, row.default) for each in select(sections(Basket), path) for row in each.settings}


def test_keys_types_and_defaults_are_those_of_the_fields() -> None:
    found = rows("fruit")
    assert found["fruit.weight"] == ("number > 0 and ≤ 2", "0.5"), "the default of the field counts, not the class's"
    top = {row.key: (row.type, row.default) for row in sections(Basket)[0].settings}
    assert top == {
        "fruit": ("group of kind `apple` or `pear`", "kind: apple"),
        "label": ("text, or null", "null"),
        "owner": ("path", None),
    }


def test_each_member_of_a_union_has_its_section() -> None:
    assert [(each.path, each.kind) for each in sections(Basket)] == [("", None), ("fruit", "apple"), ("fruit", "pear")]
    assert "programmers" not in plain(sections(Basket))


def test_a_single_setting_can_be_chosen() -> None:
    assert list(rows("fruit.weight")) == ["fruit.weight"]
    assert rows("fru") == {}


def test_tables_keep_their_columns() -> None:
    table = [line for line in markdown(sections(Basket)).split("\n") if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {5}


def test_the_reference_contains_every_setting_of_a_run() -> None:
    listed = {row.key for each in sections(TranslationRun) for row in each.settings}
    one_kind_only = {key for key in known_settings(TranslationRun) if key.endswith(".kind")}
    assert set(known_settings(TranslationRun)) - one_kind_only <= listed


@pytest.fixture
def own_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests register tasks of their own."""
    for name in [name for name, task in TASKS.items() if not task.run.__module__.startswith("dragoman.")]:
        monkeypatch.delitem(TASKS, name)


@pytest.mark.slow
@pytest.mark.usefixtures("own_tasks")
def test_every_setting_of_every_task_is_on_a_page_with_its_description() -> None:
    listed = {name: sections(task.run) for name, task in TASKS.items()}
    paths, shown = ListedPaths(listed.values()), defaultdict(list)
    for name, text in SettingsPages(listed).texts().items():
        for part in re.split("^##+ ", text, flags=re.M)[1:]:
            heading, _, body = part.partition("\n\n")
            anchor = re.sub(r"[^\w-]", "", heading.lower())
            shown[f"docs/reference/settings/{name}.md#{anchor}"].append(body.replace("\\", ""))
    assert {address: texts for address, texts in shown.items() if len(texts) > 1} == {}, "anchors are unique"
    rows = {
        (task, row.key, row.type, row.description) for task in listed for each in listed[task] for row in each.settings
    }
    missing = []
    for task, key, kind, description in rows:
        own = addresses(key, listed[task], paths)
        texts = [text for address in own for text in shown[address]]
        assert len(texts) == len(own) > 0, (task, key)
        if not (kind.startswith("group") or key.endswith(".kind") or any(description in text for text in texts)):
            missing.append((task, key))
    assert missing == []


def test_shared_groups_are_listed_once_with_their_other_places() -> None:
    orchard, basket = sections(Orchard), sections(Basket)
    pages, paths = SettingsPages({"one": orchard, "two": basket}), ListedPaths([orchard, basket])
    assert [(group.path, len(group.variants)) for group in pages.groups] == [("", 2), ("first", 2)]
    text = pages.texts()["index"]
    assert "- `apple`: A fruit. Also at `second`, `fruit`." in text
    assert "*number > 0 and ≤ 2, default `0.25` (default `0.5` with task `two`)*; only with kind `apple`" in text
    assert "*group of kind `pear` or `apple`, default `kind: pear`*; only with task `one`" in text
    assert text.count("how heavy") == 1
    assert addresses("fruit.weight", basket, paths) == ["docs/reference/settings/index.md#firstweight"]
    assert addresses("second.kind", orchard, paths) == ["docs/reference/settings/index.md#first"]


def test_tasks_that_alone_have_several_settings_are_named_once_above_them() -> None:
    text = SettingsPages({"one": sections(Basket), "two": sections(Garden)}).texts()["index"]
    top = text[text.index("## The top level") : text.index("## `fruit`")]
    assert re.findall("^##+ .*", top, flags=re.M) == [
        "## The top level",
        "### `label`",
        "### `owner`",
        "### The top level with task `two`",
        "#### `beds`",
        "#### `paths`",
    ]
    assert "*whole number, default `3`*\n\nhow many beds" in top
    assert "*path, must be given*; only with task `one`" in top


def test_one_group_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "train.schedule"]) == 0
    out = capsys.readouterr().out
    assert "train.schedule.peak" in out
    assert "kind: cosine" in out
    assert "train.seed" not in out
    assert out.endswith("\nPage: docs/reference/settings/train.md#trainschedule\n")


def test_a_mistyped_path_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "train.schedul"]) == 2
    assert "train.schedule" in capsys.readouterr().err
    assert main(["settings", "max_steps"]) == 2
    assert "train.max_steps" in capsys.readouterr().err
