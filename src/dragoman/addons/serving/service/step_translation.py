"""`StepTranslation`: the translation of the texts of a job by one model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from dragoman.addons.documents.formats.format import ParsedDocument, parse_pivot
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import iterate_passages
from dragoman.addons.documents.pipeline import DocumentPipeline, SegmentedDocument
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.documents.processes import DocumentFormat
from dragoman.addons.serving.errors import RequestError, TooLarge
from dragoman.addons.serving.queueing.line_queue import Hypotheses
from dragoman.addons.serving.service.sentence_decoder import SentenceBatch, SentenceDecoder, hypothesis_text
from dragoman.addons.serving.service.translation_job import (
    ModelStep,
    OnSentence,
    TranslatedSentence,
    TranslatedText,
    TranslationJob,
)
from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.translation.doubts import DoubtFinder
from dragoman.statistical.alignment.links import Alignment

Result = TypeVar("Result")

_THREAD_CHARACTERS = 2000
"""Texts with more characters are prepared in a separate thread."""

_CHARACTERS = 1_000_000
"""Number of characters of text in a document above which its timeout is proportional to the number."""

_REPAIR_FRACTION = 0.4
"""Fraction of the timeout of a request in which sentences that lack expected spans are decoded again."""

_TOKENISED_SENTENCES = 50
"""Number of sentences that are tokenised together, on all cores, before the thread gives way to short requests."""

Prepare = Callable[[str, Callable[[], Any], bool], Awaitable[Any]]
"""`Service.prepare`: calls a function in a thread for texts or for documents, and returns its result."""


class TimeLimit:
    """The timeout of a request. seconds: the time from its start."""

    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self._timeout, self._start, self.seconds = timeout, asyncio.get_running_loop().time(), seconds

    def extend(self, factor: float) -> None:
        """Multiply the time, unless the request has been aborted."""
        deadline = self._timeout.when()
        if deadline is not None and deadline > asyncio.get_running_loop().time():
            self.seconds *= factor
            self._timeout.reschedule(self._start + self.seconds)


def is_long(step: ModelStep, job: TranslationJob, texts: Sequence[Any]) -> bool:
    """Return whether the preparation of texts takes so long that it needs a thread of its own."""
    return job.is_document or step.is_expensive or sum(map(len, texts)) > _THREAD_CHARACTERS


@dataclass(frozen=True)
class StepTranslation:
    """The translation of the texts of a job, or of `pivots`, their translations by another model."""

    step: ModelStep
    job: TranslationJob
    limits: LimitsConfig
    prepare_in_thread: Prepare
    pivots: Sequence[Any] | None = None

    async def run(self, limit: TimeLimit, on_sentence: OnSentence | None = None) -> list[TranslatedText]:
        """Return the translations. limit: is extended for a long document. on_sentence: as in `Service.translate`."""
        job, is_short = self.job, not is_long(self.step, self.job, self.pivots or self.job.texts)
        documents, batch = self._segment() if is_short else await self._in_thread(self._segment)
        if job.is_document and self.pivots is None:
            limit.extend(max(1.0, sum(len(sentence.text) for sentence in batch.sentences) / _CHARACTERS))

        indices = batch.indices  # queued lines refer to `on_result`, which must not keep the sentences in memory

        def on_result(line: int, hypotheses: Hypotheses) -> None:
            if on_sentence is not None:
                on_sentence(*indices[line], hypothesis_text(hypotheses[0]))

        receive = None if on_sentence is None else on_result
        prepare = _at_once if is_short else self._in_thread
        decoder = SentenceDecoder(self.step.batcher, batch, job, prepare, _REPAIR_FRACTION * limit.seconds)
        with closing(decoder):
            decoded = await decoder.decode(receive)
            await decoder.repair(decoded, receive)
        found = iter(decoded)
        results = [list(islice(found, len(document.sentences))) for document in documents]

        def assemble() -> list[TranslatedText]:
            return [
                _assemble(batch.pipeline, *each, job, self.step.doubts if job.doubts else None)
                for each in until_cancelled(zip(documents, results, strict=True))
            ]

        # aligning words takes time
        aligns = job.align or not all(sentence.is_plain for sentence in batch.sentences)
        return assemble() if is_short and not aligns else await self._in_thread(assemble)

    async def _in_thread(self, function: Callable[[], Result]) -> Result:
        return await self.prepare_in_thread(self.job.client, function, self.job.is_document)  # type: ignore[no-any-return]

    def _segment(self) -> tuple[list[SegmentedDocument[Any]], SentenceBatch]:
        """Divide the texts into sentences. Raises RequestError and TooLarge."""
        step, job = self.step, self.job
        pipeline = DocumentPipeline(
            step.translator, step.request, job.source, expected=step.expected, max_tokens=self.limits.sentence_tokens
        )
        documents = []
        try:
            for index in until_cancelled(range(len(job.texts))):
                parsed = self._parse(index)
                if job.is_document:
                    _check_characters(parsed, self.limits.file_characters)
                documents.append(pipeline.segment(parsed))
        except (ConfigError, DataError) as error:
            raise RequestError(str(error)) from None
        sentences = [each for document in documents for each in until_cancelled(document.sentences)]
        indices = [(text, index) for text, document in enumerate(documents) for index in range(len(document.sentences))]
        return documents, SentenceBatch(pipeline, sentences, _count_tokens(step.translator, sentences), indices)

    def _parse(self, index: int) -> ParsedDocument[Any]:
        job, languages = self.job, Languages(self.job.source, self.job.target)
        if self.pivots is None:
            return job.format.parse(job.texts[index], languages)
        if isinstance(job.format, DocumentFormat):
            return job.format.parse_pivot(job.texts[index], self.pivots[index], languages)
        return parse_pivot(job.format, job.texts[index], self.pivots[index], languages)


async def _at_once(function: Callable[[], Result]) -> Result:
    return function()


def _check_characters(parsed: ParsedDocument[Any], maximum: int) -> None:
    """Raise TooLarge for a document with too many characters of text."""
    characters = 0
    for passage in until_cancelled(iterate_passages(parsed.parts)):
        characters += len(passage.texts)
        if characters > maximum:
            raise TooLarge(
                f"a file may contain at most {maximum:,} characters of text (limits.file_characters): divide it into "
                "several files"
            )


def _count_tokens(translator: SupportsLines, sentences: Sequence[Sentence]) -> list[int]:
    """Return the number of source tokens of each sentence, including the end of the sentence."""
    tokenizer, counts = translator.tokenizers.source, list[int]()
    for start in until_cancelled(range(0, len(sentences), _TOKENISED_SENTENCES)):
        texts = [sentence.text for sentence in sentences[start : start + _TOKENISED_SENTENCES]]
        counts += [len(ids) + 1 for ids in tokenizer.encode_batch(texts)]
    return counts


def _assemble(
    pipeline: DocumentPipeline,
    document: SegmentedDocument[Any],
    results: Sequence[Hypotheses],
    job: TranslationJob,
    finder: DoubtFinder | None,
) -> TranslatedText:
    """Write the translations of a document. Hypothesis k of the document consists of hypothesis k of each sentence.

    finder: finds doubts about each sentence; None: they are not requested.
    """
    count = min(job.alternatives + 1, max(map(len, results), default=1))
    ranked = [[hypothesis_text(each[min(rank, len(each) - 1)]) for each in results] for rank in range(count)]
    alignments = [_align(pipeline, document, texts, job.align and rank == 0) for rank, texts in enumerate(ranked)]
    written = [document.write(*arguments) for arguments in zip(ranked, alignments, strict=True)]
    sentences = [
        TranslatedSentence(
            sentence.text,
            [(hypothesis_text(one), one.score, one.log_probability) for one in hypotheses[: job.alternatives + 1]],
            hypotheses[0].finished,
            alignment if job.align else None,
            None if finder is None else finder.doubts(sentence.text, hypotheses[0]),
        )
        for sentence, hypotheses, alignment in zip(document.sentences, results, alignments[0], strict=True)
    ]
    return TranslatedText(written[0], list(dict.fromkeys(written[1:])), sentences)


def _align(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], texts: Sequence[str], all_sentences: bool
) -> list[Alignment]:
    """Return the alignments of a document's sentences. All are empty if the model cannot align words."""
    if all_sentences or document.indices_to_align(texts):
        with suppress(ConfigError):
            return pipeline.align(document, texts, all_sentences)
    return [()] * len(texts)
