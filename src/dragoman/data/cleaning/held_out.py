"""Repair of validation sets with the cleaning settings of the training corpora."""

from collections.abc import Sequence

from dragoman.base.log import info
from dragoman.data.cleaning.config import BaseCleaningConfig
from dragoman.data.cleaning.rules import repair_text


def repair_like_training(
    texts: Sequence[str], cleaning: BaseCleaningConfig, name: str, newlines: bool = False
) -> list[str]:
    """Return the texts of one side of a validation set, repaired like those of the training corpora; none is dropped.

    A model that never saw `&quot;` in training would otherwise be validated against it. name: of the set or the side,
    in the message that reports the number of changed texts. newlines: whether texts may have several lines. Sets are
    not changed if cleaning is disabled.
    """
    if not cleaning.enabled:
        return list(texts)
    repaired = [repair_text(text, cleaning, newlines) for text in texts]
    changed = sum(text != other for text, other in zip(texts, repaired, strict=True))
    if changed:
        info(f"{name}: {changed:,} of {len(texts):,} texts are repaired like the training corpora")
    return repaired
