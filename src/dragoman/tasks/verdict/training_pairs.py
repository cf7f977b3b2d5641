"""`TrainingPairs`: a sample of the pairs that a model was trained on, read from the corpora that its settings name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import parse_settings
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.files.lines import has_broken_utf8

LIMIT = 50_000
"""Number of pairs from which the dictionary is learned, so that it takes seconds."""


@dataclass(frozen=True)
class TrainingPairs:
    """A sample of training pairs, or the reason why no pairs could be read.

    pairs: the first pairs of all corpora in turn. is_sample: whether the corpora contain more pairs than these.
    """

    pairs: Sequence[tuple[str, str]]
    is_sample: bool = False
    missing: str = ""

    @classmethod
    def of_run(
        cls,
        config: Mapping[str, Any],
        language: str | None = None,
        held_out: SentenceKeys | None = None,
        *,
        limit: int = LIMIT,
    ) -> "TrainingPairs":
        """Read the pairs of a run.

        config: the settings of the run. language: the target language, if the model has several; None reads all pairs.
        held_out: the sentences that the run held out of its corpora.
        """
        try:
            return cls.read(_corpora(config), language, held_out, limit=limit)
        except (ConfigError, DataError) as error:
            return cls([], missing=str(error).splitlines()[0].rstrip("."))

    @classmethod
    def read(
        cls,
        corpora: Sequence[CorpusConfig],
        language: str | None = None,
        held_out: SentenceKeys | None = None,
        *,
        limit: int = LIMIT,
    ) -> "TrainingPairs":
        """Read the pairs of corpora. Raises DataError if a corpus cannot be read."""
        chosen = [each for each in corpora if language is None or each.target_language in (None, language)]
        streams = [usable_pairs(each, held_out) for each in chosen]
        mixed = (pair for group in zip_longest(*streams) for pair in group if pair is not None)
        pairs = list(islice(mixed, limit))
        if not pairs:
            raise DataError("no training corpus contains pairs of the target language")
        return cls(pairs, next(mixed, None) is not None)


def usable_pairs(corpus: CorpusConfig, held_out: SentenceKeys | None = None) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a corpus that cleaning cannot drop as blank or broken, and that are not held out.

    Raises DataError if the corpus cannot be read.
    """
    if missing := [file for file in corpus.files if not Path(file).exists()]:
        raise DataError(f"the training corpus {missing[0]} does not exist any more")
    for pair in read_pairs(corpus):
        if not pair.complete or not all(text.strip() and not has_broken_utf8(text) for text in pair.texts):
            continue
        if held_out is None or not held_out.contain(*pair.texts):
            yield pair.texts


def _corpora(config: Mapping[str, Any]) -> list[CorpusConfig]:
    """Return the training corpora of a run. Raises ConfigError if its settings name none."""
    data = config.get("data")
    train = data.get("train") if isinstance(data, Mapping) else None
    entries = [dict(each) for each in (train if isinstance(train, list) else [train]) if isinstance(each, Mapping)]
    if not entries:
        raise ConfigError("config.yaml of the model names no corpus of sentence pairs")
    return [parse_settings(each, CorpusConfig, "data.train in config.yaml") for each in entries]
