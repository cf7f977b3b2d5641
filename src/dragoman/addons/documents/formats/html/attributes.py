"""Attributes of HTML tags: the passages of those that are translated, and the attributes that name languages."""

import html
import re
from collections.abc import Callable, Iterable

from dragoman.addons.documents.formats.html.elements import is_text_attribute
from dragoman.addons.documents.formats.html.embedded import split_embedded
from dragoman.addons.documents.formats.html.text import add_text, escape_attribute, escape_unquoted
from dragoman.addons.documents.formats.html.tokenizer import Token
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, Raw
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.text.languages.codes import is_same_language

_LANGUAGE_ATTRIBUTES = ("lang", "xml:lang")

WriteLanguage = Callable[[str, str], str]
"""Returns what is written for the source language, from the source language and the target language of a `lang`."""


def write_target(source: str, target: str) -> str:
    """Return the target language."""
    return target


class Attributes:
    """The attributes of a tag. values: their decoded values by name; the first of several equal names counts."""

    def __init__(self, page: str, token: Token) -> None:
        self._page, self._token = page, token
        self.values: dict[str, str] = {}
        for each in token.attributes:
            self.values.setdefault(each.name, html.unescape(page[each.begin : each.end]))

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

        split: splits the page in the attribute `srcdoc` of an `iframe`. Such pages are kept if it is None.
        write_language: returns what is written for the source language.
        """
        page, token = self._page, self._token
        if not token.attributes:
            return (page[token.begin : token.end],)
        parts: list[str | Passage] = []
        position, seen = token.begin, set[str]()
        for each in token.attributes:
            if each.begin == each.end or each.name in seen:
                continue
            seen.add(each.name)
            parts.append(page[position : each.begin])
            raw, position = page[each.begin : each.end], each.end
            if each.name in _LANGUAGE_ATTRIBUTES:
                parts.append(_with_target(raw, languages, write_language))
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


def _add_passages(parts: list[str | Passage], raw: str, quoted: bool, is_list: bool) -> None:
    """Add the value of an attribute. is_list: whether commas separate its texts."""
    for piece in re.split(r"([,;]\s*)", raw) if is_list else [raw]:
        builder = PassageBuilder(escape_attribute if quoted else escape_unquoted)
        add_text(builder, piece, in_attribute=True)
        builder.finish(parts.append)
