"""`DocumentPipeline`: converts documents to sentences and back, for the command line and the server."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import regex

from dragoman.addons.documents.expected_spans import Edges, ExpectedSpans, has_words
from dragoman.addons.documents.formats.format import Content, ParsedDocument
from dragoman.addons.documents.passage import Passage, Raw, iterate_passages
from dragoman.addons.documents.placement import render_translation
from dragoman.addons.documents.sentences import Sentence, segment_passage
from dragoman.base.cancellation import until_cancelled
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.control.control import Control
from dragoman.inference.control.keep import KeepRules
from dragoman.inference.translation.alignment import align_each
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.sentences.splitter import Splitter


@dataclass(frozen=True)
class SegmentedDocument(Generic[Content]):
    """A document that is segmented into sentences, and the data needed to write its translation.

    sentences: the sentences in order. oversized: the number of sentences that were too long for the model, or longer
    than those that it was trained on, and were split.
    """

    sentences: Sequence[Sentence]
    oversized: int
    _parsed: ParsedDocument[Content]
    _sentences_by_passage: dict[int, list[Sentence]]

    def indices_to_align(self, texts: Sequence[str]) -> list[int]:
        """Return the indices of the sentences that need an alignment to place markup. texts: their translations."""
        return [
            index
            for index, (sentence, text) in enumerate(zip(self.sentences, texts, strict=True))
            if not sentence.is_plain and text != sentence.text and text.strip()
        ]

    def write(self, texts: Sequence[str], alignments: Sequence[Alignment]) -> Content:
        """Write the document with a translation for each sentence.

        alignments: one per sentence. Only the alignments of the sentences in `indices_to_align` are used.
        """
        if self._parsed.write_sentences is not None:
            return self._parsed.write_sentences(self.sentences, texts, alignments)
        written = {
            id(sentence): render_translation(sentence, text, alignment)
            for sentence, text, alignment in until_cancelled(zip(self.sentences, texts, alignments, strict=True))
        }
        return self._parsed.write(["".join(self._write([part], written)) for part in self._parsed.parts])

    def _write(self, parts: Iterable[str | Passage], written: dict[int, Raw]) -> Iterator[str]:
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            unit = mark = 0
            for sentence in self._sentences_by_passage[id(part)]:
                yield from self._write(part.original(unit, sentence.begin, mark, sentence.first), written)
                yield from self._write(written[id(sentence)], written)
                unit, mark = sentence.end, sentence.last
            yield from self._write(part.original(unit, len(part.raws), mark, len(part.marks)), written)


class DocumentPipeline:
    """The steps before and after the translation of sentences. The caller runs the model:

    1. `segment` each document;
    2. translate the sentences as one of `attempts` requests them, and again those that `repairs` returns;
    3. `align` each document with its translation, and `SegmentedDocument.write` it.
    """

    def __init__(
        self,
        translator: SupportsLines,
        request: Request,
        language: str,
        *,
        batch_size: int = 64,
        attention: AttentionChoice | None = None,
        expected: ExpectedSpans | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """request: the request for every sentence. language: the source language, such as `en` or `pt-BR`.

        batch_size: the maximum number of sentences that are aligned together. attention: as in `Translator.aligner_of`.
        expected: spans that translations should contain, in addition to those that the request requires. max_tokens:
        the maximum length of a sentence; longer ones are split. None for the model's maximum length, which also applies
        to a model that reads whole texts.
        """
        self._reads_whole_texts = translator.meta.whole_texts
        self._translator, self._batch_size = translator, batch_size
        self._request = replace(request, divide=False)  # sentences are not divided again
        self._attention, self._expected = attention, expected
        self._max_tokens = None if self._reads_whole_texts else max_tokens
        self._uncontrolled = replace(self._request, control=None)
        self._language = language

    def segment(self, parsed: ParsedDocument[Content]) -> SegmentedDocument[Content]:
        """Divide the passages of a document into sentences that fit the model, or into lines if it reads whole texts.

        A sentence that has no words outside kept or expected spans is not translated.
        """
        control = self._request.control or Control()
        control = control if self._expected is None else replace(control, keep=self._expected.rules)
        splitter = Splitter(self._language, self._fits, Edges(control).trim, self._reads_whole_texts)
        by_passage = {
            id(passage): [
                self._with_terms(each) for each in segment_passage(passage, splitter) if has_words(each.text, control)
            ]
            for passage in until_cancelled(iterate_passages(parsed.parts))
        }
        flat = [sentence for sentences in by_passage.values() for sentence in sentences]
        return SegmentedDocument(flat, splitter.oversized, parsed, by_passage)

    def _with_terms(self, sentence: Sentence) -> Sentence:
        control = self._request.control
        if control is None or control.glossary is None or not sentence.kept:
            return sentence
        return replace(sentence, terms=control.requirements(sentence.text).terms)

    def attempts(self, sentences: Sequence[Sentence]) -> Iterator[list[TextRequest]]:
        """Yield lists of requests for all sentences. If the model raises ConfigError for a list, use the next list.

        The requests of the first list constrain translations to contain inline code verbatim. The second list is for
        models that do not support constraints: code is then placed next to the surrounding words. Without code, there
        is only one list.
        """
        requests = [self._reduced(sentence.text) for sentence in until_cancelled(sentences)]
        pairs = list(zip(sentences, requests, strict=True))
        constrained = [_constrain_code(request, sentence) for sentence, request in until_cancelled(pairs)]
        yield [(sentence.text, request) for sentence, request in zip(sentences, constrained, strict=True)]
        if any(request is not own for request, own in zip(constrained, requests, strict=True)):
            yield [(sentence.text, request) for sentence, request in pairs]

    def accepts(self, sentence: Sentence, text: str) -> bool:
        """Return whether a translation of a sentence contains all expected spans."""
        return self._expected is None or self._expected.are_in(sentence.text, text)

    def divide(self, sentence: Sentence) -> list[tuple[str, bool]]:
        """Divide a sentence into expected spans (True), which are copied, and parts to translate (False)."""
        return [(sentence.text, False)] if self._expected is None else self._expected.divide(sentence.text)

    def repairs(self, sentences: Sequence[Sentence], texts: Sequence[str]) -> dict[int, TextRequest]:
        """Return requests that enforce the expected spans, for the sentences whose translations lack some, by index.

        texts: the translations of all sentences. If the model rejects the requests with a ConfigError, the translations
        cannot be repaired.
        """
        if self._expected is None:
            return {}
        control = replace(self._request.control or Control(), keep=self._expected.rules)
        request = replace(self._request, control=control)
        return {
            index: (sentence.text, _constrain_code(request, sentence))
            for index, (sentence, text) in enumerate(until_cancelled(list(zip(sentences, texts, strict=True))))
            if not self._expected.are_in(sentence.text, text)
        }

    def _fits(self, text: str) -> bool:
        """Return whether a text is short enough for a sentence, and not longer than the model's training texts."""
        # a token has at least one byte, so that most texts need not be tokenised
        if self._max_tokens is not None and len(text.encode("utf-8", "replace")) > self._max_tokens:
            (ids,) = self._translator.tokenizers.source.encode_batch([text])
            if len(ids) > self._max_tokens:
                return False
        usual = self._translator.training_texts.has_usual_length(text, self._request)
        return usual and self._translator.fits(text, self._request)

    def _reduced(self, text: str) -> Request:
        """Return the request for a text, without control if it requires nothing, so that the search is faster."""
        control = self._request.control
        return self._request if control is None or control.requirements(text) else self._uncontrolled

    def align(
        self, document: SegmentedDocument[Any], texts: Sequence[str], all_sentences: bool = False
    ) -> list[Alignment]:
        """Align sentences with their translations. The alignment of any other sentence is empty.

        all_sentences: align every sentence, not only the sentences in `indices_to_align`. Raises ConfigError if the
        aligner cannot be used, for example because the engine exposes no attention.
        """
        indices = document.indices_to_align(texts)
        if all_sentences:
            indices = [index for index, text in enumerate(texts) if text.strip()]
        alignments: list[Alignment] = [()] * len(texts)
        if indices:
            sources = [document.sentences[index].text for index in indices]
            aligner = self._translator.aligner_of(self._request.tags, self._attention)
            results = align_each(aligner, sources, [texts[index] for index in indices], self._batch_size)
            for index, alignment in zip(indices, results, strict=True):
                alignments[index] = alignment or ()
        return alignments


def _constrain_code(request: Request, sentence: Sentence) -> Request:
    """Return the request with the constraint that the translation copies the code of the sentence, if any."""
    if not sentence.code:
        return request
    control = request.control or Control()
    keep = control.keep or KeepRules()
    patterns = tuple(dict.fromkeys(regex.escape(text.strip()) for _, text, _ in sentence.code))
    keep = replace(keep, patterns=(*patterns, *keep.patterns))
    return replace(request, control=replace(control, keep=keep))
