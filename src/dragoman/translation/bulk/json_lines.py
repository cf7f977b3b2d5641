"""`JsonLines`: one object per line with a field to translate; the translation becomes a new field."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.corpora.jsonl import field_text, read_object
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.translation.bulk.format import LinesFormat, Window, runs
from dragoman.translation.files.faulty_lines import OnError
from dragoman.translation.files.lines import read_any_lines, read_lines

_ESCAPED_ALONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Half of a surrogate pair, as JSON escapes can contain; invalid bytes are decoded to other surrogates."""
_BROKEN_BYTE = "\udcff"


@dataclass(frozen=True)
class JsonLines(LinesFormat):
    """source: the field to translate, a key or a path of keys joined by dots. target: the key of the translation."""

    source: str
    target: str

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """See `ShardFormat.windows`. Blank lines and nulls have an empty text."""
        read = read_lines if on_error == "stop" else read_any_lines
        for first, lines in runs(read(path), size):
            texts = [
                self._text(line, f"{path}, line {number}", on_error) for number, line in enumerate(lines, start=first)
            ]
            yield Window(first, texts, lines)

    def lines(self, window: Window, translations: list[str]) -> Iterator[str]:
        """Return each line with one more field at its end, and U+FFFD for invalid bytes. Blank lines stay blank."""
        for line, translation in zip(window.rest, translations, strict=True):
            if has_broken_utf8(line):
                line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            if not line.strip():
                yield line
                continue
            head = line.rstrip().removesuffix("}").rstrip()
            comma = "" if head.strip() == "{" else ", "
            yield f"{head}{comma}{_dump(self.target)}: {_dump(translation)}}}"

    def _text(self, line: str, place: str, on_error: OnError) -> str:
        if not line.strip():
            return ""
        entry: dict[str, Any] = read_object(line, place)
        if self.target in entry:
            raise DataError(
                f"{place}: the object already has a field {self.target!r}, which the translation would replace: choose "
                "another with --target-field"
            )
        text = _ESCAPED_ALONE.sub(_BROKEN_BYTE, field_text(entry, self.source, place, "--source-field"))
        if on_error == "stop" and has_broken_utf8(text):
            raise DataError(f"{place}: the field {self.source!r} has half of a surrogate pair, written as an escape")
        return text


def _dump(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
