"""`WordAligner`: a trained aligner of both directions, which can be saved, loaded, and used for new texts."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import DataError, ModelError
from dragoman.base.progress import Progress
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.card.shown_model import ShownModel
from dragoman.checkpoint.folder import CONFIG, PARAMETERS, check_serves, read_config, read_meta, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import load_tensors
from dragoman.models.kinds.aligner import WordAlignerConfig
from dragoman.models.kinds.registry import WORD_ALIGNER, ModelKind
from dragoman.statistical.alignment.estimation.corpus import Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.method import AlignmentModel, TrainingData
from dragoman.statistical.alignment.estimation.pairs import WordPairs
from dragoman.statistical.alignment.estimation.words import WordsConfig, WordVocabulary, decode_words, encode_words
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.links import Alignment
from dragoman.statistical.alignment.methods.union import AlignmentMethod, default_method
from dragoman.statistical.alignment.symmetrization import Symmetrization, heuristic_of

_DIRECTIONS = ("forward", "reverse")
_SIDES = ("source", "target")


class AlignerConfig(Config):
    """The settings of a word aligner."""

    method: AlignmentMethod | None = Field(
        None,
        description="Alignment model. null: fertility, or hmm for texts with more than 50 million combinations of a "
        "source and a target word of the same pair.",
        json_schema_extra={"kind": "fertility"},
    )
    words: WordsConfig = Field(WordsConfig(), description="Words that the aligner distinguishes.")
    symmetrization: Symmetrization = Field(
        "grow-diag",
        description="Heuristic that combines the links of both directions. grow-diag usually has a low alignment error "
        "rate; grow-diag-final-and is usual for phrase extraction.",
    )


class AlignedPairs(NamedTuple):
    """Alignments of N sentence pairs.

    alignments: (N), symmetrised. forward, reverse: (N), log p(target | source) and log p(source | target) in nats.
    """

    alignments: list[Alignment]
    forward: NDArray[np.float64]
    reverse: NDArray[np.float64]


class WordAligner(ShownModel):
    """Aligns the words of sentence pairs. It implements the protocol `Aligner` of `translation`.

    forward: the model p(target | source), with at most one link per target word. reverse: p(source | target).

    >>> from dragoman import WordAligner
    >>> aligner, pairs = WordAligner.train(["the dog", "the cat", "a dog"], ["der Hund", "die Katze", "ein Hund"])
    >>> aligner.align(["a dog"], ["ein Hund"])  # (source word, target word)
    [((0, 0), (1, 1))]
    """

    kind: ModelKind = WORD_ALIGNER
    """The record of the kind of model."""

    def __init__(
        self,
        config: AlignerConfig,
        vocabularies: tuple[WordVocabulary, WordVocabulary],
        models: tuple[AlignmentModel, AlignmentModel],
        meta: Meta | None = None,
    ) -> None:
        """vocabularies: of source and target. models: forward and reverse."""
        self.config = config
        self.source_words, self.target_words = vocabularies
        self.forward, self.reverse = models
        self.meta = meta or Meta(step=0)

    @classmethod
    def train(
        cls,
        sources: Sequence[str],
        targets: Sequence[str],
        config: AlignerConfig | None = None,
        threads: int | None = None,
    ) -> tuple[Self, AlignedPairs]:
        """Train an aligner, and return it with the alignments of the training pairs.

        sources, targets: texts whose words are separated by whitespace; blank texts have no links. threads: None for
        one per core; the results do not depend on it.

        Raises DataError if the numbers of texts differ or no pair has words on both sides, ResourceError if memory
        runs out, NoLibraryError if the C library can be neither loaded nor compiled, and Cancelled.
        """
        config = config or AlignerConfig()
        vocabularies = WordVocabulary(config.words), WordVocabulary(config.words)
        pairs = _pairs(sources, targets, vocabularies, extend=True)
        if not (pairs.source_lengths * pairs.target_lengths).any():
            raise DataError("there is nothing to align: no sentence pair has words on both sides")
        words = len(vocabularies[0]), len(vocabularies[1])
        method = config.method or default_method(pairs.source_lengths, pairs.target_lengths)
        config = config.model_copy(update={"method": method})
        passes = method.passes(len(pairs))
        total = 2 * passes * len(pairs)
        with Workers(threads) as workers, Progress("Aligning", "sentence pairs", total) as progress:

            def on_pairs(count: int) -> None:
                progress.update(progress.done + count)

            trained = (
                method.train(TrainingData(pairs, words, workers, on_pairs)),
                method.train(TrainingData(pairs.swapped(), words[::-1], workers, on_pairs)),
            )
        aligner = cls(config, vocabularies, (trained[0][0], trained[1][0]), Meta(step=passes - 1))
        return aligner, _symmetrised(pairs, trained[0][1], trained[1][1], config.symmetrization)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load an aligner. Raises ModelError if the folder is not that of a word aligner, or is damaged."""
        folder = Path(folder)
        check_serves(folder, "align")
        content = read_config(folder)
        if content["model"].get("kind") != WordAlignerConfig().kind:
            raise ModelError(f"{folder} is not a word aligner: train one with `dragoman align --save FOLDER`")
        origin = f"in the `aligner` section of {folder / CONFIG}"
        config = parse_settings(content.get("aligner", {}), AlignerConfig, origin)
        if config.method is None:
            raise ModelError(f"{origin}: the method is missing. Copy the model folder again")
        arrays = {name: tensor.numpy() for name, tensor in load_tensors(folder / PARAMETERS)[0].items()}
        try:
            source, target = (
                WordVocabulary(config.words, decode_words(arrays[f"{side}.words"].tobytes())) for side in _SIDES
            )
            forward, reverse = (
                config.method.restore(
                    Lexicon.of_arrays(_with_prefix(arrays, f"{direction}.lexicon.")),
                    _with_prefix(arrays, f"{direction}.model."),
                )
                for direction in _DIRECTIONS
            )
        except (KeyError, UnicodeDecodeError) as error:
            raise ModelError(f"{folder / PARAMETERS} is damaged: {error}. Copy the model folder again") from None
        sizes = len(forward.lexicon.row_starts) - 2, len(reverse.lexicon.row_starts) - 2
        if sizes != (len(source), len(target)):
            raise ModelError(
                f"{folder / PARAMETERS} is damaged: the lexicons are of other words. Copy the folder again"
            )
        return cls(config, (source, target), (forward, reverse), read_meta(folder))

    def save(self, folder: str | Path) -> None:
        """Write a model folder. Raises ResourceError if it cannot be written."""
        entries = len(self.forward.lexicon.targets), len(self.reverse.lexicon.targets)
        settings = {
            "model": WordAlignerConfig(entries=entries).model_dump(mode="json"),
            "aligner": self.config.model_dump(mode="json"),
        }
        parameters = {name: torch.from_numpy(array) for name, array in self._arrays().items()}
        write_model_folder(Path(folder), parameters, dump_yaml(settings), None, self.meta)

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int = 64) -> list[Alignment]:
        """Return the symmetrised alignment of each pair. A blank text has no links.

        The alignment of a pair does not depend on other pairs. batch_size: ignored, because the memory for a pair is
        small; it is a parameter of the protocol. Raises DataError if the numbers of texts differ.
        """
        return self.align_pairs(sources, targets).alignments

    def align_pairs(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        symmetrization: str | None = None,
        threads: int | None = None,
    ) -> AlignedPairs:
        """Return the alignments and the log-probabilities of sentence pairs.

        symmetrization: None for the heuristic of the settings. threads: None for one per core. Raises DataError if the
        numbers of texts differ, and ConfigError for an unknown heuristic.
        """
        pairs = _pairs(sources, targets, (self.source_words, self.target_words), extend=False)
        with Workers(threads) as workers:
            forward, reverse = self.forward.align(pairs, workers), self.reverse.align(pairs.swapped(), workers)
        return _symmetrised(pairs, forward, reverse, symmetrization or self.config.symmetrization)

    def link_weights(self, source: str, target: str) -> NDArray[np.float64]:
        """Return the posterior probability of each link (target words, source words), the mean of both directions."""
        pairs = _pairs([source], [target], (self.source_words, self.target_words), extend=False)
        with Workers(1) as workers:
            (forward,) = self.forward.link_probabilities(pairs, workers)
            (reverse,) = self.reverse.link_probabilities(pairs.swapped(), workers)
        return (forward + reverse.T) / 2

    def settings(self) -> Mapping[str, Any]:
        """Return a digest of the settings and parameters."""
        digest = hashlib.sha256(dump_yaml(self.config.model_dump(mode="json")).encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(name.encode())
            digest.update(array.tobytes())
        return {"aligner": digest.hexdigest()[:16]}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        vocabularies = zip(_SIDES, (self.source_words, self.target_words), strict=True)
        arrays = {
            f"{side}.words": np.frombuffer(bytearray(encode_words(vocabulary.words)), np.uint8)
            for side, vocabulary in vocabularies
        }
        for direction, model in zip(_DIRECTIONS, (self.forward, self.reverse), strict=True):
            arrays |= {f"{direction}.lexicon.{name}": array for name, array in model.lexicon.arrays().items()}
            arrays |= {f"{direction}.model.{name}": array for name, array in model.arrays().items()}
        return arrays


def _with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _pairs(
    sources: Sequence[str], targets: Sequence[str], vocabularies: tuple[WordVocabulary, WordVocabulary], extend: bool
) -> WordPairs:
    """Return the pairs as numbers. extend: add new words to the vocabularies. Raises DataError for unequal numbers."""
    if len(sources) != len(targets):
        raise DataError(
            f"there are {len(sources):,} sources but {len(targets):,} targets: text n of one must be a translation of "
            "text n of the other"
        )
    source, target = ((each.extend if extend else each.encode) for each in vocabularies)
    return WordPairs.of([source(text) for text in sources], [target(text) for text in targets])


def _symmetrised(pairs: WordPairs, forward: Links, reverse: Links, heuristic: str) -> AlignedPairs:
    combine = heuristic_of(heuristic)
    rows = zip(_rows(forward, pairs.target_starts.tolist()), _rows(reverse, pairs.source_starts.tolist()), strict=True)
    alignments = [
        combine(
            {(source, target) for target, source in enumerate(of_targets) if source >= 0},
            {(source, target) for source, target in enumerate(of_sources) if target >= 0},
        )
        for of_targets, of_sources in rows
    ]
    return AlignedPairs(alignments, forward.log_likelihoods, reverse.log_likelihoods)


def _rows(links: Links, starts: Sequence[int]) -> Iterator[list[int]]:
    """Yield the positions of each pair."""
    positions = links.positions.tolist()
    for first, last in itertools.pairwise(starts):
        yield positions[first:last]
