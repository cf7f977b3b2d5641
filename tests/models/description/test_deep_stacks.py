"""Deep models are described without running their layers: costs are those of the whole model, sizes those of papers."""

from time import process_time

import pytest
import torch

from dragoman.models.description.deep_stacks import deep_sides
from dragoman.models.description.describe import count_model_operations, describe_model
from dragoman.models.description.footprint import fit_footprint, measure_trials, trial_lengths
from dragoman.models.initialisation import without_storage
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes

LAYER = {"heads": 2, "feedforward": 24}


def stacks(encoder: int, decoder: int) -> ModelConfig:
    sides = {"encoder": {**LAYER, "layers": encoder}, "decoder": {**LAYER, "layers": decoder}}
    return ModelConfig.model_validate({"preset": None, "width": 8, **sides})


DEEP: dict[str, ModelSettings] = {
    "both sides": stacks(17, 16),
    "language model": LanguageModelConfig.model_validate(
        {"preset": None, "width": 8, "decoder": {**LAYER, "layers": 18, "norm": "pre"}, "positions": {"kind": "rotary"}}
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_costs_equal_those_of_all_layers(name: str) -> None:
    config, sizes, length = DEEP[name], VocabularySizes(30, 30), 16
    assert deep_sides(config)
    found = describe_model(config, sizes, length)
    with without_storage():
        whole, small = (config.build_for(VocabularySizes(each, each)).to("meta") for each in (30, 8))
    assert found.operations == count_model_operations(whole, length)
    lengths = trial_lengths(small, length)
    with torch.device("meta"):
        expected = fit_footprint(length, lengths, measure_trials(small, lengths, training=True))
    for part in ("training", "encoding", "memory", "cache"):
        assert getattr(found.footprint, part) == pytest.approx(getattr(expected, part), rel=0.02), part


def test_other_families_and_shallow_stacks_are_measured_as_a_whole() -> None:
    assert deep_sides(stacks(15, 15)) == []
    recurrent = ModelConfig.model_validate({"preset": "rnn", "encoder": {"layers": 16}})
    assert deep_sides(recurrent) == []


def describe_language_model(
    width: int, layers: int, heads: int, vocabulary: int, **settings: object
) -> tuple[int, float]:
    """Return the number of parameters, and the CPU seconds of the description."""
    decoder = {"layers": layers, "heads": heads, "feedforward": 4 * width}
    config = LanguageModelConfig.model_validate({"preset": "large", "width": width, "decoder": decoder, **settings})
    start = process_time()
    parameters = describe_model(config, VocabularySizes(vocabulary, vocabulary), 32).parameters
    return parameters, process_time() - start


def test_the_sizes_of_gpt_3_gopher_and_mt_nlg() -> None:
    """Brown et al. 2020, table 2.1; Rae et al. 2021, table 1; Smith et al. 2022, section 2.3.

    Gopher has the relative positions of Transformer-XL, which dragoman lacks: one d × d projection per layer.
    """
    describe_language_model(64, 16, 2, 100)  # torch imports its compiler the first time
    learned = {"positions": {"kind": "learned", "limit": 2048}}
    parameters, seconds = describe_language_model(12_288, 96, 96, 50_257, **learned)
    assert parameters == 174_604_259_328 and parameters == pytest.approx(175e9, rel=0.01)
    assert seconds < 5
    rotary = {"positions": {"kind": "rotary"}}  # without parameters
    parameters, seconds = describe_language_model(16_384, 80, 128, 32_000, **rotary)
    assert parameters + 80 * 16_384**2 == pytest.approx(280e9, rel=0.01)
    assert seconds < 5
    parameters, seconds = describe_language_model(20_480, 105, 128, 50_257, **learned)
    assert parameters == pytest.approx(530e9, rel=0.01)
    assert seconds < 5
