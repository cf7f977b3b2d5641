"""Fine-tuning of a body: frozen parts, gradual unfreezing, learning rates by layer and of the head."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import tiny_config

from dragoman import train
from dragoman.base.errors import ConfigError
from dragoman.base.settings.yaml import parse_yaml
from dragoman.checkpoint.tensors import load_tensors
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.layers import (
    GradualUnfreezing,
    freeze_parts,
    parameter_depths,
    rate_factors,
    set_rate,
    set_rate_factors,
)
from dragoman.training.optimisers.muon import MuonConfig

STACK: dict[str, Any] = {"kind": "transformer", "layers": 3, "heads": 2, "feedforward": 16}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}


def build(**settings: Any) -> EncoderOnly:
    torch.manual_seed(1)
    values = {"preset": None, "width": 8, "encoder": STACK, **settings}
    return EncoderOnlyConfig.model_validate(values).build_for(VocabularySizes(30, 30))


def test_depths_rise_from_the_embeddings_over_the_layers_to_the_head() -> None:
    model = build(encoder={**STACK, "norm": "pre"}, positions={"kind": "learned", "limit": 9}, segments=2)
    depths = parameter_depths(model)
    assert {depth for name, depth in depths.items() if "embedding" in name} == {0}
    for layer in range(3):
        assert {depth for name, depth in depths.items() if f"layers.{layer}." in name} == {layer + 1}
    assert depths["encoder.norm.weight"] == 3
    assert {depth for name, depth in depths.items() if name.startswith("head.")} == {4}
    causal = parameter_depths(build(encoder={"kind": "causal", "decoder": STACK}))
    assert causal["encoder.decoder.layers.2.feedforward.inner.weight"] == 3
    recurrent = parameter_depths(build(encoder={"kind": "recurrent"}))
    assert sorted(set(recurrent.values())) == [0, 1, 2]
    translation = parameter_depths(tiny_config().build_for(VocabularySizes(30, 30)))
    assert min(translation.values()) == 0 and max(translation.values()) >= 1


@pytest.mark.parametrize("optimiser", [AdamConfig(), MuonConfig()])
def test_each_layer_moves_by_its_own_rate(optimiser: Any) -> None:
    moved = {}
    for decay, head in ((1.0, 1.0), (0.5, 10.0)):
        model = build()
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        built = optimiser.build(model, torch.float32)
        set_rate_factors(built, rate_factors(model, decay, head))
        torch.manual_seed(2)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        set_rate(built, 1e-3)
        built.step()
        moved[decay] = {name: (value - before[name]).detach() for name, value in model.named_parameters()}
    for name, depth in parameter_depths(build()).items():
        factor = 10.0 if depth == 4 else 0.5 ** (3 - depth)
        torch.testing.assert_close(moved[0.5][name], moved[1.0][name] * factor, rtol=2e-3, atol=1e-7)


def test_equal_rates_leave_the_optimiser_as_it_is() -> None:
    model = build()
    built = AdamConfig().build(model, torch.float32)
    set_rate_factors(built, rate_factors(model, 1.0, 1.0))
    assert len(built.param_groups) == 1 and "factor" not in built.param_groups[0]


def trained(model: EncoderOnly) -> set[int]:
    depths = parameter_depths(model)
    return {depths[name] for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_one_more_layer_is_trained_after_every_period() -> None:
    model = build()
    unfreezing = GradualUnfreezing(model, 2)
    expected = [{4}, {4}, {3, 4}, {3, 4}, {2, 3, 4}, {2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {0, 1, 2, 3, 4}]
    for epoch, depths in enumerate(expected):
        unfreezing.apply(epoch)
        assert trained(model) == depths
    unfreezing.apply(3)  # a resumed run
    assert trained(model) == {3, 4}
    unfreezing.apply(100)
    assert trained(model) == {0, 1, 2, 3, 4}


def test_frozen_parts_stay_frozen_and_contain_their_inner_parts() -> None:
    model = build()
    freeze_parts(model, ["encoder.embedding"])
    GradualUnfreezing(model, 1).apply(100)
    assert trained(model) == {1, 2, 3, 4}
    freeze_parts(model, ["encoder"])
    assert trained(model) == {4}
    with pytest.raises(ConfigError, match="has no part body"):
        freeze_parts(model, ["body"])
    with pytest.raises(ConfigError, match="leaves no parameter to train"):
        freeze_parts(model, ["encoder", "head"])


def recipe(folder: Path, task: str, out: str, **settings: Any) -> dict[str, Any]:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (folder / "data.tsv").write_text("\n".join(rows) + "\n")
    text = {"text": str(folder / "data.tsv")}
    data = {"train": text, "valid": text, "block": 24} if task == "masked_language_model" else None
    model = {"model": {"preset": None, "width": 8, "encoder": STACK}} if data else {"model": {}}
    return {
        "task": {"kind": task},
        "data": data or {"train": str(folder / "data.tsv"), "valid": str(folder / "data.tsv")},
        **({"text": {"subword": {"kind": "bpe", "size": 280}}} if data else {}),
        **model,
        "train": {**MACHINE, "max_steps": 3, **settings},
        "out": str(folder / out),
    }


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("body")
    train(recipe(folder, "masked_language_model", "body"), quiet=True)
    return folder / "body"


def changed(body: Path, run: Path) -> set[str]:
    stored, ours = load_tensors(body / "model.safetensors")[0], load_tensors(run / "model.safetensors")[0]
    return {name for name in stored.keys() & ours.keys() if not torch.equal(stored[name], ours[name])}


@pytest.mark.slow
def test_a_frozen_body_is_not_changed_by_training(body: Path, tmp_path: Path) -> None:
    train(recipe(tmp_path, "classification", "free", start=str(body)), quiet=True)
    assert changed(body, tmp_path / "free")
    train(recipe(tmp_path, "classification", "frozen", start=str(body), freeze=["encoder"]), quiet=True)
    card = (tmp_path / "frozen" / "README.md").read_text()
    assert "| Parts that were not trained | encoder |" in card and f"| Initialised from | {body.name} |" in card
    assert changed(body, tmp_path / "frozen") == set()


def test_gradual_unfreezing_trains_the_top_layers_only(body: Path, tmp_path: Path) -> None:
    settings = {"start": str(body), "unfreeze_every": 1, "max_steps": 4, "validate_every": 4, "average": {"count": 0}}
    values = recipe(tmp_path, "classification", "run", **settings)
    values["data"]["batch"] = {"sentences": 8}  # two updates per epoch, so the second epoch trains the top layer
    train(values, quiet=True)
    moved = changed(body, tmp_path / "run")
    assert moved and all("layers.2." in name for name in moved)


@pytest.mark.slow
def test_a_resumed_run_trains_the_same_layers(body: Path, tmp_path: Path) -> None:
    def settings(out: str, steps: int) -> dict[str, Any]:
        schedule = {"kind": "constant", "peak": 0.01, "warmup": 0}
        rhythm = {"max_steps": steps, "checkpoint_every": 3, "average": {"count": 0}, "schedule": schedule}
        values = recipe(tmp_path, "classification", out, start=str(body), unfreeze_every=1, layer_decay=0.8, **rhythm)
        values["data"]["batch"] = {"sentences": 8}
        return values

    train(settings("whole", 8), quiet=True)
    train(settings("resumed", 5), quiet=True)
    train(settings("resumed", 8), resume=True, quiet=True)
    newest = [max((tmp_path / name / "checkpoints").glob("step-*")) for name in ("whole", "resumed")]
    assert newest[0].name == newest[1].name
    whole, resumed = (load_tensors(folder / "model.safetensors")[0] for folder in newest)
    assert whole.keys() == resumed.keys()
    assert [name for name in whole if not torch.equal(whole[name], resumed[name])] == []


def test_the_default_rates_of_a_new_head_on_a_body(body: Path, tmp_path: Path) -> None:
    train(recipe(tmp_path, "classification", "run", start=str(body)), quiet=True)
    stored = parse_yaml((tmp_path / "run" / "config.yaml").read_text(), "config").content["train"]
    assert stored["head_rate"] == 10 and stored["schedule"]["kind"] == "linear"
    assert stored["schedule"]["peak"] == pytest.approx(0.04 / 8)
    train(recipe(tmp_path, "classification", "again", start=str(tmp_path / "run")), quiet=True)
    again = parse_yaml((tmp_path / "again" / "config.yaml").read_text(), "config").content["train"]
    assert again["head_rate"] == 1
    train(recipe(tmp_path, "classification", "scratch"), quiet=True)
    scratch = parse_yaml((tmp_path / "scratch" / "config.yaml").read_text(), "config").content["train"]
    assert scratch["head_rate"] == 1 and scratch["schedule"]["kind"] == "cosine"


def test_unfreezing_without_a_body_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"requires train\.start"):
        train(recipe(tmp_path, "classification", "run", unfreeze_every=1), quiet=True)
