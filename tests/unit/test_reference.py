"""The reference of settings contains every setting, and the page in docs/ is current."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from dragoman.base.settings.config import Config, known_settings
from dragoman.base.settings.reference import markdown, plain, sections, select
from dragoman.cli.main import main
from dragoman.tasks.kinds import TASKS
from dragoman.tasks.translation.config import TranslationRun

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


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


def test_the_page_is_current(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name, task in TASKS.items() if not task.run.__module__.startswith("dragoman.")]:
        monkeypatch.delitem(TASKS, name)  # other tests register tasks of their own
    assert main(["settings", "--markdown"]) == 0
    current = capsys.readouterr().out
    assert PAGE.read_text("utf-8") == current, (
        "run: PYTHONPATH=src python -m dragoman settings --markdown > docs/reference/settings.md"
    )


def test_one_group_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "train.schedule"]) == 0
    out = capsys.readouterr().out
    assert "train.schedule.peak" in out
    assert "kind: cosine" in out
    assert "train.seed" not in out


def test_a_mistyped_path_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "train.schedul"]) == 2
    assert "train.schedule" in capsys.readouterr().err
    assert main(["settings", "max_steps"]) == 2
    assert "train.max_steps" in capsys.readouterr().err
