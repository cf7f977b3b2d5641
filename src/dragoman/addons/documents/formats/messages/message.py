"""`Message`: one message of a program's user interface, as passages; its placeholders and tags are kept."""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from dragoman.addons.documents.formats.html.elements import style_of
from dragoman.addons.documents.formats.messages.alternatives import separators
from dragoman.addons.documents.formats.messages.icu import first_argument, has_branches, pieces
from dragoman.addons.documents.formats.messages.paired_placeholders import glued_pairs, paired_placeholders
from dragoman.addons.documents.languages import Direction
from dragoman.addons.documents.passage import Escape, Passage, raw_text
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.inference.control.keep import KINDS

MOST_BRANCHES = 32
"""The maximum number of branches into which the text around plural and select arguments is repeated."""

_MOST_REPEATED, _MOST_TIMES = 1000, 4
"""A message may become text of this many characters, or of this many times its own length, if that is more."""

LONGEST_PLACEHOLDER = 300
"""The maximum length of a placeholder in braces, in characters."""

_C_DIRECTIVE = (
    r"%(?:[0-9]+\$)?[-+#0']*+(?:[0-9]++|\*(?:[0-9]+\$)?)?(?:\.(?:[0-9]+|\*)?)?(?:hh|h|ll|l|j|z|t|L|q)?"
    r"[diouxXeEfFgGaAcCsSpnr@](?!\p{Latin})"
)
PLACEHOLDERS = "|".join(
    [
        r"\{\{[^{}]{0,90}\}\}",  # i18next, Angular, Handlebars
        rf"[$%#]?\{{[^{{}}]{{0,{LONGEST_PLACEHOLDER - 2}}}\}}",  # ICU, Python, Rails, JavaScript, Qt
        r"'[{}][^']{0,90}'",  # quoted braces of ICU
        r"\$t\([^()]{0,90}\)",  # i18next
        r"@(?:\.[a-z]+)?:(?:\([^()]{0,90}\)|[\w.-]*\w)",  # Vue
        r"%\(\w{1,90}\)[-+ #0]*+[0-9]*+(?:\.[0-9]+)?[a-zA-Z]",  # Python
        r"%<PRI[a-zA-Z0-9]+>|%[-+0-9]*<[\w.]+>[a-z]",  # C, Ruby
        _C_DIRECTIVE,
        r"(?<![\p{L}\p{N}%])%s(?=\p{L}[^%\n]{0,100}\p{L}%s(?![\p{L}\p{N}]))",  # a tag in a directive
        r"\[/?(?:b|i|u|s|url|link|img|colou?r|size|quote|code|strong|em|bold|italic)(?:=[^\[\]\n]{0,90})?\]",  # BBCode
        r"%[-+0#']*+[0-9]*+\.[0-9]+[dfgeG]",  # a unit may follow, as in %.3fs
        r"%[0-9]{1,2}(?![0-9%]|\$[a-zA-Z])|%n(?!\p{L})|%%",  # Qt, KDE
        r"\$[A-Za-z0-9_@]{1,90}\$|\$[0-9](?![0-9.,])",  # Chrome
        r"(?<![\p{L}\p{N}-])--[a-z][\w-]*",  # options of a command line
        r"(?::[a-zA-Z][\w:+.-]{0,40}:)?(?:``[^`\n]{1,90}``|`[^`'\n]{1,90}`_{0,2})",  # Sphinx
        KINDS["placeholder"],
        KINDS["url"],
        KINDS["email"],
    ]
)
_TOKEN = regex.compile(
    r"(?P<code><(code|kbd|samp|var|tt|pre)(?=[\s>])[^<>]{0,2000}>[^<>]{0,2000}</\2>)"
    rf"|(?P<comment><!--(?:(?!-->|<!--).)*+-->)|(?P<tag></?[\p{{L}}0-9][^<>]{{0,2000}}>)"
    rf"|(?P<placeholder>{PLACEHOLDERS})"
    r"|(?P<entity>&(?:\#[0-9]{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)"
    r"|(?P<pipe>(?<![ \t\n])[ \t\n]++\|{1,4}(?=[ \t\n]))|(?P<apostrophe>(?<=\p{L})''(?=\p{L}))"
    r"|(?P<blank>[ \u00a0]+)|(?P<line>\n)|(?P<other>.)",
    regex.V1 | regex.DOTALL,
)
_MNEMONIC = regex.compile(r"(?<![\p{L}\p{N}_&])[_&](?=[\p{L}\p{N}])(?![\p{L}\p{N}&]{1,30};)")
_LABEL = regex.compile(r"(?:\p{L}+ )*+(\p{L}+)[_&](?=\p{L})[\p{L} ]+(?:\.\.\.|…|:)?")
"""A label such as `E_xit`, whose key is marked within a word."""

_LONGEST_LABEL = 40
_ENTITY = regex.compile(r"&(?:amp|lt|gt|quot);")
_PLAIN_TOKEN = regex.compile(r"(?P<blank>[ \u00a0]+)|(?P<line>\n)|(?P<other>.)", regex.DOTALL)
_SPECIAL_CHARACTER = regex.compile(r"[%$#{}<>&@:/\\|\[\]*`~_^]|\.\S|--|''|www", regex.IGNORECASE)
"""A character that occurs in every text in which `_TOKEN` finds more than characters and blanks. It is found much
faster."""

