"""`Heading`: a heading of a Markdown document; `translated_anchors`: what links to translated headings lead to."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.markdown.embedded_html.blocks import heading_text
from dragoman.addons.documents.formats.markdown.writing import EscapeWriter, slugs

_EXPLICIT_ID = re.compile(r"\{:?[^{}\n]*#[^{}\n]*\}[ \t]*\Z|<(?:a|h[1-6])\s[^<>]*\b(?:id|name)\s*=")


class Heading(NamedTuple):
    """A heading. source: its text with its markup; begin, end: the parts of the document with its text, if any."""

    source: str
    begin: int = 0
    end: int = 0
    is_html: bool = False


def translated_anchors(headings: Sequence[Heading], writer: EscapeWriter, written: Sequence[str]) -> dict[str, str]:
    """Return the anchor of each heading's translation by the anchor of its source. written: the translated parts."""
    old, new = [], []
    for heading in headings:
        if _EXPLICIT_ID.search(heading.source):
            continue
        plain = heading_text if heading.is_html else writer.plain_text
        old.append(plain(heading.source))
        translation = "".join(written[heading.begin : heading.end])
        new.append(plain(translation) if heading.begin < heading.end else old[-1])
    return dict(zip(slugs(old), slugs(new), strict=True))
