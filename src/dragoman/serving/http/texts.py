"""What routes do with texts before they are translated: limits, and languages that nobody named."""

from collections.abc import Sequence

from pydantic import BaseModel

from dragoman.serving.config import LimitsConfig
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Refusal

AUTO = "auto"
"""In the place of a source language that is to be detected."""


class Detected(BaseModel):
    """confidence: from 0 to 100; 0 where it can't be told."""

    confidence: float
    language: str


def check_texts(texts: Sequence[str], limits: LimitsConfig, field: str = "q") -> None:
    """Raises Refusal where there are too many, or too long ones."""
    if len(texts) > limits.texts:
        raise Refusal(f"Invalid request: {field}: {len(texts)} texts, but a list has at most {limits.texts}")
    if (size := sum(map(len, texts))) > limits.characters:
        raise Refusal(f"Invalid request: {field}: {size:,} characters, but a request has at most {limits.characters:,}")


def best_of(detector: Detector, text: str, sources: Sequence[str]) -> Detected:
    """The likeliest language of a text; where it can't be told the first that is served, with confidence 0."""
    found = detector.detect(text)
    if not found:
        return Detected(confidence=0, language=sources[0])
    language, confidence = found[0]
    return Detected(confidence=confidence, language=language)
