"""Edge cases of the search: invalid settings, outputs that cannot end, damaged models, empty batches."""

import math
from collections.abc import Callable

import pytest
import torch
from given_logits import GivenLogits
from pydantic import ValidationError
from searching import searched
from torch import Tensor

from dragoman.base.errors import ConfigError, ModelError
from dragoman.decode.forced import force
from dragoman.decode.rules.coverage import penalty
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import SearchConfig
from dragoman.models.interface import Memory, State
from dragoman.text.symbols import BOS, EOS, PAD, UNK

A, B, SIZE = 4, 5, 6


class Fixed:
    """Returns the same logits at every step, and counts the requested rows."""

    def __init__(
        self, logits: list[float], then: Callable[[Tensor, int], Tensor] = lambda logits, position: logits
    ) -> None:
        self.logits, self.then, self.rows = torch.tensor(logits), then, []  # type: ignore[var-annotated]

    def start(self, memory: Memory, attention: bool = False, left_padding: Tensor | None = None) -> State:
        return State(memory=memory.states, cache=torch.zeros(len(memory.mask), 1), left_padding=left_padding)

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        self.rows.append(len(tokens))
        logits = self.then(self.logits, state.position).expand(*tokens.shape, -1)
        return GivenLogits(logits), state.after(tokens.shape[1], state.cache)


def memory(*lengths: int) -> Memory:
    keep = torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
    return Memory(torch.zeros(len(lengths), max(lengths), 1), keep)


NEVER_ENDS = [0.0, 0.0, -30.0, 0.0, 2.0, 1.0]


def test_an_output_that_does_not_end_is_cut_at_the_longest_and_flagged() -> None:
    config = SearchConfig(beam=2, nbest=2, length_factor=1.5, length_margin=2)
    for length, found in zip((4, 1, 3), searched(Fixed(NEVER_ENDS), memory(4, 1, 3), config), strict=True):
        assert [each.finished for each in found] == [False, False]
        assert found[0].tokens == (A,) * int(1.5 * length + 2)
        assert len(found[1].tokens) == len(found[0].tokens)
        assert found[0].score > found[1].score


def test_finished_sentences_leave_the_batch() -> None:
    decoder = Fixed(NEVER_ENDS)
    searched(decoder, memory(1, 3, 3), SearchConfig(beam=2, length_factor=1, length_margin=1))
    assert decoder.rows == [3, 6, 4, 4]


def test_no_step_is_made_once_no_live_hypothesis_can_win() -> None:
    decoder = Fixed([0.0, 0.0, 9.0, 0.0, 1.0, 1.0])
    ((best,),) = searched(decoder, memory(9), SearchConfig(beam=2, length_penalty=NoPenalty()))
    assert (best.tokens, best.finished) == ((), True)
    assert decoder.rows == [1]


def test_greedy_search_stops_at_the_first_end_and_a_beam_does_not() -> None:
    ends_then = torch.tensor([0.0, 0.0, 30.0, 0.0, 0.0, 0.0])
    decoder = Fixed([-30.0, -30.0, 1.0, -30.0, 0.9, -30.0], lambda logits, position: ends_then if position else logits)
    config = SearchConfig(beam=1, length_penalty=MeanLogProbability())
    assert searched(decoder, memory(1), config)[0][0].tokens == ()
    assert searched(decoder, memory(1), config.model_copy(update={"beam": 2}))[0][0].tokens == (A,)


def test_special_symbols_are_not_generated_unless_allowed() -> None:
    decoder = Fixed([9.0, 8.0, 0.0, 7.0, 1.0, 0.5])
    config = SearchConfig(beam=1, length_factor=0, length_margin=2)
    assert searched(decoder, memory(1), config)[0][0].tokens == (A, A)
    assert searched(decoder, memory(1), config.model_copy(update={"forbid": (PAD, BOS)}))[0][0].tokens == (UNK, UNK)


def test_forbidding_does_not_change_the_log_probabilities_of_the_rest() -> None:
    decoder = Fixed([9.0, 8.0, 0.0, 7.0, 1.0, 0.5])
    ((best,),) = searched(decoder, memory(1), SearchConfig(beam=1, length_factor=0, length_margin=1))
    assert best.log_probability == pytest.approx(float(decoder.logits.log_softmax(0)[A]))


def test_minimum_length_delays_the_end() -> None:
    decoder = Fixed([0.0, 0.0, 9.0, 0.0, 1.0, 0.5])
    for least in (0, 1, 4, 50):  # 50 exceeds the maximum length
        (found,) = searched(decoder, memory(1), SearchConfig(minimum_length=least, beam=1))
        assert found[0].tokens == (A,) * least
        assert found[0].finished


