"""Removes the folders of one machine from the text of a model card, which is published with the model."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

_ABSOLUTE = re.compile(r"(?<![\w./:<~])~?/(?:[^,|()`\n/]*[^,|()`\s/]/)+(?=[^,|()`\s/])")
"""Matches the folders of an absolute path. A name in it may contain blanks, but not at its end."""


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
