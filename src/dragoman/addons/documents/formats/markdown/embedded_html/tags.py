"""`InlineTag`: an HTML tag within the text of a Markdown block, whose attributes are translated like those of pages."""

from collections.abc import Mapping

from dragoman.addons.documents.formats.html.attributes import Attributes
from dragoman.addons.documents.formats.html.elements import UNTRANSLATED_TAGS, VOID_TAGS
from dragoman.addons.documents.formats.html.tokenizer import tokenize
from dragoman.addons.documents.formats.html.tree import element_ends
from dragoman.addons.documents.formats.markdown.writing import mark_anchors, mark_language
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, Raw

_IN_TABLES = str.maketrans({"|": "&#124;", "`": "&#96;"})


class InlineTag:
    """A tag within the text of a Markdown block. token: the tag, or None for comments and the like."""

    def __init__(self, raw: str) -> None:
        token = next(tokenize(raw), None)
        self._raw = raw
        self.token = token if token is not None and token.kind in ("start", "end") and token.end == len(raw) else None
        self.attributes = None if self.token is None else Attributes(raw, self.token)

    @property
    def is_void(self) -> bool:
        """Whether the tag has no content."""
        return self.token is None or self.token.closed or self.token.name in VOID_TAGS

    def is_kept(self, languages: Languages) -> bool:
        """Return whether the element that the tag starts is not translated."""
        if self.token is None or self.attributes is None or self.token.kind != "start":
            return False
        if self.attributes.translate is not None:
            return not self.attributes.translate
        return self.attributes.is_foreign(languages) or self.token.name in UNTRANSLATED_TAGS

    def parts(self, languages: Languages) -> Raw:
        """Return the tag, with a passage for each translated attribute."""
        if self.token is None or self.attributes is None or self.token.kind != "start":
            return (mark_anchors(self._raw),)
        parts: list[str | Passage] = []
        for part in self.attributes.parts(languages, None, mark_language):
            if isinstance(part, Passage):
                parts.append(_in_table(part))
            elif parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        return tuple(mark_anchors(part) if isinstance(part, str) else part for part in parts)


def _in_table(passage: Passage) -> Passage:
    """Return the passage of an attribute, whose translations must not end a table cell or start a code span."""
    escape = passage.escape
    return Passage(
        passage.texts,
        passage.raws,
        passage.marks,
        passage.code,
        lambda text, begins: escape(text, begins).translate(_IN_TABLES),
        passage.kept,
    )


def kept_elements(tags: Mapping[int, InlineTag], languages: Languages) -> dict[int, int]:
    """Return the index of the end tag of each untranslated element by that of its start tag. tags: by their indices."""
    indices = [index for index, tag in tags.items() if tag.token is not None]
    tokens = [token for tag in tags.values() if (token := tag.token) is not None]
    kept: dict[int, int] = {}
    for start, end in element_ends(tokens).items():
        last = tokens[end - 1]
        if last.kind == "end" and last.name == tokens[start].name and tags[indices[start]].is_kept(languages):
            kept[indices[start]] = indices[end - 1]
    return kept
