"""`Guards`: who looks at a model's translations, with what is known of its languages."""

from collections.abc import Sequence
from functools import cached_property

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.text.symbols import languages
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.guard.guard import Guard
from dragoman.translation.guard.wrong_script import usual_scripts
from dragoman.translation.request import Sampling


class Guards:
    """Of a model with these vocabularies. meta: what its card says of its languages."""

    def __init__(self, tokenizers: Tokenizers, meta: Meta) -> None:
        self._tokenizers, self._meta = tokenizers, meta

    def of(self, tags: Sequence[str], sampling: Sampling | None) -> Guard:
        """tags: that stand before the source and may name the target language.

        Raises ConfigError for what a guard cannot go with: drawn translations, and sources that are no texts.
        """
        if sampling is not None:
            raise ConfigError("a guard has a text searched again, and what is drawn is not searched: leave out one")
        if self._tokenizers.reads_vectors:
            raise ConfigError(
                "a guard compares a translation with its source's words, and this model reads vectors: leave it out"
            )
        written = next(iter(languages(tags)), self._meta.target_language)
        return Guard(self._scripts, written is None or written != self._meta.source_language)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        return usual_scripts(self._tokenizers.target)
