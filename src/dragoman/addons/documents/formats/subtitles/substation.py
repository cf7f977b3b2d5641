"""`parse_substation`: parses SubStation Alpha (.ssa) and Advanced SubStation Alpha (.ass)."""

import re

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.subtitles.cue import Cue
from dragoman.addons.documents.formats.subtitles.document import parse_subtitles
from dragoman.addons.documents.formats.subtitles.lines import report_lines, seconds, split_lines
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup
from dragoman.addons.documents.formats.subtitles.overrides import classify_override
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.base.log import warn

_DRAWING = r"\{[^{}]*\\p[1-9][^{}]*\}(?:[^{]|\{(?![^{}]*\\p0)[^{}]*\}?)*"
_ESCAPES = {"\\h": "\xa0", "\\{": "{", "\\}": "}"}
_TIME = re.compile(r"\d+:\d+:\d+(?:[.:,]\d+)?\Z")
_SECTION = re.compile(r"\[.*\]\s*\Z")
_USUAL_FIELDS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
_GENERATED = ("fx", "template", "code", "pre-line", "karaoke-template")
"""Effects of lines that Aegisub generates from other lines, or that contain code."""


def _escape(text: str, _: bool) -> str:
    r"""Encode text. A word joiner after a backslash prevents that `\N` becomes a line break (libass)."""
    text = re.sub(r"\\(?=[Nnh{}])", "\\\\\u2060", text.replace("\r", " ").replace("\n", " "))
    return text.replace("{", "\\{").replace("}", "\\}").replace("\xa0", "\\h")


MARKUP = CueMarkup(
    re.compile(rf"{_DRAWING}|\{{[^{{}}]*\}}"),
    _escape,
    classify_override,
    encoded=re.compile(r"\\[h{}]"),
    decode=_ESCAPES.__getitem__,
    line_break=re.compile(r"\\[Nn]"),
    new_text=re.compile(r"\{[^{}]*\\(?:fn|fs[0-9]|r(?![a-z]))"),  # the same text in another language, in most files
)


def parse_substation(text: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
    """Parse a file. The texts of the dialogue lines are translated, and everything else is kept.

    The field names in the `Format` line of the events determine the positions of the fields. Lines that Aegisub
    generates for karaoke effects, and dialogue lines with too few fields, remain untranslated, with a warning.
    """
    pieces: list[str | Cue] = []
    fields: tuple[str, ...] = _USUAL_FIELDS
    in_events, has_dialogue = True, False
    malformed, generated = [], []
    for number, (line, end) in enumerate(split_lines(text)):
        kind, colon, values = line.partition(":")
        kind = kind.strip().lower()
        if _SECTION.match(line.strip()):
            in_events = line.strip().lower() == "[events]"
        elif in_events and kind == "format" and colon:
            names = tuple(name.strip().lower() for name in values.split(","))
            fields = names if "text" in names else _USUAL_FIELDS
        elif in_events and kind == "dialogue" and colon:
            has_dialogue = True
            found = _split_fields(values, fields)
            if found is None:
                malformed.append(number)
            elif found["effect"].strip().lower().startswith(_GENERATED):
                generated.append(number)
            else:
                before, after = found["before"], found["after"]
                body = values[len(before) : len(values) - len(after)]
                pieces += [line[: len(line) - len(values)] + before, _cue(body, found), after + end]
                continue
        pieces.append(line + end)
    if not has_dialogue and text.strip():
        warn("no line starts with Dialogue:, so this file has no subtitles and remains unchanged")
    report_lines(malformed, "of dialogue have too few fields, and remain unchanged")
    report_lines(generated, "contain generated effects or code, and remain unchanged")
    return parse_subtitles(pieces, MARKUP, languages.source)


def _split_fields(values: str, names: tuple[str, ...]) -> dict[str, str] | None:
    """Return the fields of a line by name, and the raw text `before` and `after` its text; None if fields are missing.

    Only the text contains commas. It is the last field, except in files whose `Format` line says otherwise.
    """
    position = names.index("text")
    parts = values.split(",", position)
    if len(parts) <= position:
        return None
    following = len(names) - position - 1
    last = parts[position].rsplit(",", following) if following else [parts[position]]
    if len(last) <= following:
        return None
    found = dict.fromkeys(("start", "end", "style", "name", "actor", "effect"), "")
    found |= zip(names, [*parts[:position], *last], strict=True)
    found["before"] = "".join(f"{part}," for part in parts[:position])
    found["after"] = "".join(f",{part}" for part in last[1:])
    return found


def _cue(text: str, fields: dict[str, str]) -> Cue:
    appearance = "\0".join(fields[name].strip() for name in ("style", "name", "actor", "effect"))
    begin, end = (fields[name].strip() for name in ("start", "end"))
    if _TIME.match(begin) is None or _TIME.match(end) is None:
        return Cue(text, appearance=appearance)
    return Cue(text, seconds(begin), seconds(end), appearance)
