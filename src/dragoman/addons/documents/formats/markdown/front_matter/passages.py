"""`front_passages`: the passages of a value of front matter, whose text may contain Markdown."""

import re
from collections.abc import Iterator

from dragoman.addons.documents.formats.markdown.block import Block, Source
from dragoman.addons.documents.formats.markdown.dialects import mask_dialects
from dragoman.addons.documents.formats.markdown.inline import build_passage
from dragoman.addons.documents.formats.markdown.parser import MarkdownParser
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage

_PARAGRAPH_END = re.compile(
    r"(?<!\s)(?:\s*\n(?:[ \t]*\n)+\s*|\s*\n[ \t]*(?=(?:[-*+>#|]|[0-9]{1,9}[.)])[ \t])|\s+\Z)|\A\s+"
)


def front_passages(text: str, parser: MarkdownParser, languages: Languages) -> list[str | Passage]:
    """Return the untranslated parts and the passages of a value. Empty lines and list items separate passages.

    The text is written as it is: the language of the front matter, such as YAML, has its own escapes.
    """
    return list(_parts(Source(text, mask_dialects(text), parser, {}, languages)))


def _parts(source: Source) -> Iterator[str | Passage]:
    begin = 0
    for match in _PARAGRAPH_END.finditer(source.text):
        yield from _passage(source, begin, match.start())
        yield match[0]
        begin = match.end()
    yield from _passage(source, begin, len(source.text))


def _passage(source: Source, begin: int, end: int) -> Iterator[str | Passage]:
    if begin < end:
        block = Block(source.masked.text[begin:end], range(begin, end + 1), lambda text, _: text)
        text = source.text[begin:end]
        yield build_passage(block, source) or Passage(text, text)
