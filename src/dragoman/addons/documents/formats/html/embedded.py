"""`split_embedded`: splits a page within the attribute `srcdoc` of another page."""

import html
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dragoman.addons.documents.formats.html.text import unescape
from dragoman.addons.documents.passage import Passage

_QUOTES = (('"', '"'), ('"', "&quot;"), ('"', "&#34;"), ("'", "&#39;"), ("'", "&apos;"))


class _Encoding(NamedTuple):
    """The encoding of a page in an attribute: how a quotation mark is written, and whether `<` and `>` are escaped."""

    quote: str
    written: str
    with_brackets: bool

    def encode(self, text: str) -> str:
        """Encode a part of the page."""
        text = text.replace("&", "&amp;")
        if self.with_brackets:
            text = text.replace("<", "&lt;").replace(">", "&gt;")
        return text.replace(self.quote, self.written)

    def encode_part(self, part: str | Passage) -> str | Passage:
        """Encode a part of the page, including the translations of a passage."""
        if isinstance(part, str):
            return self.encode(part)
        return Passage(
            part.texts,
            tuple(map(self.encode, part.raws)),
            tuple(mark._replace(raw=tuple(map(self.encode_part, mark.raw))) for mark in part.marks),
            part.code,
            lambda text, is_start: html.escape(part.escape(text, is_start)),
            part.kept,
        )


def split_embedded(raw: str, quoted: bool, split: Callable[[str], Iterable[str | Passage]]) -> list[str | Passage]:
    """Split the page in an attribute. A page that is not encoded uniformly is kept as it is.

    raw: the value of the attribute in its page; quoted: whether it is in quotes; split: splits a page.
    """
    page = unescape(raw)
    for quote, written in _QUOTES:
        for with_brackets in (False, True):
            encoding = _Encoding(quote, written, with_brackets)
            if quoted and encoding.encode(page) == raw:
                return [encoding.encode_part(part) for part in split(page)]
    return [raw]
