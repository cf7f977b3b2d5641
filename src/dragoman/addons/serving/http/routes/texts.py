"""`TextBatch`: translates the texts of a request, each from its own language."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.addons.documents.formats.format import Format
from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import InternalError, RequestError
from dragoman.addons.serving.http.requests import AUTO, DetectedLanguage
from dragoman.addons.serving.service.service import Service
from dragoman.addons.serving.service.translation_job import OnSentence, TranslatedText, TranslationJob
from dragoman.base.cancellation import until_cancelled
from dragoman.base.log import warn

_MIN_CONFIDENCE = 90
"""The minimum confidence, in percent, for a text to be in a language that the server cannot translate it from."""


_FEW_TEXTS, _FEW_CHARACTERS = 2, 1000
"""The languages of at most this many texts with this many characters are detected in the event loop, within 2 ms."""


@dataclass(frozen=True)
class SourceLanguage:
    """The source language of a text. detected: if it was requested to be detected."""

    code: str
    detected: DetectedLanguage | None = None


def is_auto(source: str) -> bool:
    """Return whether a client requests that the source language is detected."""
    return source.strip().lower() == AUTO


async def source_languages(
    service: Service, source: str, target: str, texts: Sequence[str], client: str
) -> list[SourceLanguage]:
    """Return the language of each text, as `source_language` does. Many or long texts are detected in a thread.

    client: as in `TranslationJob`.
    """

    def detect() -> list[SourceLanguage]:
        return [source_language(service, source, target, text) for text in until_cancelled(texts)]

    is_short = not is_auto(source) or (len(texts) <= _FEW_TEXTS and sum(map(len, texts)) <= _FEW_CHARACTERS)
    return detect() if is_short else await service.prepare(client, detect, is_document=False)


def source_language(service: Service, source: str, target: str, text: str) -> SourceLanguage:
    """Return the language to translate a text from. source: the code that the client sent, or auto.

    A detected language is the most probable one from which the server translates into the target language. It is the
    target language, so that the text is returned unchanged, if the text has no words, is probably in the target
    language already, or is in an unknown language. A text that is almost certainly in another language has this
    language, so that its translation raises an error.
    """
    directions, detector = service.directions, service.detector
    if not is_auto(source):
        return SourceLanguage(directions.match(source))
    reachable = [each for each in directions.sources if target != each and target in directions.targets(each)]
    detections = detector.detect(text)
    if not detections:
        # a server that does not translate from the target language has few sources, so that a guess is better than none
        guess = reachable[0] if reachable and target not in directions.sources and detector.has_words(text) else target
        return SourceLanguage(guess, DetectedLanguage(confidence=0, language=guess))
    for language, confidence in detections:
        is_target = language == target and (language in directions.sources or confidence >= _MIN_CONFIDENCE)
        if is_target or language in reachable:
            return SourceLanguage(language, DetectedLanguage(confidence=confidence, language=language))
    language, confidence = detections[0]
    code = language if confidence >= _MIN_CONFIDENCE else target
    return SourceLanguage(code, DetectedLanguage(confidence=confidence, language=language))


@dataclass(frozen=True)
class TextBatch:
    """The texts of a request, and how to translate them.

    sources: the source language of each text. The other fields are as in `TranslationJob`.
    """

    texts: Sequence[str]
    sources: Sequence[SourceLanguage]
    target: str
    format: Format[Any]
    alternatives: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    align: bool = False
    reserve: Callable[[int], Reservation] | None = None
    client: str = ""

    async def check(self, service: Service) -> None:
        """Raise RequestError for inconsistent settings, and if none of the directions is served."""
        errors, jobs = [], [self._job(code, ()) for code in self._indices_by_source()]
        for job in jobs:
            try:
                service.directions.route(job.source, job.target)
            except RequestError as error:
                errors.append(error)
            else:
                await service.check(job)
        if errors and len(errors) == len(jobs):
            raise errors[0]

    async def translate(
        self, service: Service, on_sentence: OnSentence | None = None
    ) -> list[TranslatedText | RequestError]:
        """Translate each text, in order. An error that concerns a single one of several texts is returned in its place.

        on_sentence: as in `Service.translate`. Raises the errors of `Service.translate` that concern all texts.
        """
        results: list[TranslatedText | RequestError | None] = [None] * len(self.texts)
        for code, indices in self._indices_by_source().items():
            group = await self._translate_group(service, code, indices, on_sentence)
            for index, each in zip(indices, group, strict=True):
                results[index] = each
        found = [each for each in results if each is not None]
        errors = [each for each in found if isinstance(each, RequestError)]
        if errors and len(errors) == len(found):
            raise errors[0]
        return found

    async def _translate_group(
        self, service: Service, code: str, indices: Sequence[int], on_sentence: OnSentence | None
    ) -> Sequence[TranslatedText | RequestError]:
        """Translate the texts in one language together, or one by one if one of them has an error."""
        job, is_reserved = self._job(code, indices), False

        def reserve(tokens: int) -> Reservation:
            nonlocal is_reserved
            assert self.reserve is not None
            reservation, is_reserved = self.reserve(tokens), True
            return reservation

        def numbered(indices: Sequence[int]) -> OnSentence | None:
            if on_sentence is None:
                return None
            return lambda text, sentence, translation: on_sentence(indices[text], sentence, translation)

        try:
            recording = job if self.reserve is None else replace(job, reserve=reserve)
            return await service.translate(recording, numbered(indices))
        except Exception as error:
            if len(self.texts) == 1 or not _concerns_one_text(error):
                raise
        results: list[TranslatedText | RequestError] = []
        for index in indices:
            single = self._job(code, [index])
            try:
                charged = replace(single, reserve=None) if is_reserved else single
                results += await service.translate(charged, numbered([index]))
            except Exception as error:
                if not _concerns_one_text(error):
                    raise
                results.append(_as_request_error(error))
        return results

    def _indices_by_source(self) -> dict[str, list[int]]:
        indices: dict[str, list[int]] = {}
        for index, source in enumerate(self.sources):
            indices.setdefault(source.code, []).append(index)
        return indices

    def _job(self, code: str, indices: Sequence[int]) -> TranslationJob:
        texts = [self.texts[index] for index in indices]
        return TranslationJob(
            texts,
            code,
            self.target,
            self.format,
            self.alternatives,
            self.settings,
            self.align,
            self.reserve,
            self.client,
        )


def _concerns_one_text(error: Exception) -> bool:
    """Return whether an error may be caused by a single text: not an exceeded quota, a full queue or a lost client."""
    return not isinstance(error, RequestError) or error.status == RequestError.status


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    warn(f"a text of a list could not be translated: {type(error).__name__}")
    return InternalError("internal error: see the server's log")
