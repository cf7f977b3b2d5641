"""`Catalogue`: the entries of a gettext catalogue (.po, .pot) with their positions in the file.

The file format: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.base.errors import DataError

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_KEYWORD = re.compile(r"[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[([0-9]{1,3})\])?|domain)[ \t]*")
_STRING = re.compile(r'[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*\r?\n?\Z')
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = (
    {chr(code): f"\\{code:03o}" for code in range(32)}
    | {text: f"\\{name}" for name, text in _CONTROLS.items()}
    | {"\\": "\\\\", '"': '\\"'}
)
CHARSET = re.compile(r'(Content-Type:[^"\n]*?charset=)([A-Za-z0-9_.:+-]+)', re.IGNORECASE)
"""Matches the declaration of the encoding in the header."""

WIDTH = 79
"""The maximum length of a line in characters, as the tools of gettext wrap them."""


@dataclass
class Entry:
    """A message. begin: the position of its first keyword; line: its line number; flags_at: the position of its flags.

    text, plural: `msgid` and `msgid_plural`; translations: `msgstr` by number; span: (begin, end) of their lines.
    """

    begin: int
    line: int
    flags_at: int | None
    flags: frozenset[str]
    context: str | None = None
    text: str | None = None
    plural: str | None = None
    translations: dict[int, str] = field(default_factory=dict)
    span: tuple[int, int] = (0, 0)

    @property
    def is_header(self) -> bool:
        """Whether this is the header of the catalogue."""
        return self.text == "" and self.context is None


@dataclass(frozen=True)
class Catalogue:
    """entries: in order, the header included. newline: of the file. width: the maximum length of lines, None if lines
    are not wrapped."""

    entries: Sequence[Entry]
    newline: str
    width: int | None

    def lines_of(self, keyword: str, text: str) -> str:
        """Return a keyword with its string as lines of the file, wrapped as gettext does."""
        pieces = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
        one_line = f'{keyword} "{escaped(text)}"'
        if len(pieces) <= 1 and (self.width is None or len(one_line) <= self.width):
            return one_line + self.newline
        lines = [f'{keyword} ""']
        for piece in pieces:
            lines += [f'"{line}"' for line in _wrapped(escaped(piece), self.width)]
        return "".join(line + self.newline for line in lines)


def charset_of(text: str) -> str:
    """Return the encoding that the header of a catalogue declares, by default UTF-8."""
    found = CHARSET.search(text, 0, 10_000)
    return "UTF-8" if found is None or found[2] == "CHARSET" else found[2]


def read_catalogue(text: str, origin: Path | str = "the document") -> Catalogue:
    """Parse a catalogue. Obsolete entries (`#~`) are comments. origin: name of the catalogue, for messages.

    Raises DataError for a syntax error, with its line.
    """
    entries: list[Entry] = []
    entry: Entry | None = None
    flags: tuple[list[str], int] | None = None
    at, long_lines = 0, False
    strings: list[str] = []  # the pieces of the current string
    target = ("", -1)
    is_domain = False

    def finish() -> None:
        if entry is not None and target[0]:
            _assign(entry, target, unescaped("".join(strings)))

    for number, match in enumerate(_LINE.finditer(text), 1):
        line, begin, at = match[0], match.start(), match.end()
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            if stripped.startswith("#,"):
                names = [name.strip() for name in stripped[2:].split(",")]
                flags = ([], begin) if flags is None else flags
                flags[0].extend(names)
            elif stripped.startswith("#~"):  # the flags are those of an obsolete entry
                flags = None
            continue
        keyword = _KEYWORD.match(line)
        string = _STRING.match(line, 0 if keyword is None else keyword.end())
        if string is None or (keyword is None and entry is None and not is_domain):
            raise DataError(f"{origin}, line {number}: not a line of a gettext catalogue: {stripped[:60]!r}")
        long_lines |= len(stripped) > WIDTH + 2 and " " in string[1].strip()[:-1]
        if keyword is not None:
            finish()
            strings, name = [], keyword[1].partition("[")[0]
            is_domain = name == "domain"
            if is_domain:
                entry, target = None, ("", -1)
                continue
            starts = entry is None or bool(entry.translations) or (entry.text is not None and name == "msgctxt")
            if name in ("msgctxt", "msgid") and starts:
                names, flags_at = flags or ([], None)
                entry = Entry(begin, number, flags_at, frozenset(names))
                entries.append(entry)
                flags = None
            _check_order(entry, name, f"{origin}, line {number}")
            assert entry is not None
            target = (name, int(keyword[2] or 0))
            if name == "msgstr":
                entry.span = (entry.span[0] if entry.translations else begin, at)
                entry.translations.setdefault(target[1], "")
        elif target[0] == "msgstr" and entry is not None:
            entry.span = (entry.span[0], at)
        strings.append(string[1])
    finish()
    if entry is not None and not entry.translations:
        raise DataError(f"{origin}, line {entry.line}: this message has no msgstr: the file ends early")
    newline = "\r\n" if "\r\n" in text else "\n"
    return Catalogue(entries, newline, None if long_lines else WIDTH)


def _check_order(entry: Entry | None, name: str, location: str) -> None:
    """Raise DataError for a keyword that may not follow the others of its entry."""
    valid = entry is not None and {
        "msgctxt": entry.text is None,
        "msgid": entry.text is None,
        "msgid_plural": entry.text is not None and entry.plural is None and not entry.translations,
        "msgstr": entry.text is not None,
    }.get(name, True)
    if not valid:
        raise DataError(f"{location}: {name} is not allowed here in a gettext catalogue")


def _assign(entry: Entry, target: tuple[str, int], text: str) -> None:
    match target[0]:
        case "msgctxt":
            entry.context = text
        case "msgid":
            entry.text = text
        case "msgid_plural":
            entry.plural = text
        case _:
            entry.translations[target[1]] = text


def unescaped(text: str) -> str:
    """Return the text that a string of a catalogue means."""

    def meaning(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else _CONTROLS.get(code, code)

    return _ESCAPE.sub(meaning, text) if "\\" in text else text


def escaped(text: str) -> str:
    """Return a text as the content of a string."""
    return "".join(_ESCAPED.get(character, character) for character in text)


def _wrapped(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of an escaped string, each ending after a blank if possible."""
    if width is None:
        yield text
        return
    line = ""
    for word in re.findall(r"[^ ]* +|[^ ]+\Z", text) or [text]:
        if line and len(line) + len(word.rstrip(" ")) + 2 > width:
            yield line
            line = ""
        line += word
    if line:
        yield line
