"""Attributes of HTML tags: passages of those that are translated, and those that name a language or a direction."""

import re
from collections.abc import Callable, Iterable

from dragoman.addons.documents.formats.html.elements import VOID_TAGS, is_text_attribute
from dragoman.addons.documents.formats.html.embedded import split_embedded
from dragoman.addons.documents.formats.html.text import add_text, escape_attribute, escape_unquoted, unescape
from dragoman.addons.documents.formats.html.tokenizer import Token
from dragoman.addons.documents.languages import Direction, Languages, opposite
from dragoman.addons.documents.passage import Passage, Raw
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.text.languages.codes import is_same_language

_LANGUAGE_ATTRIBUTES = ("lang", "xml:lang")
_ISOLATED_TAGS = VOID_TAGS | {"bdo", "bdi"}
"""Elements whose direction is not that of the text around them, such as a field for telephone numbers."""

_STYLED_DIRECTION = re.compile(r"(?<![\w-])direction\s*:\s*(ltr|rtl)\b", re.IGNORECASE)

WriteLanguage = Callable[[str, str], str]
"""Returns what is written for a source language or its direction, from these and those of the target language."""


def write_target(source: str, target: str) -> str:
    """Return the target language."""
    return target


class Attributes:
    """The attributes of a tag. values: their decoded values by name; the first of several equal names counts."""

    def __init__(self, page: str, token: Token) -> None:
        self._page, self._token = page, token
        self.values: dict[str, str] = {}
        for each in token.attributes:
            self.values.setdefault(each.name, unescape(page[each.begin : each.end]))

    @property
    def language(self) -> str | None:
        """The language that the tag declares for its element, or None."""
        return next((value for name in _LANGUAGE_ATTRIBUTES if (value := self.values.get(name)) is not None), None)

    @property
    def translate(self) -> bool | None:
        """Whether the tag asks for translation or for none; None if it does neither."""
        value = self.values.get("translate")
        if value is not None and value.lower() in ("", "yes"):
            return True
        if (value is not None and value.lower() == "no") or "notranslate" in self.values.get("class", "").split():
            return False
        return None

    def is_foreign(self, languages: Languages) -> bool:
        """Return whether the tag declares another language than the source language."""
        source, language = languages.source, self.language
        return bool(source and language and not is_same_language(language, source))

    def parts(
        self,
        languages: Languages,
        split: Callable[[str], Iterable[str | Passage]] | None,
        write_language: WriteLanguage = write_target,
    ) -> Raw:
        """Return the tag, with a passage per translated attribute and with the target language for the source language.

        If the translation runs in the other direction, this is written for that of the source, and added to `<html>`.
        split: splits the page in the attribute `srcdoc` of an `iframe`. Such pages are kept if it is None.
        write_language: returns what is written for the source language.
        """
        page, token = self._page, self._token
        parts: list[str | Passage] = []
        position, seen = token.begin, set[str]()
        direction = languages.new_direction
        if direction is not None and token.name == "html" and "dir" not in self.values:
            position += len("<html")
            parts += [page[token.begin : position], write_language("", f' dir="{direction}"')]
        for each in token.attributes:
            if each.begin == each.end or each.name in seen:
                continue
            seen.add(each.name)
            parts.append(page[position : each.begin])
            raw, position = page[each.begin : each.end], each.end
            if each.name in _LANGUAGE_ATTRIBUTES:
                parts.append(_with_target(raw, languages, write_language))
            elif direction is not None and each.name in ("dir", "style") and token.name not in _ISOLATED_TAGS:
                parts.append(_with_direction(raw, each.name, direction, write_language))
            elif is_text_attribute(token.name, each.name, self.values) and not _is_code(raw, each.quoted):
                _add_passages(parts, raw, each.quoted, self.values.get("name", "").lower() == "keywords")
            elif each.name == "srcdoc" and token.name == "iframe" and split is not None:
                parts += split_embedded(raw, each.quoted, split)
            else:
                parts.append(raw)
        return (*parts, page[position : token.end])


def _is_code(raw: str, quoted: bool) -> bool:
    """Return whether a value is code of a template language, or an expression of JSX (`title={name}`)."""
    return "{{" in raw or "<?" in raw or (not quoted and raw.startswith("{"))


def _with_target(raw: str, languages: Languages, write_language: WriteLanguage) -> str:
    if languages.source is None or languages.target is None or not is_same_language(raw, languages.source):
        return raw
    return write_language(raw, languages.target.replace("_", "-"))


def _with_direction(raw: str, name: str, direction: Direction, write_language: WriteLanguage) -> str:
    """Return the value of the attribute `dir` or `style` for a translation that runs in another direction."""
    source = opposite(direction)
    if name == "dir":
        return write_language(raw, direction) if raw.strip().lower() == source else raw
    new = _STYLED_DIRECTION.sub(
        lambda found: found[0][: -len(source)] + (direction if found[1].lower() == source else found[1]), raw
    )
    return raw if new == raw else write_language(raw, new)


def _add_passages(parts: list[str | Passage], raw: str, quoted: bool, is_list: bool) -> None:
    """Add the value of an attribute. is_list: whether commas separate its texts."""
    for piece in re.split(r"([,;]\s*)", raw) if is_list else [raw]:
        builder = PassageBuilder(escape_attribute if quoted else escape_unquoted)
        add_text(builder, piece, in_attribute=True)
        builder.finish(parts.append)