_BLOCK_TAGS = frozenset(
    "address article aside blockquote dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr legend li "
    "main nav ol option p section table tbody td tfoot th thead tr ul".split()
)
"""Tags that separate texts."""

_DIRECTION = regex.compile(r"(default:|)(ltr|rtl|LTR|RTL)")
"""The direction of the text, as the programs of GTK and of WordPress ask translators for it."""

_SURROGATE = regex.compile("[\ud800-\udfff]")
_DOUBLED = regex.compile(r"\p{L}''\p{L}")
"""An apostrophe of ICU and Java, where a single one can begin quoted text."""

_VOID_TAGS = ("img", "wbr", "input")
_BEFORE_SYNTAX = regex.compile(r"(?<=\p{L})'(?=[{}<#|])")


@dataclass
class _Room:
    """The numbers of branches, and of characters in them, that a message may still have."""

    branches: int
    characters: int


class Message:
    """The text of a message.

    text: the message. passages: its translatable parts; several if it has branches for plurals or cases, or
    plural forms between bars. The text around branches is repeated in each, so that whole sentences are translated.
    is_opaque: whether its branches cannot be separated, so that it has no passages.

    A message that states the direction of the text, such as `ltr`, has no passages. The new direction replaces it.
    """

    def __init__(self, text: str, mnemonics: bool = False, direction: Direction | None = None) -> None:
        """mnemonics: whether `_` or `&` before a letter marks the key that selects a menu entry. direction: of the
        translation, if it is another one than that of the text.
        """
        self.text, self._mnemonics = text, mnemonics
        self.is_opaque = False
        self._parts: list[str | Passage] = []
        if (stated := _DIRECTION.fullmatch(text)) is not None:
            new = (direction or stated[2]).upper() if stated[2].isupper() else direction or stated[2]
            self._parts = [f"{stated[1]}{new}"]
            return
        try:
            self._parts = list(self._branches(text, _Room(MOST_BRANCHES, max(_MOST_REPEATED, _MOST_TIMES * len(text)))))
        except ValueError:
            self._parts, self.is_opaque = [text], True

    @cached_property
    def passages(self) -> list[Passage]:
        """The translatable parts."""
        return [part for part in self._parts if isinstance(part, Passage)]

    def write(self, texts: Sequence[str]) -> str:
        """Return the translated message, given the text of each passage; the message if they are all unchanged."""
        if self.passages and all(raw_text(passage) == text for passage, text in zip(self.passages, texts, strict=True)):
            return self.text
        given = iter(texts)
        written = "".join(part if isinstance(part, str) else next(given) for part in self._parts)
        # an apostrophe before a brace would begin quoted text
        quotes = "'{" in self.text or "'}" in self.text
        return _BEFORE_SYNTAX.sub("’", written) if "{" in self.text and not quotes else written

    def _branches(self, text: str, room: "_Room", counts: bool = False) -> Iterator[str | Passage]:
        """Yield the parts of a message that may have branches.

        room: what may follow. counts: whether the text is in a branch in which `#` is a number.

        Raises ValueError for an invalid message, and for too many branches or characters.
        """
        argument = first_argument(text) if has_branches(text) else None
        if argument is None:
            yield from self._plain(text, counts)
            return
        before, after = text[: argument.begin], text[argument.end :]
        repeated = has_branches(after) or has_words(before) or has_words(after)
        if repeated and argument.counts and "#" in before + after:
            raise ValueError("# would become a number")
        if not repeated:
            yield before
        for piece, is_branch in pieces(text, argument):
            if is_branch:
                inner = before + piece + after if repeated else piece
                room.branches -= 1
                room.characters -= len(inner)
                if room.branches < 0 or room.characters < 0:
                    raise ValueError("too many branches, or too much text around them")
                yield from self._branches(inner, room, counts or argument.counts)
            else:
                yield piece
        if not repeated:
            yield after

    def _plain(self, text: str, counts: bool) -> Iterator[str | Passage]:
        found: list[str | Passage] = []
        builder = PassageBuilder(escape_of(text))
        shown = _SURROGATE.sub("\ufffd", text)  # models cannot read lone surrogates
        add_message(builder, shown, text, found.append, counts=counts, mnemonics=self._mnemonics)
        builder.finish(found.append)
        yield from found


