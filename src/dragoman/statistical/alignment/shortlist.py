"""`Shortlist`: the target tokens that the translation of a source may contain, from the lexicon of a word aligner."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
import torch
from pydantic import Field

from dragoman.base.errors import DataError, ModelError
from dragoman.base.progress import Progress
from dragoman.base.settings.config import Config
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import SHORTLIST
from dragoman.checkpoint.tensors import load_tensors, save_tensors
from dragoman.statistical.alignment.estimation.method import TrainingData
from dragoman.statistical.alignment.estimation.pairs import Ints, Longs, WordPairs
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.methods.ibm1 import IBM1Config
from dragoman.statistical.alignment.methods.union import AlignmentMethod
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizers import VocabularySizes

_PROVENANCE = "provenance"


class ShortlistConfig(Config):
    """The settings of a shortlist. An alignment model of the tokens determines their translations."""

    method: AlignmentMethod = Field(
        IBM1Config(),
        description="Alignment model. ibm1 is fast, and its translations cover more of new text than those of hmm.",
    )
    frequent: int = Field(
        100, ge=0, description="Number of the most frequent target tokens, which are in the shortlist of every source."
    )
    translations: int = Field(
        100, ge=1, description="Largest number of translations of each source token, the most probable ones."
    )


class Shortlist:
    """The most probable target tokens of every source token.

    always: tokens in the shortlist of every source, ascending. starts: (source vocabulary + 1), where the translations
    of each source token start in `translations`. target_size: size of the target vocabulary. provenance: describes
    settings and training data, for comparisons.

    Source: Jean et al. 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section 3.3.
    """

    def __init__(self, always: Ints, starts: Longs, translations: Ints, target_size: int, provenance: str = "") -> None:
        self.always, self._starts, self._translations = always, starts, translations
        self.sizes, self.provenance = VocabularySizes(len(starts) - 1, target_size), provenance

    @classmethod
    def train(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        sizes: VocabularySizes,
        config: ShortlistConfig,
        always: Iterable[int] = (),
        *,
        threads: int | None = None,
        provenance: str = "",
    ) -> Self:
        """Train an alignment model on the token ids of sentence pairs, and return the shortlist.

        always: further tokens of every shortlist. threads: None for one per core; the result does not depend on it.

        Raises DataError if no pair has tokens on both sides, ResourceError if memory runs out, NoLibraryError if the
        C library can be neither loaded nor compiled, and Cancelled.
        """
        pairs = WordPairs.of(sources, targets)
        if not (pairs.source_lengths * pairs.target_lengths).any():
            raise DataError("there is nothing to align: no sentence pair has tokens on both sides")
        total = config.method.passes(len(pairs)) * len(pairs)
        with Workers(threads) as workers, Progress("Aligning", "sentence pairs", total) as progress:

            def on_pairs(count: int) -> None:
                progress.update(progress.done + count)

            data = TrainingData(pairs, (sizes.source, sizes.target), workers, on_pairs)
            model, _ = config.method.train(data)
        counts = np.bincount(pairs.target, minlength=sizes.target)
        frequent = np.argsort(-counts, kind="stable")[: config.frequent]
        rows = []
        for token in range(sizes.source):
            found, probabilities = model.lexicon.row(token + 1)
            best = np.argsort(-probabilities, kind="stable")[: config.translations]
            rows.append(found[best[probabilities[best] > 0]])
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        chosen = np.unique([UNK, EOS, *always, *frequent[counts[frequent] > 0]]).astype(np.int32)
        return cls(chosen, starts, np.concatenate(rows).astype(np.int32), sizes.target, provenance)

    @classmethod
    def load(cls, folder: Path, sizes: VocabularySizes) -> Self | None:
        """Load the shortlist of a model folder; None if it has none, as models for vectors.

        sizes: those of the model's vocabularies. Raises ModelError if the file is damaged or belongs to other
        vocabularies.
        """
        path = folder / SHORTLIST
        if sizes.vectors or not path.is_file():
            return None
        tensors, metadata = load_tensors(path)
        try:
            always, starts, translations, size = (
                tensors[name].numpy() for name in ("always", "starts", "translations", "target_size")
            )
            loaded = cls(always, starts, translations, int(size.item()), metadata.get(_PROVENANCE, ""))
        except (KeyError, ValueError, TypeError) as error:
            raise ModelError(f"{path} is damaged: {error}. Copy the model folder again") from None
        if loaded.sizes[:2] != sizes[:2] or not loaded._is_valid():
            raise ModelError(
                f"{path} does not fit the model's vocabularies of {sizes.source:,} and {sizes.target:,} tokens: "
                "copy the model folder again, or train a new shortlist"
            )
        return loaded

    def save(self, folder: Path) -> None:
        """Write the shortlist to a model folder. Raises ResourceError if it cannot be written."""
        arrays = {
            "always": self.always,
            "starts": self._starts,
            "translations": self._translations,
            "target_size": np.array([self.sizes.target]),
        }
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        save_tensors(folder / SHORTLIST, tensors, {_PROVENANCE: self.provenance})

    def tokens(self, source: Sequence[int], others: Iterable[int] = ()) -> Ints:
        """Return the tokens that the translation of a source may contain, in ascending order.

        source: ids. others: further tokens, such as those of required phrases.
        """
        is_included = np.zeros(self.sizes.target, np.bool_)
        is_included[self.always] = is_included[np.fromiter(others, np.int32)] = True
        for token in dict.fromkeys(source):
            is_included[self.translations(token)] = True
        return np.flatnonzero(is_included).astype(np.int32)

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines the tokens of a source."""
        arrays = self.always, self._starts, self._translations
        return blake2b(b"".join(array.tobytes() for array in arrays), digest_size=8).hexdigest()

    def translations(self, token: int) -> Ints:
        """Return the translations of a source token, the most probable one first."""
        return self._translations[self._starts[token] : self._starts[token + 1]]

    def _is_valid(self) -> bool:
        tokens = np.concatenate([self.always, self._translations])
        return (
            self._starts[0] == 0
            and self._starts[-1] == len(self._translations)
            and bool((np.diff(self._starts) >= 0).all())
            and int(tokens.min(initial=0)) >= 0
            and int(tokens.max(initial=0)) < self.sizes.target
        )


def provenance(config: ShortlistConfig, data: object) -> str:
    """Return a description of settings and training data for `Shortlist.provenance`."""
    return dump_yaml({"shortlist": config.model_dump(mode="json"), "data": data})
