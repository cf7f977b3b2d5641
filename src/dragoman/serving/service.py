"""`Service`: texts in, translations out, whatever the protocol. It divides texts, asks the queues, and joins."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.documents.divided import DividedDocument, keeping
from dragoman.documents.formats.format import Format
from dragoman.documents.sentences import Splitter
from dragoman.serving.access.quota import Reservation
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Overloaded, Refusal
from dragoman.serving.queue import Found, Ticket
from dragoman.serving.served_models import Directions, Step
from dragoman.translation.alignment import Alignment, align_each
from dragoman.translation.files.lines import one_line
from dragoman.translation.request import Request
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Asked:
    """texts: of one language and one format; of Word documents the bytes.

    alternatives: how many further translations of each text.
    settings: as `Translator.request` takes them. aligned: whether words are to be aligned, sentence by sentence.
    reserve: is asked for the source tokens of all texts before they wait for a model, and raises where there are none;
    what it gives is given back where the queue is full.
    seconds: after which it is given up, where these are others than the service's.
    """

    texts: Sequence[Any]
    source: str
    target: str
    format: Format[Any]
    alternatives: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    aligned: bool = False
    reserve: Callable[[int], Reservation] | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class TranslatedSentence:
    """hypotheses: the best first, with their scores and log-probabilities; alignment: of the best, where asked for."""

    source: str
    hypotheses: Sequence[tuple[str, float, float]]
    finished: bool
    alignment: Alignment | None = None


@dataclass(frozen=True)
class TranslatedText:
    """text: the whole; alternatives: others of it; sentences: those of the last model, in order."""

    text: Any
    alternatives: Sequence[Any]
    sentences: Sequence[TranslatedSentence]


Tell = Callable[[int, int, str], None]
"""Is told, in any thread, the place of a text, that of a sentence in it, and its translation."""

_AT_ONCE, _FEW = 2000, 50
"""Characters that are divided into sentences on the spot, and sentences that are joined so; more have a thread."""

_ALIGNED_TOGETHER = 64
"""Maximum number of sentences whose words are aligned in one batch."""


@dataclass(frozen=True)
class _Text:
    """A text on its way through a model."""

    document: DividedDocument[Any]
    requests: Sequence[Request]
    costs: Sequence[int]


class Service:
    """Several requests at a time, each for some texts. Before it is opened, and once it is about to end, it refuses."""

    def __init__(self, seconds: float) -> None:
        """seconds: after which a request is given up."""
        self._seconds = seconds
        self._open: tuple[Directions, Detector] | None = None
        self.is_ending = False

    def open(self, directions: Directions) -> None:
        """From now on it translates."""
        self._open = directions, Detector(directions.sources)

    def check_ready(self) -> None:
        """Raises Overloaded where it does not translate."""
        if self.is_ending:
            raise Overloaded("the server is about to end", retry_after=5)
        _ = self._opened

    @property
    def directions(self) -> Directions:
        """Raises Overloaded before it is open."""
        return self._opened[0]

    @property
    def detector(self) -> Detector:
        """Of the languages that can be translated. Raises Overloaded before it is open."""
        return self._opened[1]

    @property
    def _opened(self) -> tuple[Directions, Detector]:
        if self._open is None:
            raise Overloaded("the models are being loaded", retry_after=5)
        return self._open

    def check(self, asked: Asked) -> None:
        """Raises Refusal for a direction that there is not and for settings that make no sense."""
        last = self.directions.route(asked.source, asked.target)[-1]
        _request(last.model.translator, last, asked)

    async def translate(self, asked: Asked, tell: Tell | None = None) -> list[TranslatedText]:
        """Each text's translation, in order. tell: of each sentence, as it is found by the last model.

        A client that goes away cancels this, and what still waits of it leaves.

        Raises Refusal for a direction that there is not and for settings that make no sense, Overloaded where there is
        no room or no time.
        """
        route = self.directions.route(asked.source, asked.target)
        try:
            async with asyncio.timeout(seconds := asked.seconds or self._seconds):
                texts = list(asked.texts)
                for step in route[:-1]:
                    plain = replace(asked, texts=texts, alternatives=0, aligned=False)
                    asked = replace(asked, reserve=None)  # a text counts once
                    texts = [each.text for each in await self._step(step, plain)]
                last = replace(asked, texts=texts, aligned=asked.aligned and len(route) == 1)
                return await self._step(route[-1], last, tell)
        except TimeoutError:
            raise Overloaded(f"not done within {seconds:g} seconds", retry_after=1) from None

    async def _step(self, step: Step, asked: Asked, tell: Tell | None = None) -> list[TranslatedText]:
        translator = step.model.translator
        request = _request(translator, step, asked)
        is_small = sum(map(len, asked.texts)) <= _AT_ONCE
        divide = partial(_divided, translator, request, asked)
        texts = divide() if is_small else await asyncio.to_thread(divide)
        found = await self._found(step, texts, request, asked, tell)
        done = []
        for text in texts:
            own = [next(found) for _ in text.document.sentences]
            done.append(await self._joined(step, text, own, asked))
        return done

    async def _found(
        self, step: Step, texts: Sequence[_Text], request: Request, asked: Asked, tell: Tell | None
    ) -> Iterator[Found]:
        places = [(number, place) for number, text in enumerate(texts) for place in range(len(text.requests))]

        def told(line: int, found: Found) -> None:
            if tell is not None:
                tell(*places[line], _written(found[0]))

        sentences = [sentence.text for text in texts for sentence in text.document.sentences]
        requests = [each for text in texts for each in text.requests]
        costs = [each for text in texts for each in text.costs]
        reserved = None if asked.reserve is None else asked.reserve(sum(costs))

        async def queued(requests: Sequence[Request]) -> Iterator[Found]:
            ticket = Ticket(list(zip(sentences, requests, strict=True)), costs, told)
            try:
                step.model.batcher.submit(ticket)
            except Overloaded:
                if reserved is not None:
                    reserved.cancel()
                raise
            try:
                found = await asyncio.wrap_future(ticket.done)
                return iter(found)
            except DataError as error:
                raise Refusal(str(error)) from None
            finally:
                ticket.done.cancel()

        try:
            return await queued(requests)
        except ConfigError as error:
            if all(each is request for each in requests):
                raise Refusal(str(error)) from None
        # the model cannot be held to write code as it is: it goes beside the words that it stood beside
        try:
            return await queued([request] * len(sentences))
        except ConfigError as error:
            raise Refusal(str(error)) from None

    async def _joined(self, step: Step, text: _Text, found: Sequence[Found], asked: Asked) -> TranslatedText:
        document, translator = text.document, step.model.translator
        ranks = range(min(asked.alternatives, max((len(each) for each in found), default=1) - 1) + 1)
        hypotheses = [[_written(each[min(rank, len(each) - 1)]) for each in found] for rank in ranks]
        links = [
            await self._links(translator, text, texts, asked.aligned and rank == 0)
            for rank, texts in zip(ranks, hypotheses, strict=True)
        ]

        def write() -> list[Any]:
            return [document.written(texts, link) for texts, link in zip(hypotheses, links, strict=True)]

        written = write() if len(found) < _FEW else await asyncio.to_thread(write)
        sentences = [
            TranslatedSentence(
                sentence.text,
                [(_written(one), one.score, one.log_probability) for one in each[: asked.alternatives + 1]],
                each[0].finished,
                links[0][place] if asked.aligned else None,
            )
            for place, (sentence, each) in enumerate(zip(document.sentences, found, strict=True))
        ]
        return TranslatedText(written[0], list(dict.fromkeys(written[1:])), sentences)

    async def _links(self, translator: Translator, text: _Text, texts: Sequence[str], aligned: bool) -> list[Alignment]:
        """Align each sentence with its translation. aligned: all sentences, not only those whose markup needs it.

        A sentence that cannot be aligned has no links, nor has any if the model exposes no attention.
        """
        document = text.document
        links: list[Alignment] = [()] * len(texts)
        places = [place for place, text in enumerate(texts) if text.strip()] if aligned else document.marked(texts)
        if not places:
            return links
        sources = [document.sentences[place].text for place in places]
        targets = [texts[place] for place in places]
        aligner = translator.aligner_of(text.requests[0].tags)
        with suppress(ConfigError):
            found = await asyncio.to_thread(align_each, aligner, sources, targets, _ALIGNED_TOGETHER)
            for place, alignment in zip(places, found, strict=True):
                links[place] = alignment or ()
        return links


def _request(translator: Translator, step: Step, asked: Asked) -> Request:
    try:
        wanted = {"nbest": asked.alternatives + 1, **asked.settings}
        return translator.request(to=step.model.chosen(step.target), **wanted)
    except (ConfigError, DataError) as error:
        raise Refusal(str(error)) from None


def _divided(translator: Translator, request: Request, asked: Asked) -> list[_Text]:
    language = asked.source.replace("_", "-").partition("-")[0]
    splitter = Splitter(language, lambda part: translator.fits(part, request))
    source, found = translator.tokenizers.source, []
    for text in asked.texts:
        try:
            document = DividedDocument.of(asked.format.opened(text), splitter)
        except (ConfigError, DataError) as error:
            raise Refusal(str(error)) from None
        sentences = [sentence.text for sentence in document.sentences]
        costs = [len(ids) + 1 for ids in source.encode_batch(sentences)] if sentences else []
        found.append(_Text(document, [keeping(request, sentence) for sentence in document.sentences], costs))
    return found


def _written(translation: Translation) -> str:
    return one_line(translation.text)
