"""`sample_language`: the language of a sample of sentences, for descriptions of models and corpora."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from dragoman.base.errors import DragomanError
from dragoman.text.languages.detector import Detector

_SENTENCES, _CHARACTERS = 200, 2_000
"""The maximum size of a sample."""

_MIN_LETTERS, _MIN_CONFIDENCE = 100, 95.0
"""A shorter sample, or a less probable language, is not a basis for a statement about a whole corpus."""


def sample_language(sentences: Iterable[str]) -> str | None:
    """Return the two-letter or three-letter code of the language of sentences.

    Returns None if there are fewer than 100 letters, if no language has a probability of at least 95%, or if the
    library of the detector is not installed. Call `release_model` after the last sample.
    """
    return _detect(" ".join(islice(sentences, _SENTENCES))[:_CHARACTERS])


@lru_cache(maxsize=16)  # each checkpoint of a run has the same sample
def _detect(text: str) -> str | None:
    if sum(map(str.isalpha, text)) < _MIN_LETTERS:
        return None
    try:
        detection = Detector([]).most_probable(text)
    except DragomanError:
        return None
    return None if detection is None or detection.confidence < _MIN_CONFIDENCE else detection.language
