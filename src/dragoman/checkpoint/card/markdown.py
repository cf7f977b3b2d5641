"""The Markdown of a model card: sections, and text without the folders of one machine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

UNKNOWN = "not stated"
"""Stands for a value that neither the settings nor the data contain."""

_ABSOLUTE = re.compile(r"(?<![\w./:<~])~?/(?:[^,|()`\n/]*[^,|()`\s/]/)+(?=[^,|()`\s/])")
"""Matches the folders of an absolute path. A name in it may contain blanks, but not at its end."""


def with_section(card: str, title: str, lines: Sequence[str]) -> str:
    """Return a card with a section. It repositions the section of this title, or else precedes the section `Use`."""
    heading, following = f"## {title}", "## Use"
    existing = card.splitlines()
    start = existing.index(heading) if heading in existing else None
    if start is not None:
        rest = existing[start + 1 :]
        end = next((number for number, line in enumerate(rest, start + 1) if line.startswith("## ")), len(existing))
        before, after = existing[:start], existing[end:]
    elif following in existing:
        position = existing.index(following)
        before, after = existing[:position], existing[position:]
    else:
        before, after = [*existing, ""], []
    lines = without_folders("\n".join(lines)).split("\n")
    return "\n".join([*before, heading, "", *lines, "", *after]).rstrip("\n") + "\n"


def without_folders(text: str, config: Mapping[str, Any] | None = None) -> str:
    """Return the text with each absolute path reduced to its last name.

    config: settings of the run. The paths in them are recognised whatever characters they contain.
    """
    paths = {path for path in _strings(config or {}) if path.startswith("/") and PurePath(path).name}
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, PurePath(path).name)
    return _ABSOLUTE.sub("", text)


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in nested settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
