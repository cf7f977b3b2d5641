"""Writes translated Markdown: with the fewest escapes, and with links whose keys and anchors still lead somewhere."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import regex

from dragoman.addons.documents.formats.markdown.dialects import mask_dialects
from dragoman.addons.documents.formats.markdown.parser import MarkdownParser

# Documents are valid Unicode, so lone surrogates can mark what is decided when the whole block is written.
_ESCAPE, _LINE_START, _LABEL, _KEY, _OTHER, _END, _ANCHOR, _ANCHOR_END = (chr(0xD800 + index) for index in range(8))
_LANGUAGE, _TARGET, _LANGUAGE_END = (chr(0xD808 + index) for index in range(3))
_ESCAPES = re.compile(f"[{_ESCAPE}{_LINE_START}]")
_MARKERS = re.compile("[\ud800-\ud80a]")
_AT_LINE_START = re.compile(rf"^([ \t]*){_LINE_START}([0-9]*)", re.MULTILINE)
_KEYED_LINK = re.compile(f"{_LABEL}([^{_LABEL}{_KEY}]*){_KEY}([^{_OTHER}]*){_OTHER}([^{_END}]*){_END}")
_LANGUAGES = re.compile(f"{_LANGUAGE}([^{_TARGET}]*){_TARGET}([^{_LANGUAGE_END}]*){_LANGUAGE_END}")
_ANCHORS = re.compile(f"{_ANCHOR}([^{_ANCHOR_END}]*){_ANCHOR_END}")

_SPECIAL = re.compile(r"[\\`*\[\]<$={]|~|\^(?=\[)|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_BEGINNING = re.compile(
    r"(?:#{1,6}(?=\s|\Z)|>|[*+-](?=\s|\Z)|[0-9]{1,9}(?=[.)](?:\s|\Z))|[=-]+\s*\Z|([-*_])(?:[ \t]*\1){2,}\s*\Z|~{3}|`{3}"
    r"|:(?=\s)|:{3}|(?:!!!|\?\?\?)\+?(?=\s)|<(?=[A-Za-z/!?])|\[[ xX]\](?=\s)|\*?\[[^\]]*\]:)"
)
_IN_CELL = re.compile(r"\|")
_FRAGMENT = re.compile(r"(\]\(\s*<?#|\]:\s*<?#|href=[\"']#)([^\s\"'<>)]+)")
_NOT_IN_SLUG = regex.compile(r"[^\p{L}\p{M}\p{N}\p{Pc}\- ]")


def escape_paragraph(text: str, begins: bool) -> str:
    """Mark every character that could be parsed as markup. begins: whether the text starts a sentence."""
    result = _BEGINNING.match(text) if begins else None
    first = 0 if result is None else result.end() if result[0].isdigit() else 1
    marker = "" if result is None else _LINE_START
    return marker + text[:first] + _SPECIAL.sub(f"{_ESCAPE}\\g<0>", text[first:])


def escape_heading(text: str, begins: bool) -> str:
    """Like `escape_paragraph`, for headings, where only a `#` at the end needs an escape."""
    marked = _SPECIAL.sub(f"{_ESCAPE}\\g<0>", text)
    return re.sub(r"(?<=\s)(#+)\Z", r"\\\1", marked)


def escape_cell(text: str, begins: bool) -> str:
    """Like `escape_paragraph`, for cells of tables, which end at a pipe."""
    return _IN_CELL.sub(r"\\|", _SPECIAL.sub(f"{_ESCAPE}\\g<0>", text))


def mark_label(opening: str) -> str:
    """Mark the start of a link whose text is its key."""
    return opening + _LABEL


def mark_key(key: str, closing: str) -> str:
    """Return the end of a link whose text is its key. closing: the end of the source's link, `]` or `][]`."""
    return f"{_KEY}{key}{_OTHER}{closing}{_END}"


def mark_anchors(markup: str) -> str:
    """Mark the anchors of this document that links lead to."""
    return _FRAGMENT.sub(lambda match: f"{match[1]}{_ANCHOR}{match[2]}{_ANCHOR_END}", markup)


def mark_language(source: str, target: str) -> str:
    """Mark the source language in an attribute, which is replaced with the target language if any text changes."""
    return f"{_LANGUAGE}{source}{_TARGET}{target}{_LANGUAGE_END}"


def write_languages(text: str, is_translated: bool) -> str:
    """Replace marked languages with the target language, or with the source language if nothing is translated."""
    return _LANGUAGES.sub(r"\2" if is_translated else r"\1", text)


