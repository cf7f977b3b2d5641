"""The dashboard has the form that Grafana's own types describe."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from deployed_queries import DASHBOARD
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from pydantic import ConfigDict, TypeAdapter, ValidationError


def faults(dashboard: dict[str, Any]) -> list[str]:
    """Return the keys that Grafana does not know, and the values that are not of its types."""
    register_default_plugins()
    read = Dashboard.from_json(copy.deepcopy(dashboard))
    written = json.loads(JSONEncoder().encode(read))
    return [*lost(dashboard, written, "dashboard"), *wrong_types(read, "dashboard")]


def lost(given: Any, written: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that are missing or different after reading and writing."""
    if isinstance(given, dict) and isinstance(written, dict):
        for key, value in given.items():
            yield from lost(value, written[key], f"{path}.{key}") if key in written else [f"{path}.{key}"]
    elif isinstance(given, list) and isinstance(written, list) and len(given) == len(written):
        for number, values in enumerate(zip(given, written, strict=True)):
            yield from lost(*values, f"{path}[{number}]")
    elif given != written:
        yield path


def wrong_types(value: Any, path: str) -> Iterator[str]:
    """Yield the attributes whose values are not of their declared types."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from wrong_types(each, f"{path}[{number}]")
    hints = get_type_hints(type(value)) if type(value).__module__.startswith("grafana_foundation_sdk.models") else {}
    for name in vars(value).keys() & hints.keys() if hints else ():
        attribute = getattr(value, name)
        if attribute is not None:
            try:
                TypeAdapter(hints[name], config=ConfigDict(arbitrary_types_allowed=True)).validate_python(attribute)
            except ValidationError:
                yield f"{path}.{name}"
            yield from wrong_types(attribute, f"{path}.{name}")


def test_grafana_knows_each_key_and_each_value() -> None:
    assert faults(DASHBOARD) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda board: board.update(tittle="dragoman"), "dashboard.tittle"),
        (lambda board: board["panels"][0].update(id="first"), "dashboard.panels[0].id_val"),
        (lambda board: board["panels"][0].update(gridpos={}), "dashboard.panels[0].gridpos"),
        (lambda board: board["panels"][0]["targets"][0].update(expression="up"), "panels[0].targets[0].expression"),
        (lambda board: board["panels"][11]["targets"][0].update(format="tabel"), "panels[11].targets[0].format_val"),
        (lambda board: board["templating"]["list"][1].update(refresh=7), "templating.list_val[1].refresh"),
        (lambda board: board["templating"]["list"][0].update(type="source"), "templating.list_val[0].type_val"),
    ],
)
def test_a_fault_is_found(change: Callable[[dict[str, Any]], object], fault: str) -> None:
    board = copy.deepcopy(DASHBOARD)
    change(board)
    assert [each for each in faults(board) if each.endswith(fault)]


def test_panels_and_queries_use_the_variable_of_the_data_source() -> None:
    sources = {each["name"] for each in DASHBOARD["templating"]["list"] if each["type"] == "datasource"}
    others = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    used = {each["datasource"]["uid"] for each in [*DASHBOARD["panels"], *targets, *others]}
    assert used == {f"${{{name}}}" for name in sources}
    for panel in DASHBOARD["panels"]:
        names = [target["refId"] for target in panel["targets"]]
        assert names and len({*names}) == len(names), panel["title"]


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len({*cells}) == len(cells) and max(x for x, _ in cells) < 24  # Grafana's grid has 24 columns
