"""Trains a shortlist on the training pairs of a translation model, for its folder."""

from pathlib import Path

from dragoman.base.errors import DragomanError, ModelError
from dragoman.base.log import info, warn
from dragoman.checkpoint.folder import SHORTLIST
from dragoman.checkpoint.meta import Meta
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.statistical.alignment.add_shortlist import placeholder_tokens
from dragoman.statistical.alignment.shortlist import Shortlist, ShortlistConfig, provenance


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
