"""The reward alone, without likelihood, improves a half-trained copying model."""

from collections.abc import Iterable

import pytest
import torch
from searching import searched

from dragoman.data.batches.batch import Batch, collate
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.tasks.translation.objectives.sequence_reward import SequenceReward, SequenceRewardConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy

LETTERS = "abcdef"
SIZE = 4 + len(LETTERS)
UPDATES = 100


class Letters:
    """A vocabulary whose ids from 4 on are letters; each letter is a word."""

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        return [" ".join(LETTERS[number - 4] for number in ids if number >= 4) for ids in batch]


def batch(draw: torch.Generator, rows: int = 32) -> Batch:
    words = [
        torch.randint(4, SIZE, (int(torch.randint(3, 6, (1,), generator=draw)),), generator=draw) for _ in range(rows)
    ]
    lists = [word.tolist() for word in words]
    return collate(lists, lists, range(rows))


@torch.no_grad()
def right(model: Seq2Seq, pairs: Batch) -> float:
    """Return the fraction of words that greedy search copies."""
    model.eval()
    found = searched(model.decoder, model.encode(pairs.source, pairs.source_mask), SearchConfig(beam=1))
    wanted = [tuple(token for token in row if token > 3) for row in pairs.labels.tolist()]
    return sum(best[0].tokens == word for best, word in zip(found, wanted, strict=True)) / len(wanted)


def half_trained(seed: int, draw: torch.Generator, held_out: Batch) -> Seq2Seq:
    """Train by likelihood until the model copies some words, with as many updates as that takes."""
    torch.manual_seed(seed)
    stack = {"layers": 1, "heads": 2, "feedforward": 64}
    settings = {"preset": None, "width": 32, "encoder": stack, "decoder": stack, "dropout": 0.0}
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE)
    likelihood = CrossEntropy(label_smoothing=0.0)
    optimiser = torch.optim.Adam(model.parameters(), 4e-3)
    for step in range(1, 401):
        pairs = batch(draw)
        optimiser.zero_grad()
        (likelihood(model.train(), pairs).total / pairs.target_tokens).backward()
        optimiser.step()
        if step % 5 == 0 and right(model, held_out) >= 0.3:
            break
    return model


@pytest.mark.slow  # the gradient is compared with the exact one in `test_sequence_reward.py`
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reward_alone_improves_on_likelihood(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    held_out = batch(draw, 200)
    model = half_trained(seed, draw, held_out)
    reward = SequenceRewardConfig(metric="chrf", samples=6, likelihood=0.0)
    drawn = SamplingConfig(length_factor=1, length_margin=3, forbid=())
    objective = SequenceReward(CrossEntropy(), reward, Letters(), sampling=drawn)  # type: ignore[arg-type]

    def earned() -> float:
        """Return the mean reward of samples of held-out words."""
        with torch.no_grad():
            return objective.minus_expected_reward(model.eval(), held_out)[1]

    before, first = right(model, held_out), earned()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(UPDATES):
        pairs = batch(draw)
        optimiser.zero_grad()
        (objective(model.train(), pairs).total / pairs.target_tokens).backward()
        optimiser.step()
    after, last = right(model, held_out), earned()
    assert before < 0.6, f"{before:.1%} of words right already"
    assert last > first + 0.1, f"mean reward of samples {first:.3f}, then {last:.3f}"
    assert after > before + 0.05, f"{before:.1%} of words right, then {after:.1%}"
