"""Stub until the real one is merged."""

from collections.abc import Sequence


class Detector:
    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = languages

    def detect(self, text: str) -> list[tuple[str, float]]:
        return [(self.languages[0], 100.0)] if any(map(str.isalpha, text)) else []
