"""Sampling follows the model's distribution, truncates like Hugging Face, and does not depend on batch or order."""

from collections import Counter
from math import exp, sqrt

import pytest
import torch
from searching import sampled, searched
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import parse_settings
from dragoman.decode.forced import force
from dragoman.decode.sampling import SamplingConfig, truncate, uniforms
from dragoman.decode.search import SearchConfig
from dragoman.models.interface import Memory
from dragoman.text.symbols import BOS, EOS, PAD

SIZE = 7
TOYS = {"markov": MarkovToy, "recurrent": RecurrentToy, "attending": AttendingToy}
SHORT = SamplingConfig(length_factor=0, length_margin=3)


def probabilities(
    decoder: MarkovToy, memory: Memory, config: SamplingConfig
) -> dict[tuple[tuple[int, ...], bool], float]:
    """Return the probability of every output up to the maximum length, by walking the tree of all of them."""
    found: dict[tuple[tuple[int, ...], bool], float] = {}

    def walk(tokens: tuple[int, ...], share: float) -> None:
        if len(tokens) == config.max_length(int(memory.mask.sum())):
            found[tokens, False] = share
            return
        output, _ = decoder.step(torch.tensor([[BOS, *tokens]]), decoder.start(memory))
        logits = output.last_logits()
        logits[:, list(config.forbid)] = -torch.inf
        following = truncate(logits, config).softmax(1)[0]
        for token, probability in enumerate(following.tolist()):
            if token == EOS:
                found[tokens, True] = share * probability
            elif probability:
                walk((*tokens, token), share * probability)

    walk((), 1.0)
    return found


@pytest.mark.parametrize("changes", [{}, {"temperature": 0.6}, {"top_k": 2}, {"top_p": 0.7, "temperature": 1.5}])
def test_frequencies_of_outputs_are_their_probabilities(changes: dict[str, float]) -> None:
    decoder, memory = MarkovToy(SIZE, 3), toy_memory([[2, 1]])
    decoder.table /= 2
    config = SHORT.model_copy(update=changes)
    expected = probabilities(decoder, memory, config)
    assert sum(expected.values()) == pytest.approx(1)
    count = 20_000
    torch.manual_seed(8)
    drawn = sampled(decoder, memory, config, torch.rand(1, count, 3, dtype=torch.float64))[0]
    seen = Counter((each.tokens, each.finished) for each in drawn)
    assert set(seen) <= {what for what, share in expected.items() if share > 0}
    # a count's deviation is √(N p (1 − p)); 4.5 deviations for the largest of some hundred counts
    for what, share in expected.items():
        assert abs(seen[what] - count * share) <= 4.5 * sqrt(count * share * (1 - share)) + 1


@pytest.mark.parametrize("name", TOYS)
def test_samples_do_not_depend_on_order_padding_and_neighbours(name: str) -> None:
    decoder = TOYS[name](SIZE, 5)
    sources = [[1, 2, 3], [4], [2, 2], [1, 3, 1, 4]]
    config = SamplingConfig(temperature=3, length_factor=1, length_margin=4)
    numbers = uniforms([(9, line) for line in range(4)], 3, 40)
    together = sampled(decoder, toy_memory(sources), config, numbers)
    for order, extra in (([2, 0, 3, 1], 3), ([1], 0), ([3], 2)):
        again = sampled(decoder, toy_memory([sources[row] for row in order], extra), config, numbers[order])
        for place, row in enumerate(order):
            assert [each.tokens for each in again[place]] == [each.tokens for each in together[row]]
    assert any(len({each.tokens for each in row}) > 1 for row in together)
    fewer = sampled(decoder, toy_memory(sources), config, numbers[:, :2])
    assert [[each.tokens for each in row] for row in fewer] == [[each.tokens for each in row[:2]] for row in together]


