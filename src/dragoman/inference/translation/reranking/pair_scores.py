"""`pair_scores`: the log-probabilities that a translation model assigns to the translations of another model."""

from collections.abc import Sequence
from typing import Protocol

from dragoman.inference.abilities import SupportsLines, SupportsScorePairs
from dragoman.models.interface import first_exceeded

UNREADABLE = -1e6
"""Log-probability (nats) assigned to pairs that are too long for the model, so that they are ranked last."""


class PairScorer(SupportsLines, SupportsScorePairs, Protocol):
    """A model that scores pairs and knows their maximum lengths."""


def pair_scores(
    model: PairScorer,
    sources: Sequence[str],
    targets: Sequence[str],
    batch_size: int = 64,
    *,
    to: str | None = None,
    tags: Sequence[str] = (),
) -> list[float]:
    """Return log p(target | source) of each pair in nats, with the end of sentence, or `UNREADABLE` for a long one.

    to, tags: as in `Translator.request`. Equal pairs are scored once.
    """
    prefix = len(model.source_tags.of(to, tags))
    pairs = list(dict.fromkeys(zip(sources, targets, strict=True)))
    source_ids = model.tokenizers.source.encode_batch([source for source, _ in pairs])
    target_ids = model.tokenizers.target.encode_batch([target for _, target in pairs])
    readable = [
        pair
        for pair, source, target in zip(pairs, source_ids, target_ids, strict=True)
        if first_exceeded(model.engine.limits, prefix + len(source), len(target)) is None
    ]
    scores = model.score(
        [source for source, _ in readable], [target for _, target in readable], batch_size, to=to, tags=tags
    )
    found = {pair: score.log_probability for pair, score in zip(readable, scores, strict=True)}
    return [found.get(pair, UNREADABLE) for pair in zip(sources, targets, strict=True)]
