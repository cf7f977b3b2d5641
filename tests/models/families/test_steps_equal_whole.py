"""The decoder's invariant: tokens read at once equal tokens read in steps, for any split, beam, batch and padding."""

from functools import cache
from random import Random

import torch
from closeness import assert_close
from decoder_inputs import started, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from random_parameters import perturb

from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq

SIZE = 20
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@cache
def model(norm: str, tied: bool, depths: tuple[int, int]) -> Seq2Seq:
    torch.manual_seed(6)
    encoder, decoder = ({"layers": each, "heads": 2, "feedforward": 12, "norm": norm} for each in depths)
    config = ModelConfig.model_validate(
        {
            "preset": None,
            "width": 8,
            "encoder": encoder,
            "decoder": decoder,
            "tie_embeddings": tied,
            "tie_projection": tied,
        }
    )
    built = config.build(SIZE, SIZE if tied else SIZE + 3).eval()
    return perturb(built)


MODELS = st.builds(model, st.sampled_from(["post", "pre"]), st.booleans(), st.sampled_from([(1, 1), (2, 1), (1, 3)]))
TOKENS = st.integers(4, SIZE - 1)
SENTENCES = st.lists(st.lists(TOKENS, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(MODELS, SENTENCES, st.lists(st.integers(1, 4), min_size=1, max_size=5))
@torch.no_grad()
def test_any_split_of_the_steps_equals_the_whole(model: Seq2Seq, sources: list[list[int]], split: list[int]) -> None:
    tokens = targets(len(sources), sum(split), SIZE)
    whole, after = model.decoder.step(tokens, started(model, sources))
    for lengths in (split, [1] * sum(split)):
        state, parts = started(model, sources), []
        for part in tokens.split(lengths, 1):
            output, state = model.decoder.step(part, state)
            parts.append(output.logits())
        assert_close(torch.cat(parts, 1), whole.logits())
        assert state.position == after.position == sum(split)


@settings(max_examples=10, deadline=None)
@given(MODELS, SENTENCES, st.data())
@torch.no_grad()
def test_reordered_hypotheses_continue_as_if_read_alone(
    model: Seq2Seq, sources: list[list[int]], data: st.DataObject
) -> None:
    """Expansion to a beam, a shuffle within it, and pruning of sentences, against each row read from the start."""
    state, read, width = started(model, sources), torch.zeros(len(sources), 0, dtype=torch.int64), 1
    owners = list(range(len(sources)))
    for _ in range(3):
        fresh = data.draw(st.lists(TOKENS, min_size=len(owners), max_size=len(owners)))
        step = torch.tensor(fresh)[:, None]
        output, state = model.decoder.step(step, state)
        read = torch.cat([read, step], 1)
        for row, owner in enumerate(owners):
            alone, _ = model.decoder.step(read[row : row + 1], started(model, [sources[owner]]))
            assert_close(output.logits()[row, -1], alone.logits()[0, -1])
        groups = len(owners) // width
        kept = sorted(data.draw(st.sets(st.integers(0, groups - 1), min_size=1)))
        new_width = data.draw(st.integers(1, 3))
        chosen = [
            sentence * width + data.draw(st.integers(0, width - 1)) for sentence in kept for _ in range(new_width)
        ]
        rows = torch.tensor(chosen)
        state, read, owners, width = (
            state.reorder(rows, new_width),
            read[rows],
            [owners[row] for row in chosen],
            new_width,
        )


@settings(max_examples=20, deadline=None)
@given(MODELS, SENTENCES, st.integers(0, 4), st.randoms(use_true_random=False))
@torch.no_grad()
def test_padding_and_the_batchs_order_change_nothing(
    model: Seq2Seq, sources: list[list[int]], extra: int, random: Random
) -> None:
    tokens = targets(len(sources), 4, SIZE)
    expected = [
        model.decoder.step(tokens[row : row + 1], started(model, [source]))[0].logits()[0]
        for row, source in enumerate(sources)
    ]
    order = random.sample(range(len(sources)), len(sources))
    shuffled = started(model, [sources[row] for row in order], extra)
    found = model.decoder.step(tokens[order], shuffled)[0].logits()
    for place, row in enumerate(order):
        assert_close(found[place], expected[row])


@settings(max_examples=15, deadline=None)
@given(MODELS, SENTENCES, st.integers(1, 4))
@torch.no_grad()
def test_later_tokens_do_not_change_earlier_ones(model: Seq2Seq, sources: list[list[int]], place: int) -> None:
    tokens = targets(len(sources), 5, SIZE)
    changed = tokens.clone()
    changed[:, place] = 4 + (tokens[:, place] - 3) % (SIZE - 4)
    one = model.decoder.step(tokens, started(model, sources))[0].logits()
    two = model.decoder.step(changed, started(model, sources))[0].logits()
    assert_close(one[:, :place], two[:, :place])
    assert not torch.allclose(one[:, place], two[:, place], **CLOSE)
