"""The Triton kernels of a decoding step against PyTorch: on a GPU, or on a CPU with TRITON_INTERPRET=1."""

import os

import pytest
import torch

from dragoman.engines.cuda import attention, kernels

pytest.importorskip("triton")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")

pytestmark = pytest.mark.skipif(
    not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and TRITON_INTERPRET=1 is not set"
)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(("key", "value"), [(64, 64), (6, 10), (32, 16)])
def test_self_attention(beam: int, key: int, value: int) -> None:
    torch.manual_seed(1)
    sentences, heads, capacity = 4, 2, 40
    places = torch.tensor([0, 5, 16, 39], device=DEVICE)
    keys = torch.randn(sentences, heads, beam, capacity, key, device=DEVICE)
    values = torch.randn(sentences, heads, beam, capacity, value, device=DEVICE)
    branches = torch.randint(0, beam, (sentences, beam, capacity), device=DEVICE)
    own = torch.arange(beam, device=DEVICE).expand(sentences, beam)
    branches.scatter_(2, places.view(-1, 1, 1).expand(-1, beam, 1), own.unsqueeze(2))
    wide = torch.randn(sentences * beam, heads * (2 * key + value) + 3, device=DEVICE)
    query, new_key = (wide[:, at : at + heads * key].view(-1, heads, key) for at in (0, heads * key))
    new_value = wide[:, 2 * heads * key :][:, : heads * value].view(-1, heads, value)
    active = torch.ones(sentences, dtype=torch.bool, device=DEVICE)
    expected_keys, expected_values = keys.clone(), values.clone()
    attention._store(expected_keys, new_key, places)
    attention._store(expected_values, new_value, places)
    expected = attention._attend(
        query * 0.3, expected_keys.flatten(2, 3), expected_values.flatten(2, 3), attention._visible(places, branches)
    )
    found = kernels.self_attention(
        query, new_key, new_value, keys, values, positions=places, branches=branches, active=active, scale=0.3
    )
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.equal(keys, expected_keys)
    assert torch.equal(values, expected_values)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(("key", "value", "source"), [(64, 64, 16), (6, 10, 32), (32, 16, 7)])
def test_cross_attention(beam: int, key: int, value: int, source: int) -> None:
    torch.manual_seed(2)
    sentences, heads = 3, 2
    keys = torch.randn(sentences, heads, source, key, device=DEVICE)
    values = torch.randn(sentences, heads, source, value, device=DEVICE)
    mask = torch.arange(source, device=DEVICE) < torch.tensor([[1], [source], [5]], device=DEVICE)
    query = torch.randn(sentences * beam, heads, key, device=DEVICE)
    active = torch.ones(sentences, dtype=torch.bool, device=DEVICE)
    expected = attention._attend(query * 0.2, keys, values, mask[:, None, None])
    assert torch.allclose(
        kernels.cross_attention(query, keys, values, mask, active=active, scale=0.2), expected, atol=1e-5
    )


@pytest.mark.parametrize("size", [5, 4096, 10007])
def test_logsumexp(size: int) -> None:
    torch.manual_seed(3)
    logits = 20 * torch.randn(3, size, device=DEVICE)
    logits[1, ::2] = -torch.inf
    found = kernels.logsumexp(logits)
    assert torch.allclose(found, logits.logsumexp(1, keepdim=True), atol=1e-4)
    logits[2, 3] = torch.nan
    assert kernels.logsumexp(logits)[2].isnan()
