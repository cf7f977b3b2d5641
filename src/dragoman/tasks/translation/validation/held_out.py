"""`HeldOut`: the pairs of a validation set, with what their sources are tagged with."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.errors import ConfigError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_sides
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import Tokenizers


@dataclass(frozen=True)
class HeldOut:
    """A validation set in memory."""

    corpus: CorpusConfig
    sources: list[str]
    targets: list[str]

    @property
    def name(self) -> str:
        """What messages and the log call it."""
        return str(self.corpus)


def read_held_out(config: TranslationRun) -> tuple[HeldOut, ...]:
    """The validation sets. Raises DataError for one that cannot be read or is blank."""
    return tuple(HeldOut(corpus, *read_sides(corpus)) for corpus in config.data.valid_sets)


def check_tags(sets: Sequence[HeldOut], config: TranslationRun, tokenizers: Tokenizers | None) -> None:
    """Raises ConfigError where a set asks for a language or a tag that the model will not know.

    tokenizers: of the model that the run takes them from, if it does.
    """
    if tokenizers is not None:
        known = set(tokenizers.tags)
    else:
        known = {*config.text.tags, *(tag for corpus in config.data.corpora for tag in corpus.all_tags)}
    for each in sets:
        for tag in each.corpus.all_tags:
            if tag not in known:
                raise ConfigError(
                    f"the validation set {each.name} has the tag {tag!r}, which no corpus of data.train has; known are "
                    f"{', '.join(sorted(known)) or 'none'}"
                )


def digest(sets: Sequence[HeldOut]) -> str:
    """Tells validation sets from others, by their texts."""
    texts = [[each.sources, each.targets] for each in sets]
    return hashlib.sha256(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()
