"""Trains a word aligner or a shortlist on the training pairs of a translation model, for its folder; or the links for
guided alignment.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.base.log import info, warn
from dragoman.checkpoint.folder import ALIGNER, SHORTLIST
from dragoman.checkpoint.meta import Meta
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.statistical.alignment.add_shortlist import placeholder_tokens
from dragoman.statistical.alignment.estimation.library import functions
from dragoman.statistical.alignment.links import Alignment
from dragoman.statistical.alignment.shortlist import Shortlist, ShortlistConfig, provenance
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner
from dragoman.tasks.translation.config import DataConfig
from dragoman.tasks.translation.objectives.guided_alignment import TokenLinks
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import word_indices
from dragoman.training.progress.final_steps import FinalSteps

_PART = 0.5
"""Fraction of what is left of a time limit that a shortlist or a word aligner may take."""


def check_library(settings: Sequence[str], has_vectors: bool) -> None:
    """Check, before a run begins, that an aligner or a shortlist can be trained at its end.

    settings: those that request them. has_vectors: whether the sources are feature vectors. Raises ConfigError if they
    are, and NoLibraryError if the C library can be neither loaded nor compiled.
    """
    if settings and has_vectors:
        raise ConfigError(f"{settings[0]}: the sources are vectors, which have no words to align: remove {settings[0]}")
    functions()


def add_requested(folder: Path, data: DataConfig, prepared: PreparedCorpora, meta: Meta, steps: FinalSteps) -> None:
    """Add the shortlist and the word aligner to a model folder if the settings request them and there is time.

    meta: languages, licence and fingerprints of the corpora.
    """
    shortlist, aligner = data.shortlist, data.aligner
    requested: list[tuple[str, Callable[[], None]]] = []
    if shortlist is not None:
        requested.append(("shortlist", lambda: add_shortlist(folder, shortlist, prepared, meta)))
    if aligner is not None:
        requested.append(("aligner", lambda: add_word_aligner(folder, aligner, prepared, meta)))
    for name, add in requested:
        remedy = "dragoman train --resume with a higher train.max_minutes adds it"
        steps.run(f"data.{name}", add, fraction=_PART, remedy=remedy)


def add_word_aligner(folder: Path, config: AlignerConfig, prepared: PreparedCorpora, meta: Meta) -> None:
    """Train a word aligner on the prepared pairs and store it in a model folder. Prints a warning if this fails.

    meta: languages, licence and fingerprints of the corpora. An aligner of the same settings and corpora is kept.
    """
    try:
        if _is_current(folder / ALIGNER, config, meta):
            return
        sources, targets = _texts(prepared)
        aligner, _ = WordAligner.train(sources, targets, config)
        aligner.meta = meta.model_copy(update={"step": aligner.meta.step, "lengths": {}})
        aligner.save(folder / ALIGNER)
    except DragomanError as error:
        warn(f"the word aligner was not trained: {error}")
    else:
        info(f"The word aligner is in {folder / ALIGNER}.")


def _texts(prepared: PreparedCorpora) -> tuple[list[str], list[str]]:
    """Return the sources and targets of all pairs, after cleaning and normalisation."""
    source, target = prepared.tokenizers.source, prepared.tokenizers.target
    sources, targets = [], []
    for row in range(len(prepared.dataset)):
        source_ids, target_ids = prepared.dataset[row]
        sources.append(source.decode(source_ids.tolist()))
        targets.append(target.decode(target_ids.tolist()))
    return sources, targets


def _is_current(folder: Path, config: AlignerConfig, meta: Meta) -> bool:
    """Return whether a folder contains an intact aligner with these settings and corpora."""
    if not folder.is_dir():
        return False
    try:
        stored = WordAligner.load(folder)
    except ModelError:
        return False
    stored_config = stored.config if config.method else stored.config.model_copy(update={"method": None})
    return stored_config == config and stored.meta.data == meta.data


def token_links(prepared: PreparedCorpora, config: AlignerConfig) -> TokenLinks:
    """Train a word aligner on the prepared pairs, and return the links between their tokens.

    All tokens of linked words are linked. Pairs whose tokens differ from those of their text, for example because they
    contain marks, have no links. Raises the errors of `WordAligner.train`.
    """
    sources, targets = _texts(prepared)
    _, aligned = WordAligner.train(sources, targets, config)
    tokenizers, links, counts = prepared.tokenizers, [], []
    for row, alignment in enumerate(aligned.alignments):
        source_ids, target_ids = prepared.dataset[row]
        found = _row_links(
            tokenizers,
            sources[row],
            targets[row],
            source_ids.tolist(),
            target_ids=target_ids.tolist(),
            alignment=alignment,
        )
        links += found
        counts.append(len(found))
    pairs = np.array(links, np.int32).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return TokenLinks(starts, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]))


def _row_links(
    tokenizers: Tokenizers,
    source: str,
    target: str,
    source_ids: list[int],
    *,
    target_ids: list[int],
    alignment: Alignment,
) -> list[tuple[int, int]]:
    """Return the links (source token, target token) of a pair. The source ids may start with tags."""
    encoded = tokenizers.source.encode(source)
    tags = len(source_ids) - len(encoded)
    if tags < 0 or source_ids[tags:] != list(encoded) or target_ids != list(tokenizers.target.encode(target)):
        return []
    of_words: tuple[dict[int, list[int]], dict[int, list[int]]] = {}, {}
    for tokens, tokenizer, text in zip(of_words, (tokenizers.source, tokenizers.target), (source, target), strict=True):
        for token, word in enumerate(word_indices(tokenizer, text)):
            if word is not None:
                tokens.setdefault(word, []).append(token)
    return [
        (tags + i, j)
        for source_word, target_word in alignment
        for i in of_words[0].get(source_word, [])
        for j in of_words[1].get(target_word, [])
    ]


def add_shortlist(folder: Path, config: ShortlistConfig, prepared: PreparedCorpora, meta: Meta) -> None:
    """Train a shortlist on the prepared pairs and store it in a model folder. Prints a warning if this fails.

    meta: contains the fingerprints of the corpora. A shortlist of the same settings and corpora is kept.
    """
    origin, sizes = provenance(config, dict(meta.data)), prepared.tokenizers.sizes
    try:
        if _stored_provenance(folder, prepared) == origin:
            return
        pairs = [prepared.dataset[row] for row in range(len(prepared.dataset))]
        sources, targets = ([pair[side].tolist() for pair in pairs] for side in (0, 1))
        always = placeholder_tokens(prepared.tokenizers)
        Shortlist.train(sources, targets, sizes, config, always, provenance=origin).save(folder)
    except DragomanError as error:
        warn(f"the shortlist was not trained: {error}")
    else:
        info(f"The shortlist is in {folder / SHORTLIST}.")


def _stored_provenance(folder: Path, prepared: PreparedCorpora) -> str | None:
    """Return the provenance of the stored shortlist; None if there is no intact one."""
    try:
        stored = Shortlist.load(folder, prepared.tokenizers.sizes)
    except ModelError:
        return None
    return None if stored is None else stored.provenance