def without_markers(text: str) -> str:
    """Return a block's source text from the form in which it is parsed."""
    keyed = _KEYED_LINK.sub(r"\1\3", text)
    while keyed != text:
        text, keyed = keyed, _KEYED_LINK.sub(r"\1\3", keyed)
    return _MARKERS.sub("", write_languages(text, is_translated=False))


def has_markers(text: str) -> bool:
    """Return whether a text must be passed to the functions below."""
    return _MARKERS.search(text) is not None


class EscapeWriter:
    """Writes backslashes only where a block would be parsed differently without them."""

    def __init__(self, parser: MarkdownParser, environment: Any) -> None:
        self._parser, self._environment = parser, environment

    def write(self, text: str) -> str:
        """Return a block with all escapes that it needs. text: a translated block with markers."""
        text = _write_keys(_AT_LINE_START.sub(r"\1\2\\", text).replace(_LINE_START, ""))
        if _ESCAPE not in text:
            return text
        wanted = self._parse(_escape_characters(text, keep="", backslash=False))
        bare = text.replace(_ESCAPE, "")
        if self._parse(bare) == wanted:
            return bare
        characters = sorted(set(re.findall(f"{_ESCAPE}(.)", text, re.DOTALL)))
        free = [
            character
            for character in characters
            if self._parse(_escape_characters(text, character, backslash=False)) == wanted
        ]
        for kept in ("".join(free), ""):
            candidate = _escape_characters(text, kept)
            if self._parse(candidate) == wanted:
                return candidate
        return _escape_characters(text, "", backslash=False)

    def _parse(self, text: str) -> list[tuple[Any, ...]]:
        """Return what a block means, without the difference between escaped and other characters."""
        masked = mask_dialects(text)
        tokens, _ = self._parser.tokens(masked.text, self._environment)
        meaning: list[tuple[Any, ...]] = [
            (element.kind, text[begin : element.end]) for begin, element in sorted(masked.elements.items())
        ]
        return meaning + _meaning(tokens)

    def plain_text(self, text: str) -> str:
        """Return the text of a heading without markup."""
        tokens, _ = self._parser.tokens(text, self._environment)
        return "".join(
            token.content if token.type != "image" else "".join(child.content for child in token.children or ())
            for token in tokens
            if token.type in ("text", "text_special", "code_inline", "image", "footnote_inline")
        )


def _escape_characters(text: str, keep: str, backslash: bool = True) -> str:
    """Escape all marked characters except those in `keep`, with backslashes or as entities."""

    def escape(match: re.Match[str]) -> str:
        if match[1] in keep:
            return match[1]
        return f"\\{match[1]}" if backslash else f"&#{ord(match[1])};"

    return re.sub(f"{_ESCAPE}(.)", escape, text, flags=re.DOTALL)


def _meaning(tokens: list[Any]) -> list[tuple[Any, ...]]:
    result: list[tuple[Any, ...]] = []
    for token in tokens:
        if token.type in ("text", "text_special"):
            if result and result[-1][0] == "text":
                result[-1] = ("text", result[-1][1] + token.content)
            elif token.content:
                result.append(("text", token.content))
        elif token.type == "image":
            result.append(("image", str(token.attrs.get("src")), *_meaning(token.children or [])))
        else:
            result.append((token.type, token.tag, token.content, str(token.attrs)))
    return result


def _write_keys(text: str) -> str:
    """Write links whose text was their key as links with text and key, unless they still have the same text."""

    def write(match: re.Match[str]) -> str:
        label, key, closing = match[1], match[2], match[3]
        return label + (closing if _ESCAPES.sub("", label) == key else f"][{key}]")

    while (written := _KEYED_LINK.sub(write, text)) != text:
        text = written
    return re.sub(f"{_KEY}([^{_OTHER}]*){_OTHER}[^{_END}]*{_END}", r"][\1]", text).replace(_LABEL, "")


def slugs(headings: list[str]) -> list[str]:
    """Return the anchors that GitHub gives to headings, in order. Repeated anchors are numbered."""
    used: set[str] = set()
    counts: dict[str, int] = {}
    result = []
    for heading in headings:
        base = slug = _NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")
        while slug in used:
            counts[base] = counts.get(base, 0) + 1
            slug = f"{base}-{counts[base]}"
        used.add(slug)
        result.append(slug)
    return result


def write_anchors(text: str, anchors: Mapping[str, str]) -> str:
    """Replace marked anchors with those of the translation. anchors: the new anchor of each old anchor."""
    replace: Callable[[re.Match[str]], str] = lambda match: anchors.get(unquote(match[1]), match[1])  # noqa: E731
    return _ANCHORS.sub(replace, text)
