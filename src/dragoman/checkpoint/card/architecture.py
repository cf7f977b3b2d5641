"""`architecture`: the parts of a model as a table of its card, with their settings and numbers of parameters."""

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.base.table import Table
from dragoman.checkpoint.card.markdown import UNKNOWN


def architecture(model: Mapping[str, Any], parameters: Mapping[str, int]) -> list[str]:
    """Return the lines of the table, with one row per part, such as the encoder, and one per kind of its components.

    model: settings of the model. parameters: number of values of each parameter, by its dotted name.
    """
    simple = {name: value for name, value in model.items() if not isinstance(value, Mapping)}
    sections = {name: value for name, value in model.items() if isinstance(value, Mapping)}
    counts = {part: list(rows) for part, rows in _grouped(parameters).items()}
    rows = [("model", _outline(simple) or UNKNOWN, _number(sum(parameters.values())))]
    for name in dict.fromkeys([*(name for name in sections if name in counts), *counts]):
        rows.append((name, _outline(sections.get(name, {})), _number(sum(count for _, count in counts[name]))))
        if len(counts[name]) > 1:
            rows += [(f"– {component}", "", _number(count)) for component, count in counts[name]]
    settings = ((name, _outline(section), "") for name, section in sections.items() if name not in counts)
    rows += [row for row in settings if row[1]]
    header = ("part", "kind and settings", "parameters")
    return Table([header, *((name.replace("_", " "), *rest) for name, *rest in rows)]).markdown()


def _grouped(parameters: Mapping[str, int]) -> dict[str, Iterator[tuple[str, int]]]:
    """Return the components of each part with their sizes. Numbered components, such as layers, are one component."""
    parts: dict[str, dict[str, int]] = {}
    members: dict[tuple[str, str], set[str]] = {}
    for name, count in parameters.items():
        part, component, number = (*name.split("."), "", "")[:3]
        if component.isdigit():  # a numbered part, such as the tables of an n-gram model
            component, number = "", component
        components = parts.setdefault(part, {})
        components[component] = components.get(component, 0) + count
        if number.isdigit():
            members.setdefault((part, component), set()).add(number)
    return {part: _labelled(part, components, members) for part, components in parts.items()}


def _labelled(
    part: str, components: Mapping[str, int], members: Mapping[tuple[str, str], set[str]]
) -> Iterator[tuple[str, int]]:
    for component, count in components.items():
        several = members.get((part, component), set())
        yield f"{component} ({len(several)})" if len(several) > 1 else component, count


def _number(count: int) -> str:
    return f"{count:,}" if count else ""


def _outline(part: Mapping[str, Any]) -> str:
    """Return the kind of a part of the model and its other settings that are not null, as one text."""
    settings = []
    for name, value in part.items():
        if isinstance(value, Mapping):
            outline = _outline(value)
            if outline:
                settings.append(
                    f"{name} {outline}" if "kind" in value and "," not in outline else f"{name} ({outline})"
                )
        elif value is not None and name != "kind":
            settings.append(f"{name} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join([*([str(part["kind"])] if part.get("kind") is not None else []), *settings])
