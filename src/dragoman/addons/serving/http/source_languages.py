"""`SourceLanguage`: the language of a text, which the client names or the server detects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from dragoman.addons.serving.service.service import Service
from dragoman.base.cancellation import until_cancelled
from dragoman.text.languages.codes import base_language

AUTO = "auto"
"""The source language that requests language detection."""

_MIN_CONFIDENCE = 90
"""The minimum confidence, in percent, for a text to be in a language that the server cannot translate it from."""

_CERTAIN, _FEWEST_LETTERS = 95, 12
"""The minimum confidence, in percent, that a text is not in the language that the client named, and its letters."""

_FEW_TEXTS, _FEW_CHARACTERS = 2, 1000
"""The languages of at most this many texts with this many characters are detected in the event loop, within 2 ms."""


class DetectedLanguage(BaseModel):
    """A detected language. confidence: from 0 to 100; 0 if the language is unknown."""

    confidence: float
    language: str


@dataclass(frozen=True)
class SourceLanguage:
    """The source language of a text.

    detected: if it was requested to be detected. other: the language that the text is almost certainly in, if it is not
    the one that the client named, and if that was to be checked.
    """

    code: str
    detected: DetectedLanguage | None = None
    other: DetectedLanguage | None = None


def is_auto(source: str) -> bool:
    """Return whether a client requests that the source language is detected."""
    return source.strip().lower() == AUTO


async def source_languages(
    service: Service, source: str, target: str, texts: Sequence[str], client: str, *, checks: bool = False
) -> list[SourceLanguage]:
    """Return the language of each text, as `source_language` does. Many or long texts are detected in a thread.

    client: as in `TranslationJob`. checks: whether to check a language that the client names.
    """

    def detect() -> list[SourceLanguage]:
        found = (source_language(service, source, target, text) for text in until_cancelled(texts))
        if not checks or is_auto(source):
            return list(found)
        return [
            replace(each, other=None if each.code == target else other_language(service, each.code, text))
            for each, text in zip(found, texts, strict=True)
        ]

    is_short = not (checks or is_auto(source)) or (len(texts) <= _FEW_TEXTS and sum(map(len, texts)) <= _FEW_CHARACTERS)
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


def other_language(service: Service, source: str, text: str) -> DetectedLanguage | None:
    """Return the language that a text is almost certainly in, if it is not `source`; None for a short text."""
    detector = service.detector
    if source in detector.undetected or sum(map(str.isalpha, text)) < _FEWEST_LETTERS:
        return None
    found = detector.most_probable(text)
    if found is None or found.confidence < _CERTAIN or base_language(found.language) == base_language(source):
        return None
    return DetectedLanguage(confidence=found.confidence, language=found.language)
