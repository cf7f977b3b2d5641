"""LaTeX (.tex): text is translated; commands, formulas, references, comments and listings are kept.

Commands that are unknown are kept with their arguments, and counted in a warning.
"""

import re
from collections import Counter

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.light_markup.latex_commands import (
    ARGUMENTS,
    CHARACTERS,
    KEPT_ENVIRONMENTS,
    LEADING_ARGUMENTS,
    RAISED,
    RAISED_COMMANDS,
    SEPARATE,
    SPAN,
    combined,
    escape_latex,
)
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.base.log import warn

_BEGIN = re.compile(r"\\begin[ \t]*\{document\}")
_TITLE = re.compile(r"\\(?:title|subtitle|date|abstract)\b")
_TOKEN = re.compile(
    r"(?P<comment>(?<!\\)%[^\r\n]*+(?:\r\n?|\n|\Z)[ \t]*)"
    r"|(?P<paragraph>[ \t]*+(?:\r\n?|\n)(?:[ \t]*+(?:\r\n?|\n))+)"
    r"|(?P<blank>[ \t]*+(?:\r\n?|\n)[ \t]*|[ \t]+|~|\\[ ,;:!]|\\(?:quad|qquad)\b[ \t]*)"
    r"|(?P<display>\$\$|\\\[)|(?P<math>\$|\\\()"
    r"|(?P<break>\\\\\*?(?:\[[^\]\r\n]*\])?|\\(?:newline|linebreak|par|tabularnewline)(?![A-Za-z])[ \t]*|&)"
    r"|(?P<command>\\(?:[A-Za-z@]+\*?|.))|(?P<open>\{)|(?P<close>\})"
    r"|(?P<sign>``|''|---?|<<|>>|,,)",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"[ \t]*(?:\r?\n[ \t]*)?(?=[\[{])")
_NAME = re.compile(r"\{([^{}\r\n]*)\}")
_SIGNS = {"``": "“", "''": "”", "---": "—", "--": "–", "<<": "«", ">>": "»", ",,": "„"}
_RAISED = re.compile(
    r"(?P<open>(?:\$|\\\()[ ]?[\^_](?P<brace>\{{)?)(?:(?P<command>{})"
    r"|(?P<sign>[0-9A-Za-z]|(?(brace)[0-9A-Za-z+*,.-]{{1,20}})))(?P<close>(?(brace)\}})[ ]?(?:\$|\\\)))".format(
        "|".join(rf"\\{name}" for name in RAISED_COMMANDS)
    )
)
_CITATION = re.compile(r"\\[A-Za-z]*cite[A-Za-z]*\*?(?![A-Za-z])")
_LONGEST_ARGUMENT, _LONGEST_FORMULA = 20_000, 5000
_DEEPEST = 20
"""The deepest nesting of texts such as notes."""

_BRACES = re.compile(r"\\[\s\S]|(?<!\\)%[^\r\n]*|[{}]")


def parse_latex(text: str, _: Languages) -> ParsedDocument[str]:
    """Parse a document, or a part of one. Of the preamble, only the title is translated."""
    reader = _Reader(text)
    begin = _BEGIN.search(text)
    if begin is None:
        reader.read(0, len(text))
    else:
        reader.read_titles(begin.start())
        reader.read(begin.start(), len(text))
    if reader.unknown:
        names = ", ".join(name for name, _ in reader.unknown.most_common(5))
        warn(f"the arguments of {len(reader.unknown):,} unknown command(s) remain untranslated, such as {names}")
    return ParsedDocument(reader.parts, "".join)