def add_message(
    builder: PassageBuilder,
    text: str,
    raws: Sequence[str],
    receive: Callable[[str | Passage], object],
    *,
    marks: Mapping[int, Callable[[PassageBuilder], None]] | None = None,
    counts: bool = False,
    mnemonics: bool = False,
) -> None:
    """Add a message to a builder. Separators of plural forms and tags of blocks are passed to `receive`, as is what
    precedes them.

    raws: the form of each character in the document. marks: functions that add the markup of the document, by the
    index of the character that stands for it. counts: whether `#` is a number. mnemonics: as in `Message`.
    """
    pattern = _TOKEN if _SPECIAL_CHARACTER.search(text) else _PLAIN_TOKEN
    tokens, at = list[tuple[str, int, int]](), 0
    for begin, end in [*separators(text, are_spaced=mnemonics), (len(text), len(text))]:
        form = text[at:begin]
        tokens += [(match.lastgroup or "", at + match.start(), at + match.end()) for match in pattern.finditer(form)]
        tokens += [("pipe", begin, end)] if begin < end else []
        at = end
    pairs = _paired_tags(text, tokens)
    placeholders = [index for index, (kind, _, _) in enumerate(tokens) if kind == "placeholder"]
    ranges = [tokens[index][1:] for index in placeholders]
    roles = glued_pairs(text, ranges) | paired_placeholders([text[begin:end] for begin, end in ranges])
    role_of = {placeholders[number]: role for number, role in roles.items()}
    mnemonic, word = _mnemonic(text) if mnemonics else (None, None)
    for index, (kind, begin, end) in enumerate(tokens):
        shown, raw = text[begin:end], "".join(raws[begin:end])
        if begin == word and mnemonic is not None:
            builder.add_mark("empty", (raws[mnemonic],))
        if marks and begin in marks and end == begin + 1:
            marks[begin](builder)
        elif begin == mnemonic and kind == "other":
            continue
        elif kind == "comment":
            builder.add_mark("empty", (raw,))
        elif kind == "tag" and _name(shown) in _BLOCK_TAGS:
            builder.finish(receive)
            receive(raw)
        elif kind == "tag":
            _add_tag(builder, shown, raw, index in pairs)
        elif kind == "code":
            builder.add_code(shown.partition(">")[2].rpartition("<")[0], raw)
        elif index in role_of:
            builder.add_mark(role_of[index].kind, (raw,), f"pair {role_of[index].name}")
        elif kind == "placeholder" or (counts and shown == "#"):
            builder.add_code(shown, raw)
        elif kind == "entity":
            meaning = html.unescape(shown)
            if meaning == shown:
                builder.add_code(shown, raw)
            else:
                builder.add_text(" " if meaning.isspace() else meaning, raw)
        elif kind == "pipe":
            builder.finish(receive)
            receive(raw)
        elif kind == "blank":
            builder.add_blank(raw)
        elif kind == "apostrophe":
            builder.add_text("'", raw)
        elif kind == "line":
            builder.add_line_break(raw)
        else:
            builder.add_text(shown, raw)


def _mnemonic(text: str) -> tuple[int | None, int | None]:
    """Return the positions of the character that marks a key, and of its word, in front of which it stays."""
    label = _LABEL.fullmatch(text) if len(text) <= _LONGEST_LABEL else None
    if label is not None:
        return label.end(1), label.start(1)
    found = [match.start() for match in _MNEMONIC.finditer(text)]
    return (found[0], found[0]) if len(found) == 1 else (None, None)


def has_words(text: str) -> bool:
    """Whether a part of a message has letters outside its placeholders and tags."""
    return any(match.lastgroup == "other" and match[0].isalpha() for match in _TOKEN.finditer(text))


def count_placeholders(text: str) -> int:
    """Return the number of placeholders in a message."""
    return sum(match.lastgroup == "placeholder" for match in _TOKEN.finditer(text))


def escape_of(text: str) -> Escape:
    """Return how translations of a message are written.

    Special characters of HTML become entities if the message has such entities, and apostrophes are doubled if they are
    in it.
    """
    has_entities, doubles = _ENTITY.search(text) is not None, _DOUBLED.search(text) is not None

    def escape(translation: str, _: bool) -> str:
        written = html.escape(translation, quote=False) if has_entities else translation
        return written.replace("'", "''") if doubles else written

    return escape


def _name(tag: str) -> str:
    return tag.strip("</> \t\n").partition(" ")[0].rstrip("/").lower()


def _is_empty(tag: str) -> bool:
    return tag.endswith("/>") or _name(tag) in _VOID_TAGS


def _paired_tags(text: str, tokens: Sequence[tuple[str, int, int]]) -> set[int]:
    """Return the indices of tags that open or close an element within the message."""
    waiting: dict[str, list[int]] = {}
    pairs: set[int] = set()
    for index, (kind, begin, end) in enumerate(tokens):
        tag = text[begin:end]
        if kind != "tag" or _is_empty(tag):
            continue
        if not tag.startswith("</"):
            waiting.setdefault(_name(tag), []).append(index)
        elif waiting.get(_name(tag)):
            pairs |= {waiting[_name(tag)].pop(), index}
    return pairs


def _add_tag(builder: PassageBuilder, tag: str, raw: str, is_paired: bool) -> None:
    name = _name(tag)
    if name == "br" and not is_paired:
        builder.add_line_break(raw)
    elif _is_empty(tag):
        builder.add_mark("empty", (raw,))
    elif is_paired:
        builder.add_mark("close" if tag.startswith("</") else "open", (raw,), name, style=style_of(name))
    else:
        builder.add_code(tag, raw)  # such as <file> in a usage message