def test_the_list_is_never_empty_even_if_no_token_may_follow() -> None:
    blocked = SearchConfig(beam=3, minimum_length=2, forbid=(PAD, BOS, UNK, A, B))
    ((best,),) = searched(Fixed([0.0] * SIZE), memory(2), blocked)
    assert (best.tokens, best.log_probability, best.finished) == ((), 0.0, False)


def test_impossible_tokens_are_never_taken() -> None:
    minus = float("-inf")
    found = searched(Fixed([minus, minus, -1.0, minus, 0.0, minus]), memory(1), SearchConfig(beam=4, nbest=4))[0]
    assert all(set(each.tokens) <= {A} for each in found)
    assert all(each.log_probability > minus for each in found)


def test_no_sentences_no_lists() -> None:
    assert (
        searched(Fixed(NEVER_ENDS), Memory(torch.zeros(0, 3, 1), torch.zeros(0, 3, dtype=torch.bool)), SearchConfig())
        == []
    )


def test_a_model_that_computes_nan_is_refused() -> None:
    broken = Fixed(NEVER_ENDS, lambda logits, position: logits * torch.nan if position == 2 else logits)
    with pytest.raises(ModelError, match="NaN"):
        searched(broken, memory(3, 2), SearchConfig())


def test_half_precision_models_are_searched_in_float32() -> None:
    decoder = Fixed(NEVER_ENDS)
    decoder.logits = decoder.logits.bfloat16()
    ((best,),) = searched(decoder, memory(1), SearchConfig(beam=1, length_factor=0, length_margin=3))
    assert best.log_probability == pytest.approx(3 * float(decoder.logits.float().log_softmax(0)[A]), abs=1e-5)


def test_prefixes_that_do_not_fit_are_refused() -> None:
    decoder, config = Fixed(NEVER_ENDS), SearchConfig()
    with pytest.raises(ConfigError, match="1 prefixes for 2 sentences"):
        searched(decoder, memory(1, 1), config, [[A]])
    with pytest.raises(ConfigError, match="end of sentence"):
        searched(decoder, memory(1), config, [[A, EOS]])
    with pytest.raises(ConfigError, match=r"token 99.* only 6"):
        searched(decoder, memory(1), config, [[99]])


def test_a_prefix_longer_than_the_longest_output_is_kept_whole() -> None:
    ((best,),) = searched(
        Fixed(NEVER_ENDS), memory(1), SearchConfig(beam=1, length_factor=0, length_margin=2), [[B] * 5]
    )
    assert best.tokens == (B, B, B, B, B, A)


def test_a_coverage_penalty_needs_attention() -> None:
    with pytest.raises(ConfigError, match=r"coverage_penalty.*no attention"):
        searched(Fixed(NEVER_ENDS), memory(2), SearchConfig(coverage_penalty=0.2))


def test_a_source_without_attention_has_a_finite_score() -> None:
    assert penalty(torch.tensor([[0.0, 1.0, 3.0], [1.0, 2.0, 1.0]])).tolist() == pytest.approx([-87.3365, 0], abs=1e-3)
    coverage = torch.tensor([0.5, 0.25, 7.0], dtype=torch.float64)
    assert float(penalty(coverage)) == pytest.approx(math.log(0.5) + math.log(0.25))


def test_invalid_settings_are_refused() -> None:
    for value in (-0.1, math.inf, math.nan):
        with pytest.raises(ValidationError, match="coverage_penalty"):
            SearchConfig(coverage_penalty=value)
    with pytest.raises(ValidationError, match="raise beam"):
        SearchConfig(beam=2, nbest=3)
    with pytest.raises(ValidationError, match="end of sentence"):
        SearchConfig(forbid=(EOS,))
    with pytest.raises(ValidationError, match="alpha"):
        SearchConfig.model_validate({"length_penalty": -1})
    with pytest.raises(ValidationError, match="kind"):
        SearchConfig.model_validate({"length_penalty": {"kind": "gnmtt"}})


def test_a_length_penalty_is_read_from_settings() -> None:
    assert SearchConfig().length_penalty == GNMTPenalty(alpha=0.6)
    assert SearchConfig.model_validate({"length_penalty": 1}).length_penalty == GNMTPenalty(alpha=1)
    assert SearchConfig.model_validate({"length_penalty": {"kind": "mean"}}).length_penalty == MeanLogProbability()
    assert GNMTPenalty(alpha=0.6).divisor(7) == pytest.approx(2**0.6)
    assert [MeanLogProbability().divisor(7), NoPenalty().divisor(7)] == [7, 1]


def test_forced_decoding_is_zero_at_padding() -> None:
    decoder = Fixed(NEVER_ENDS)
    labels = torch.tensor([[A, EOS, PAD], [B, A, EOS]])
    found = force(decoder, memory(1, 1), torch.full((2, 3), BOS), labels, labels != PAD)
    wanted = decoder.logits.log_softmax(0)[labels] * (labels != PAD)
    assert torch.allclose(found, wanted)
