"""`with_unused_rows`: vocabularies whose embeddings have more rows than entries."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.files import CONFIG


def with_unused_rows(ids: Mapping[str, int], size: int, folder: Path) -> dict[str, int]:
    """Return a vocabulary with an entry that no text contains for each row of the embeddings without one.

    Hugging Face's `resize_token_embeddings(pad_to_multiple_of=64)` adds such rows. ids: 0 to N − 1. size: number of
    rows. Raises ModelError if there are more entries than rows.
    """
    if len(ids) > size:
        raise ModelError(
            f"{folder}: the vocabulary has {len(ids)} entries, but the embeddings in {CONFIG} have {size} rows: the "
            "files are from different models"
        )
    names = (name for number in count() if (name := f"[unused{number}]") not in ids)
    return {**ids, **{next(names): number for number in range(len(ids), size)}}
