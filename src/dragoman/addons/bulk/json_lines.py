"""`JsonLines`: the format with one JSON object per line. The translation of a field becomes a new field."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.addons.bulk.format import LinesFormat, Window, numbered_chunks
from dragoman.base.errors import DataError
from dragoman.data.corpora.inputs import read_any_lines, read_lines
from dragoman.data.files.jsonl import field_text, read_object
from dragoman.data.files.lines import has_broken_utf8
from dragoman.inference.translation.files.faulty_lines import OnError

_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Lone surrogates that JSON escapes can contain. Invalid bytes are decoded to other surrogates."""
_BROKEN_BYTE = "\udcff"


@dataclass(frozen=True)
class JsonLines(LinesFormat):
    """JSON Lines. source: the field to translate, a key or a path of keys joined by dots. target: the key of the
    translation.
    """

    source: str
    target: str

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """See `ShardFormat.windows`. The text of a blank line or a null is empty."""
        read = read_lines if on_error == "stop" else read_any_lines
        for first, lines in numbered_chunks(read(path, "json"), size):
            texts = [
                self._text(line, f"{path}, line {number}", on_error) for number, line in enumerate(lines, start=first)
            ]
            yield Window(first, texts, lines)

    def lines(self, window: Window, translations: list[str]) -> Iterator[str]:
        """Yield each line with a new field at its end and with U+FFFD for invalid bytes. Blank lines stay blank."""
        for line, translation in zip(window.rest, translations, strict=True):
            if has_broken_utf8(line):
                line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            if not line.strip():
                yield line
                continue
            head = line.rstrip().removesuffix("}").rstrip()
            comma = "" if head.strip() == "{" else ", "
            yield f"{head}{comma}{_dump(self.target)}: {_dump(translation)}}}"

    def _text(self, line: str, location: str, on_error: OnError) -> str:
        if not line.strip():
            return ""
        entry: dict[str, Any] = read_object(line, location)
        if self.target in entry:
            raise DataError(
                f"{location}: the object already has a field {self.target!r}, which the translation would replace: "
                "choose another field with --target-field"
            )
        text = _LONE_SURROGATE.sub(_BROKEN_BYTE, field_text(entry, self.source, location, "--source-field"))
        if on_error == "stop" and has_broken_utf8(text):
            raise DataError(f"{location}: the field {self.source!r} contains an escaped lone surrogate")
        return text


def _dump(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
