"""`parse_subtitles`: the cues of a subtitle file as a document of passages."""

from collections.abc import Iterator, Sequence

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.subtitles.continuation import CueFragment, group_fragments, sentence_start
from dragoman.addons.documents.formats.subtitles.cue import Cue, Fragment, split_cue
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup
from dragoman.addons.documents.formats.subtitles.wrapping import wrap_like
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.addons.documents.passage_builder import PassageBuilder
from dragoman.base.cancellation import until_cancelled
from dragoman.text.words import is_unspaced

_CUE_BREAK = "\ud800"
"""Separates the cues of a passage in its translation. Valid text contains no lone surrogates."""


def parse_subtitles(pieces: Sequence[str | Cue], markup: CueMarkup, language: str | None = None) -> ParsedDocument[str]:
    """Parse a subtitle file. Fragments of successive cues form one passage if a sentence connects them.

    pieces: the text of the file, in order, in which everything outside cues is kept. language: the source language, if
    known.
    """
    cues = [piece for piece in pieces if isinstance(piece, Cue)]
    split = [list(split_cue(cue.text, markup)) for cue in until_cancelled(cues)]
    groups = group_fragments(cues, split, markup, language)
    passages = [_build_passage(group, markup) for group in until_cancelled(groups)]

    def write(texts: Sequence[str]) -> str:
        cores: dict[tuple[int, int], str] = {}
        for group, passage, text in zip(groups, passages, texts, strict=True):
            if text != raw_text(passage):
                for each, core in zip(group, _divide(text, group, markup), strict=True):
                    cores[each.cue, each.piece] = core
        written = iter([_write_cue(number, parts, cores, markup) for number, parts in enumerate(split)])
        return "".join(piece if isinstance(piece, str) else next(written) for piece in pieces)

    return ParsedDocument(passages, write)


def _build_passage(fragments: Sequence[CueFragment], markup: CueMarkup) -> Passage:
    """Return the cores of fragments as a passage. A break separates the cues."""
    builder, passages = PassageBuilder(markup.escape), list[str | Passage]()
    last = ""
    for number, (_, _, fragment, text) in enumerate(fragments):
        if number:
            builder.add_mark("break", (_CUE_BREAK,), must_contain_text=True)
            if not (is_unspaced(last) and is_unspaced(text[:1])):
                builder.add_blank("")
        for kind, raw in fragment.core:
            if kind == "markup":
                tag = markup.classify(raw)
                if tag.starts_section:
                    builder.add_mark("break", ())
                builder.add_mark(tag.kind, (raw,), tag.name)
            elif kind in ("blank", "line_break"):
                builder.add_blank(raw)
            elif kind == "encoded":
                text = markup.decode(raw)
                if text.isspace() and text != "\xa0":
                    builder.add_blank(raw)
                else:
                    builder.add_text(text, raw)
            else:
                for character in raw:
                    builder.add_text(character, character)
        last = text[-1:]
    builder.finish(passages.append)
    (passage,) = passages
    assert isinstance(passage, Passage)
    return passage


def _divide(text: str, fragments: Sequence[CueFragment], markup: CueMarkup) -> Iterator[str]:
    """Yield the text of each cue of a translated passage.

    If the translation has fewer words than cues, a cue repeats the sentence of the previous cue, or else of the next
    one, because a cue with text must not become empty. If the translation is empty, the source text is kept.
    """
    parts = [part.strip(" \t") for part in text.split(_CUE_BREAK)]
    shown = [markup.visible(part).strip() for part in parts]
    known = next((each for each in shown if each), None)
    for part, visible, (_, _, fragment, _) in zip(parts, shown, fragments, strict=True):
        known = visible[sentence_start(visible) :] or known
        yield part if visible else fragment.raw_core if known is None else part + markup.escape(known, False)


def _write_cue(
    number: int, parts: Sequence[str | Fragment], cores: dict[tuple[int, int], str], markup: CueMarkup
) -> str:
    """Return the text of a cue with new cores of its fragments. Each is wrapped into lines like its source."""
    written = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            written.append(part)
            continue
        core = cores.get((number, index))
        wrapped = part.raw_core if core is None else wrap_like(part.raw_core, core, markup)
        written.append(part.head + wrapped + part.tail)
    return "".join(written)