class _Reader:
    """Divides a document, or an argument in it, into parts.

    unknown: the numbers of commands with arguments that are not known.
    """

    def __init__(self, text: str, outer: "_Reader | None" = None) -> None:
        """outer: the reader of the text around the argument."""
        self._text = text
        self.parts: list[str | Passage] = []
        self.unknown: Counter[str] = Counter() if outer is None else outer.unknown
        self._builder = PassageBuilder(escape_latex)
        self._closings: list[str] = []  # the name of the span that each open brace begins, or none
        self._ends: dict[int, int] = _matching_braces(text) if outer is None else outer._ends
        self._depth: int = 0 if outer is None else outer._depth + 1

    def read_titles(self, end: int) -> None:
        """Read the titles in the preamble, up to a position."""
        at = 0
        for match in _TITLE.finditer(self._text, 0, end):
            begin = match.end()
            before = self._text[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
            if "%" in before or self._text[begin : begin + 1] != "{" or begin not in self._ends or begin < at:
                continue
            self._keep(self._text[at : begin + 1])
            self._read_text(begin + 1, self._ends[begin])
            self._finish()
            at = self._ends[begin]
        self._keep(self._text[at:end])

    def read(self, begin: int, end: int) -> None:
        """Read the text between two positions."""
        self._read_text(begin, end)
        self._finish()

    def _keep(self, raw: str) -> None:
        if raw:
            self.parts.append(raw)

    def _finish(self) -> None:
        """End a passage. One without letters becomes text that is kept."""
        found: list[str | Passage] = []
        self._builder.finish(found.append)
        self.parts += found
        self._closings = ["" for _ in self._closings]

    def _separate(self, raw: str) -> None:
        self._finish()
        self._keep(raw)

    def _read_text(self, begin: int, end: int) -> None:
        text, at = self._text, begin
        while at < end:
            token = _TOKEN.search(text, at, end)
            stop = end if token is None else token.start()
            for character in text[at:stop]:
                self._builder.add_text(character, character)
            if token is None:
                return
            at = self._token(token, end)

    def _token(self, token: "re.Match[str]", end: int) -> int:
        """Add a token, and return the position after it."""
        kind, raw, builder = token.lastgroup, token[0], self._builder
        if kind == "comment" and token.end() < end:
            builder.add_mark("empty", (raw,))
        elif kind == "comment":  # without a line end, it would comment out what follows it
            self._separate(raw)
        elif kind == "blank" and raw == "~" and _CITATION.match(self._text, token.end(), end):
            builder.add_mark("empty", (raw,))
        elif kind == "blank":
            builder.add_blank(raw)
        elif kind in ("paragraph", "break"):
            self._separate(raw)
        elif kind == "sign":
            builder.add_text(_SIGNS[raw], raw)
        elif kind == "open":
            self._open(raw, "group")
        elif kind == "close":
            self._close()
        elif kind == "command":
            return self._command(token, end)
        else:
            return self._formula(token, end)
        return token.end()

    def _open(self, raw: str, name: str) -> None:
        """Open a span, which the partner of its brace closes."""
        style: Style = "separate" if name in SEPARATE else "raised" if name in RAISED else "emphasis"
        self._builder.add_mark("open", (raw,), f"{name} {len(self._closings)}", style=style, must_contain_text=True)
        self._closings.append(f"{name} {len(self._closings)}")

    def _close(self) -> None:
        name = self._closings.pop() if self._closings else ""
        if name:
            self._builder.add_mark("close", ("}",), name)
        else:  # the span began in another passage
            self._builder.add_mark("empty", ("}",))

    def _formula(self, token: "re.Match[str]", end: int) -> int:
        """Add a formula: within a sentence, it is copied; one on lines of its own ends the passage."""
        closing = {"$$": "$$", "\\[": "\\]", "$": "$", "\\(": "\\)"}[token[0]]
        found = _formula_end(self._text, token.end(), end, closing)
        raw = self._text[token.start() : found]
        if token.lastgroup == "display":
            self._separate(raw)
        elif (sign := _raised_sign(self._text, token.start(), raw)) is not None:
            self._builder.add_mark("open", (sign["open"],), "formula", style="raised")
            for character in [sign["command"]] if sign["command"] else sign["sign"]:
                self._builder.add_text(RAISED_COMMANDS.get(character[1:], character), character)
            self._builder.add_mark("close", (sign["close"],), "formula")
        else:
            self._builder.add_code(raw.strip("$\\()[]"), raw)
        return found

    def _command(self, token: "re.Match[str]", end: int) -> int:
        raw, name = token[0], token[0][1:].rstrip("*")
        if name == "begin":
            return self._environment(token, end)
        if name in ("end", "item"):
            stop = self._arguments(token.end(), end)
            self._separate(self._text[token.start() : stop])
            return stop
        if (character := combined(self._text, token.start(), end)) is not None:
            self._builder.add_text(character[0], self._text[token.start() : character[1]])
            return character[1]
        if name in CHARACTERS:
            stop = self._after_name(token.end(), end, name)
            self._builder.add_text(CHARACTERS[name], self._text[token.start() : stop])
            return stop
        if name in ("verb", "lstinline", "mintinline") and token.end() < end:
            stop = self._verbatim(token.end(), end)
            code = self._text[token.start() : stop]
            self._builder.add_code(self._text[token.end() + 1 : stop - 1], code)
            return stop
        if name in SPAN:
            stop = self._arguments(token.end(), end, LEADING_ARGUMENTS.get(name, 0))
            if self._text.startswith("{", stop) and stop in self._ends:
                if name in ARGUMENTS:  # a heading or a note, whose text is a passage of its own
                    return self._own_text(token.start(), stop, name)
                self._open(self._text[token.start() : stop + 1], name)
                return stop + 1
            self._builder.add_mark("empty", (self._text[token.start() : stop],))
            return stop
        stop = self._arguments(token.end(), end)
        code = self._text[token.start() : stop]
        if any(map(str.isalpha, code[len(raw) :])) and name not in KEPT_ENVIRONMENTS:
            self.unknown[raw] += 1
        if name in ("ref", "eqref", "autoref", "cref", "Cref", "pageref", "nameref", "url"):
            self._builder.add_code(code[len(raw) :].strip("{}"), code)
        else:
            self._builder.add_mark("empty", (code,))
        return stop

    def _own_text(self, begin: int, brace: int, name: str) -> int:
        """Read the argument of a command as a text of its own, which for a note is within the passage."""
        end = self._ends[brace]
        if self._depth >= _DEEPEST:
            self._builder.add_mark("empty", (self._text[begin : end + 1],))
            return end + 1
        inner = _Reader(self._text, self)
        inner.read(brace + 1, end)
        parts = [self._text[begin : brace + 1], *inner.parts, "}"]
        if name in ("footnote", "footnotetext", "thanks", "marginpar", "todo"):
            self._builder.add_mark("empty", tuple(parts))
        else:
            self._finish()
            self.parts += parts
        return end + 1

    def _environment(self, token: "re.Match[str]", end: int) -> int:
        """Read the start of an environment, or the whole if its content is code or a formula."""
        named = _NAME.match(self._text, token.end())
        if named is None:
            self._builder.add_mark("empty", (token[0],))
            return token.end()
        if named[1].rstrip("*") in KEPT_ENVIRONMENTS:
            found = self._text.find(f"\\end{{{named[1]}}}", named.end(), end)
            stop = end if found < 0 else found + len(named[1]) + len("\\end{}")
        else:
            stop = self._arguments(named.end(), end)
        self._separate(self._text[token.start() : stop])
        return stop

    def _arguments(self, at: int, end: int, most: int = 9) -> int:
        """Return the position after the arguments of a command. most: of those that are not optional."""
        count = 0
        while (found := _ARGUMENT.match(self._text, at, end)) is not None:
            begin = found.end()
            if self._text[begin] == "[":
                close = self._text.find("]", begin, min(end, begin + 500))
                if close < 0 or "\n\n" in self._text[begin:close]:
                    return at
                at = close + 1
                continue
            if count == most or begin not in self._ends or self._ends[begin] - begin > _LONGEST_ARGUMENT:
                return at
            at, count = self._ends[begin] + 1, count + 1
        return at

    def _after_name(self, at: int, end: int, name: str) -> int:
        """Return the position after the blanks, or the empty braces, that follow the name of a command."""
        if not name[-1].isalpha():
            return at
        if self._text.startswith("{}", at):
            return at + 2
        blank = re.compile(r"[ \t]*").match(self._text, at, end)
        assert blank is not None
        return blank.end()

    def _verbatim(self, at: int, end: int) -> int:
        """Return the position after code between two equal signs, or in braces."""
        if self._text[at] == "{" and at in self._ends:
            return self._arguments(at, end)
        found = self._text.find(self._text[at], at + 1, min(end, at + 1000))
        return at + 1 if found < 0 else found + 1


def _formula_end(text: str, at: int, end: int, closing: str) -> int:
    """Return the position after a formula; that after its first sign if none ends it within its paragraph."""
    limit = min(end, at + _LONGEST_FORMULA)
    found = text.find(closing, at, limit)
    while found > 0 and text[found - 1] == "\\" and closing == "$":
        found = text.find(closing, found + 1, limit)
    if found < 0 or "\n\n" in text[at:found]:
        return at
    return found + len(closing)


def _raised_sign(text: str, begin: int, formula: str) -> "re.Match[str] | None":
    """Return the match of a formula that is only an exponent or an index of the word before it, as in `10$^6$`."""
    return None if not begin or text[begin - 1].isspace() or text[begin - 1] == "~" else _RAISED.fullmatch(formula)


def _matching_braces(text: str) -> dict[int, int]:
    """Return the position of the brace that closes each opening brace, without escaped ones and those in comments."""
    ends, waiting = dict[int, int](), list[int]()
    for match in _BRACES.finditer(text):
        if match[0] == "{":
            waiting.append(match.start())
        elif match[0] == "}" and waiting:
            ends[waiting.pop()] = match.start()
    return ends
