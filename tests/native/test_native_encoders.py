"""The native engine has the outputs of PyTorch for every supported combination of settings."""

import random

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from native_encoders import native_model, random_encoder, random_encoder_settings, random_inputs

from dragoman.inference.prediction.outputs import compute_outputs


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_outputs_equal_those_of_pytorch(seed: int) -> None:
    chance = random.Random(seed)
    model = random_encoder(random_encoder_settings(chance), seed)
    inputs = random_inputs(chance, chance.choice([1, 2, 12]), model.encodes_separately)
    native = native_model(model, threads=chance.choice([1, 2]))
    expected = compute_outputs(model, inputs, torch.device("cpu"))
    found = compute_outputs(native, inputs, torch.device("cpu"))
    for one, other in zip(found, expected, strict=True):
        scale = max(1, np.abs(other[np.isfinite(other)]).max())  # small outputs are sums of larger states
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * scale)
