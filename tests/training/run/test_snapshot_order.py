"""No rank continues, and possibly overwrites the snapshot, before all ranks have read it."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_model import tiny_config, tiny_model, tiny_tokenizers

from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.run import snapshot


@pytest.mark.parametrize("sharded", [True, False])
def test_ranks_synchronise_after_all_have_read(monkeypatch: pytest.MonkeyPatch, sharded: bool) -> None:
    events: list[str] = []

    def read(folder: Path, targets: Mapping[str, torch.Tensor]) -> None:
        events.append(folder.name)

    monkeypatch.setattr(snapshot, "read_shards", read)
    monkeypatch.setattr(snapshot, "shard_shapes", lambda folder: {})
    monkeypatch.setattr(snapshot, "fill", lambda targets, values: events.append("load"))
    model = tiny_model(tiny_config(), tiny_tokenizers())
    parts: Any = SimpleNamespace(
        parallel=SimpleNamespace(shard_like=lambda tensor, trained: tensor),
        model=model,
        average=None,
        engine=SimpleNamespace(optimiser=AdamConfig().build(model, torch.float32)),
        ranks=SimpleNamespace(wait=lambda: events.append("wait"), device=torch.device("cpu")),
    )
    tensors = {"model": {name: p.detach() for name, p in model.state_dict().items()}, "optimiser": {}}
    shards = {"model": Path("model"), "optimiser": Path("optimiser")} if sharded else {}
    snapshot.restore_snapshot(parts, SimpleNamespace(shards=shards, tensors=tensors))  # type: ignore[arg-type]
    assert events == (["model", "optimiser", "wait"] if sharded else ["load", "wait"])
