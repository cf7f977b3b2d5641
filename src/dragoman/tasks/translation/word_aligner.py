"""Trains a word aligner on the training pairs of a translation model, and stores it in the model's folder."""

from pathlib import Path

from dragoman.alignment.library import functions
from dragoman.alignment.word_aligner import FOLDER, AlignerConfig, WordAligner
from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.base.log import info, warn
from dragoman.checkpoint.meta import Meta
from dragoman.data.preparation.pipeline import PreparedCorpora


def check_library(has_vectors: bool) -> None:
    """Check, before a run begins, that an aligner can be trained at its end.

    has_vectors: whether the sources are feature vectors. Raises ConfigError if they are, and NoLibraryError if the C
    library can be neither loaded nor compiled.
    """
    if has_vectors:
        raise ConfigError("data.aligner: the sources are vectors, which have no words to align: remove data.aligner")
    functions()


def add_word_aligner(folder: Path, config: AlignerConfig, prepared: PreparedCorpora, meta: Meta) -> None:
    """Train a word aligner on the prepared pairs and store it in a model folder. Prints a warning if this fails.

    meta: languages, licence and fingerprints of the corpora. An aligner of the same settings and corpora is kept.
    """
    try:
        if _is_current(folder / FOLDER, config, meta):
            return
        sources, targets = _texts(prepared)
        aligner, _ = WordAligner.train(sources, targets, config)
        aligner.meta = meta.model_copy(update={"step": aligner.meta.step, "lengths": {}})
        aligner.save(folder / FOLDER)
    except DragomanError as error:
        warn(f"the word aligner was not trained: {error}")
    else:
        info(f"The word aligner is in {folder / FOLDER}.")


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
    return stored.config == config and stored.meta.data == meta.data