@pytest.mark.parametrize("name", TOYS)
def test_log_probabilities_are_those_of_forced_decoding(name: str) -> None:
    decoder, memory = TOYS[name](SIZE, 6), toy_memory([[1, 2], [3]])
    config = SamplingConfig(temperature=4, top_k=3, length_factor=0, length_margin=5)
    found = sampled(decoder, memory, config, uniforms([(1,), (2,)], 20, 5))
    assert {each.finished for row in found for each in row} == {True, False}
    for place, row in enumerate(found):
        alone = toy_memory([[[1, 2], [3]][place]])
        for each in row:
            labels = torch.tensor([[*each.tokens, *([EOS] if each.finished else [])]])
            inputs = torch.tensor([[BOS, *each.tokens][: labels.size(1)]])
            expected = float(force(decoder, alone, inputs, labels, torch.ones_like(labels, dtype=torch.bool)).sum())
            assert each.log_probability == pytest.approx(expected, abs=1e-4)
            assert len(each.tokens) + each.finished <= 5
            assert PAD not in each.tokens


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("changes", [{"top_k": 1}, {"temperature": 0}, {"temperature": 1e-300}, {"top_p": 1e-6}])
def test_sampling_without_choice_is_greedy_search(name: str, changes: dict[str, float]) -> None:
    decoder, memory = TOYS[name](SIZE, 4), toy_memory([[1, 2], [3], [4, 4, 1]])
    greedy = searched(decoder, memory, SearchConfig(beam=1, length_factor=1, length_margin=4))
    config = SamplingConfig(length_factor=1, length_margin=4, **changes)
    found = sampled(decoder, memory, config, uniforms([(line,) for line in range(3)], 2, 7))
    for row, best in zip(found, greedy, strict=True):
        assert all((each.tokens, each.finished) == (best[0].tokens, best[0].finished) for each in row)
        assert row[0].log_probability == pytest.approx(best[0].log_probability, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "warpers"),
    [
        ({"temperature": 0.7}, [TemperatureLogitsWarper(0.7)]),
        ({"top_k": 5}, [TopKLogitsWarper(5)]),
        ({"top_p": 0.8}, [TopPLogitsWarper(0.8)]),
        (
            {"temperature": 2.0, "top_k": 11, "top_p": 0.6},
            [TemperatureLogitsWarper(2.0), TopKLogitsWarper(11), TopPLogitsWarper(0.6)],
        ),
    ],
)
def test_truncation_equals_hugging_faces(changes: dict[str, float], warpers: list) -> None:
    logits = 2 * torch.randn(40, 23, generator=torch.Generator().manual_seed(1))
    expected = logits
    for warper in warpers:
        expected = warper(None, expected)
    found = truncate(logits, SamplingConfig(forbid=(), **changes))
    assert torch.equal(found.isinf(), expected.isinf())
    torch.testing.assert_close(found, expected)


def test_random_numbers_of_a_sentence_depend_on_its_seed_alone() -> None:
    numbers = uniforms([(3, 1), (3, 2)], 4, 10)
    assert torch.equal(numbers[1:], uniforms([(3, 2)], 4, 10))
    assert torch.equal(numbers[:, :2, :6], uniforms([(3, 1), (3, 2)], 2, 6))
    assert numbers.unique().numel() == numbers.numel()
    assert numbers.min() >= 0 and numbers.max() < 1


def test_the_ends_of_the_unit_interval_draw_possible_tokens() -> None:
    decoder, memory = MarkovToy(SIZE, 3), toy_memory([[2, 1]])
    ends = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)[None, :, None].expand(1, 2, 3)
    found = sampled(decoder, memory, SHORT.model_copy(update={"top_k": 3}), ends)[0]
    for each in found:
        assert exp(each.log_probability) > 1e-6
        assert not {0, 1, 3} & set(each.tokens)


def test_bad_settings_and_damaged_models_are_refused() -> None:
    for wrong in ({"temperature": -1}, {"top_p": 1.5}, {"top_k": 0}, {"forbid": [2]}):
        with pytest.raises(ConfigError):
            parse_settings(wrong, SamplingConfig, "here")
    decoder, memory = MarkovToy(SIZE, 3), toy_memory([[2, 1]])
    decoder.table[:] = torch.nan
    with pytest.raises(ModelError, match="NaN"):
        sampled(decoder, memory, SHORT, torch.rand(1, 2, 3))
