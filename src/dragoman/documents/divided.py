"""`DividedDocument`: a document as the sentences that are translated, and all else as it is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import regex

from dragoman.control.control import Control
from dragoman.control.keep import KeepRules
from dragoman.documents.formats.format import Content, Opened
from dragoman.documents.passage import Passage, Raw, passages_in
from dragoman.documents.placement import rewritten
from dragoman.documents.sentences import Sentence, Splitter, sentences_of
from dragoman.translation.alignment import Alignment
from dragoman.translation.request import Request


@dataclass(frozen=True)
class DividedDocument(Generic[Content]):
    """sentences: in order; divided: how many of the text's own were too long, and are several of these."""

    sentences: Sequence[Sentence]
    divided: int
    _opened: Opened[Content]
    _of_passages: dict[int, list[Sentence]]

    @staticmethod
    def of(opened: Opened[Content], splitter: Splitter) -> "DividedDocument[Content]":
        """opened: by its format."""
        before = splitter.divided
        found = {id(each): list(sentences_of(each, splitter)) for each in passages_in(opened.parts)}
        flat = [sentence for sentences in found.values() for sentence in sentences]
        return DividedDocument(flat, splitter.divided - before, opened, found)

    def marked(self, texts: Sequence[str]) -> list[int]:
        """The places of sentences whose markup must find its words in their translations, `texts`."""
        return [
            place
            for place, (sentence, text) in enumerate(zip(self.sentences, texts, strict=True))
            if (sentence.marks or sentence.kept) and text != sentence.text and text.strip()
        ]

    def written(self, texts: Sequence[str], links: Sequence[Alignment]) -> Content:
        """The document with these translations. links: of each, which words come from which; of use where marked."""
        done = {
            id(sentence): rewritten(sentence, text, link)
            for sentence, text, link in zip(self.sentences, texts, links, strict=True)
        }
        return self._opened.written(["".join(self._texts([part], done)) for part in self._opened.parts])

    def _texts(self, parts: Iterable[str | Passage], done: dict[int, Raw]) -> Iterator[str]:
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            unit = mark = 0
            for each in self._of_passages[id(part)]:
                yield from self._texts(part.as_it_is(unit, each.begin, mark, each.first), done)
                yield from self._texts(done[id(each)], done)
                unit, mark = each.end, each.last
            yield from self._texts(part.as_it_is(unit, len(part.raws), mark, len(part.marks)), done)


def keeping(request: Request, sentence: Sentence) -> Request:
    """The request with what the sentence has that stays as it is."""
    if not sentence.kept:
        return request
    control = request.control or Control()
    before = control.keep or KeepRules()
    patterns = tuple(dict.fromkeys(regex.escape(text.strip()) for _, text, _ in sentence.kept))
    keep = replace(before, patterns=(*patterns, *before.patterns))
    return replace(request, control=replace(control, keep=keep))
