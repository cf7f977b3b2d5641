"""Bucketed relative positions: buckets by their definition, shared biases, equal in steps and at once."""

from math import floor, log

import pytest
import torch
from closeness import assert_close
from pydantic import ValidationError

from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.positions.bucketed import BucketedConfig


def bucket(offset: int, buckets: int, longest: int, bidirectional: bool) -> int:
    """The definition: half of a direction's buckets are exact, and the others grow by a constant factor."""
    first, count = (buckets // 2 if offset > 0 else 0, buckets // 2) if bidirectional else (0, buckets)
    distance, exact = abs(offset) if bidirectional else max(-offset, 0), count // 2
    if distance < exact:
        return first + distance
    share = log(distance / exact) / log(longest / exact)
    return first + min(exact + floor(share * (count - exact) + 1e-6), count - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (8, 20), (4, 3)])
def test_buckets_are_those_of_the_definition(buckets: int, longest: int, bidirectional: bool) -> None:
    relation = BucketedConfig(buckets=buckets, max_distance=longest, bidirectional=bidirectional).build_relative(
        2, 4, 4, 4
    )
    offsets = torch.arange(-300, 301)
    expected = [bucket(offset, buckets, longest, bidirectional) for offset in offsets.tolist()]
    assert relation.bucket(offsets).tolist() == expected
    assert {*expected} <= {*range(buckets)}


@torch.no_grad()
def test_all_layers_share_the_biases_and_steps_equal_the_whole() -> None:
    torch.manual_seed(2)
    stack = {"layers": 3, "heads": 2, "feedforward": 8}
    settings = {"preset": None, "width": 8, "dropout": 0.0, "encoder": stack, "decoder": stack}
    positions = {"kind": "bucketed", "buckets": 4, "max_distance": 5}
    target = {**positions, "bidirectional": False}
    model = ModelConfig.model_validate({**settings, "positions": positions, "target_positions": target}).build(9, 9)
    model.eval()
    names = [name for name, _ in model.named_parameters() if name.endswith("relation.table")]
    assert names == [f"{side}.layers.0.self_attention.relation.table" for side in ("encoder", "decoder")]
    for side in (model.encoder, model.decoder):
        side.layers[0].self_attention.relation.table.normal_()
    source, inputs = torch.randint(4, 9, (2, 12)), torch.randint(4, 9, (2, 10))
    mask = torch.ones_like(source, dtype=torch.bool)
    expected = model(source, mask, inputs).logits()
    state, found = model.decoder.start(model.encode(source, mask)), []
    for column in range(10):
        output, state = model.decoder.step(inputs[:, column : column + 1], state)
        found.append(output.last_logits())
    assert_close(torch.stack(found, 1), expected)
    separate = ModelConfig.model_validate({**settings, "positions": {**positions, "shared": False}}).build(9, 9)
    assert sum(name.endswith("relation.table") for name, _ in separate.named_parameters()) == 6


def test_invalid_buckets_are_refused() -> None:
    for settings, message in (({"buckets": 7}, "even number"), ({"buckets": 64, "max_distance": 16}, "max_distance")):
        with pytest.raises(ValidationError, match=message):
            BucketedConfig.model_validate(settings)
