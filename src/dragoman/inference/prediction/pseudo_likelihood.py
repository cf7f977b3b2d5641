"""Pseudo-log-likelihoods of texts under a masked language model."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from dragoman.base.progress import Progress
from dragoman.data.batches.batch import pad
from dragoman.data.batches.masking import MASK
from dragoman.inference.prediction.outputs import TOKENS, length_batches
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer


@torch.no_grad()
def pseudo_log_likelihoods(
    model: EncoderOnly,
    tokenizer: Tokenizer,
    texts: Sequence[Sequence[int]],
    limit: int | None,
    batch_tokens: int = TOKENS,
) -> list[float]:
    """Return Σ log p(token | all other tokens) for each text (Salazar et al. 2020, equation 1), in nats.

    Each token is masked in turn, so a text of n tokens takes n passes of the model. Special symbols are not predicted.
    texts: token ids without special symbols. limit: maximum number of tokens of an input; a longer text is divided into
    blocks, which do not share context. batch_tokens: maximum number of tokens of a batch.
    """
    (mask,) = tokenizer.tag_ids([MASK])
    device = next(model.parameters()).device
    pieces = [(number, block) for number, ids in enumerate(texts) for block in _blocks(ids, limit)]
    jobs = [(number, block, place) for number, block in pieces for place in range(1, len(block) - 1)]
    sums = [0.0] * len(texts)
    with Progress("Scoring", "tokens", len(jobs)) as progress:
        done = 0
        for rows in length_batches([len(block) for _, block, _ in jobs], batch_tokens):
            chosen = [jobs[row] for row in rows]
            places = torch.tensor([place for _, _, place in chosen])
            ids, padding = pad([block for _, block, _ in chosen])
            own = torch.arange(len(chosen))
            labels = ids[own, places]
            ids[own, places] = mask
            flat = own * ids.size(1) + places
            logits = model(ids.to(device), padding.to(device)).logits(flat.to(device)).double()
            scores = logits.log_softmax(1).gather(1, labels[:, None].to(device))[:, 0].tolist()
            for (number, _, _), score in zip(chosen, scores, strict=True):
                sums[number] += score
            done += len(rows)
            progress.update(done)
    return sums


def _blocks(ids: Sequence[int], limit: int | None) -> Iterator[np.ndarray]:
    """Yield the inputs of a text, each with BOS and EOS."""
    size = len(ids) if limit is None else limit - 2
    for start in range(0, len(ids), max(1, size)):
        yield np.array([BOS, *ids[start : start + size], EOS])
