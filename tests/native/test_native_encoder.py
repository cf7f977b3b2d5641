"""The native engine computes the states that PyTorch computes, for models with a head."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from closeness import assert_close
from native_encoders import HEADS, SMALL, native_model, random_encoder, random_inputs

from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.base.errors import ConfigError, DataError, ModelError, ResourceError
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.engines.choice import EngineChoice, ModelEngine, model_engine
from dragoman.engines.native.embeddings import UnsupportedModelError
from dragoman.engines.native.encoder import NativeEncoder
from dragoman.inference.prediction.outputs import compute_outputs, compute_vectors
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.native.compiler import available
from dragoman.text.tokenizers import TextConfig, train_tokenizers

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("one_thread")


def choose_engine(model: Any, name: str = "auto", precision: str | None = None) -> ModelEngine:
    return model_engine("predict", model, EngineChoice(name=name, precision=precision))


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head["kind"])
def test_every_head_has_the_outputs_of_pytorch(head: dict[str, Any]) -> None:
    model = random_encoder({**SMALL, "head": head})
    inputs = random_inputs(random.Random(1), 30, model.encodes_separately)
    expected = compute_outputs(model, inputs, CPU)
    found = compute_outputs(native_model(model, threads=2), inputs, CPU)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("instructions", available(), ids=lambda each: each.name)
def test_states_do_not_depend_on_the_batch(instructions: Any, precision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, with any number of threads, and with groups of one text and of all texts."""
    encoder = {"layers": 1, "heads": 2, "feedforward": 256}
    model = random_encoder({**SMALL, "width": 64, "encoder": encoder, "positions": {"kind": "rotary"}, "segments": 2})
    # threads share the products of at least 1,300 tokens of this model, or 5,200 in int8
    inputs = random_inputs(random.Random(2), 450 if instructions == available()[0] else 25)
    alone = NativeEncoder(model, precision, 1, instructions)
    expected = [alone(*pad([each.ids])).states[0] for each in inputs]
    for threads, tokens in ((1, 60), (3, 1), (2, 10**6)):
        monkeypatch.setattr("dragoman.engines.native.encoder._GROUP_TOKENS", tokens)
        ids, mask = pad([each.ids for each in inputs])
        memory = NativeEncoder(model, precision, threads, instructions)(ids, mask)
        assert torch.equal(memory.mask, mask)
        assert not memory.states[~mask].any()
        for states, one in zip(memory.states, expected, strict=True):
            assert torch.equal(states[: len(one)], one)


def test_int8_is_close() -> None:
    model = random_encoder({**SMALL, "width": 64, "head": {"kind": "none"}})
    inputs = random_inputs(random.Random(3), 30)
    exact = compute_vectors(model, inputs, CPU)
    rounded = compute_vectors(native_model(model, "int8"), inputs, CPU)
    cosines = (exact * rounded).sum(1)
    assert 0.999 < cosines.min() < 1 - 1e-7


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"encoder": {"kind": "recurrent"}}, "model.encoder.kind=transformer"),
        ({"encoder": {"kind": "mean"}}, "model.encoder.kind=transformer"),
        ({"encoder": {"kind": "causal", "decoder": {"kind": "recurrent"}}}, "model.encoder.decoder.kind=transformer"),
        (
            {"encoder": {"kind": "causal", "decoder": {"attention": {"kind": "ssru"}}}},
            "decoder.attention.kind=soft",
        ),
        ({"positions": {"kind": "relative"}}, "model.positions.kind"),
        ({"positions": {"kind": "fraction"}}, "model.positions.kind=fraction"),
        ({"encoder": {"attention": {"kind": "window", "window": 4}}}, "model.encoder.attention.kind=soft"),
        ({"encoder": {"experts": {"count": 2}}}, "model.encoder.experts"),
        ({"embedding_norm": {"kind": "batch"}}, "model.embedding_norm.kind=layer or rms"),
    ],
)
def test_unsupported_models(settings: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are computed by PyTorch, and the reason is reported."""
    model = random_encoder({**SMALL, **settings})
    with pytest.raises(UnsupportedModelError, match=f"the native engine .*{named}.*: use --engine torch"):
        choose_engine(model, "native")
    assert choose_engine(model).name == "torch"
    assert capsys.readouterr().err.startswith("predicting with PyTorch in float32. native: the native engine")
    chosen = choose_engine(model, precision="int8")
    message = capsys.readouterr().err
    assert (chosen.name, chosen.precision) == ("torch", "float32")
    assert (
        "computing in float32, because no engine can compute in int8. native: the native engine" in message
        and named in " ".join(message.split())
    )


def test_the_choice_of_an_engine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = random_encoder(SMALL)
    chosen = [choose_engine(model, *each) for each in ((), ("native", "int8"), ("auto", "int8"), ("torch",))]
    assert [(each.name, each.precision) for each in chosen] == [
        *(("native", "float32"), ("native", "int8"), ("native", "int8"), ("torch", "float32"))
    ]
    for arguments, message in {
        ("cuda", "float32"): "the cuda engine does not serve models that predict labels: use auto, native, torch",
        ("gpu", "float32"): "unknown engine 'gpu': use auto, native, torch",
        ("auto", "int4"): "unknown precision 'int4': use auto, float32",
        ("torch", "int8"): "the torch engine does not support int8: choose the engine native, or --precision float32",
    }.items():
        with pytest.raises(ConfigError, match=message):
            choose_engine(model, *arguments)
    with pytest.raises(ConfigError, match="runs on the CPU, not on meta"):
        choose_engine(model.to("meta"), "native")
    assert choose_engine(model).name == "torch"

    def without_library(*_: Any) -> None:
        raise ResourceError("no C compiler was found")

    monkeypatch.setattr("dragoman.engines.native.encoder.NativeEncoder", without_library)
    assert choose_engine(random_encoder(SMALL)).name == "torch"
    assert "predicting with PyTorch in float32. native: no C compiler was found" in capsys.readouterr().err
    with pytest.raises(ResourceError, match="no C compiler"):
        choose_engine(random_encoder(SMALL), "native")


def test_parameters_that_are_not_finite_are_named() -> None:
    model = random_encoder(SMALL)
    with torch.no_grad():
        model.encoder.layers[0].feedforward.inner.weight[3, 4] = torch.nan
    for name in ("auto", "native"):
        with pytest.raises(ModelError, match=r"NaN or infinity, first in encoder\.layers\.0\.feedforward\.inner\.wei"):
            choose_engine(model, name)


def test_states_that_are_not_finite_are_an_error() -> None:
    model = random_encoder({**SMALL, "encoder": {**SMALL["encoder"], "norm": "pre"}})
    with torch.no_grad():
        model.encoder.layers[0].feedforward.outer.bias.fill_(3e38)
    for inputs in ([[1, 5, 3]], [[1, 5, 3]] * 200):
        with pytest.raises(ModelError, match="the model's states are NaN"):
            NativeEncoder(model, threads=2)(*pad(inputs))


@pytest.mark.parametrize(
    ("ids", "message"), [([1, 40, 3], "token 40 is not in the"), ([-1, 3], "token -1 is not in the")]
)
def test_unknown_ids(ids: list[int], message: str) -> None:
    with pytest.raises(ModelError, match=f"{message} vocabulary of 40 entries"):
        NativeEncoder(random_encoder(SMALL))(*pad([[1, 3], ids]))


def test_texts_longer_than_the_positions() -> None:
    encoder = NativeEncoder(random_encoder({**SMALL, "positions": {"kind": "learned", "limit": 9}}))
    assert encoder(*pad([[5] * 9])).states.shape == (1, 9, 16)
    with pytest.raises(DataError, match="a text has 10 tokens, but the model has only 9 positions"):
        encoder(*pad([[5] * 10]))
    growing = NativeEncoder(model := random_encoder({**SMALL, "positions": {"kind": "rotary"}}))
    for length in (5, 700, 5):
        ids, mask = pad([[5] * length])
        with torch.no_grad():
            torch.testing.assert_close(growing(ids, mask).states, model.encode(ids, mask).states)


def test_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = NativeEncoder(random_encoder(SMALL))

    class Library:
        dragoman_encode = staticmethod(lambda *_: 1)

    monkeypatch.setattr(encoder, "_library", Library)
    with pytest.raises(ResourceError, match="does not fit into memory: use a smaller batch size"):
        encoder(*pad([[1, 3]]))


def test_a_cancelled_call_ends_between_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engines.native.encoder._GROUP_TOKENS", 1)
    encoder = NativeEncoder(random_encoder(SMALL))
    cancellation = Cancellation()
    functions, encoded = encoder._library, []

    class Library:
        @staticmethod
        def dragoman_encode(model: int, call: Any) -> int:
            cancellation.cancel()
            assert call._obj.cancelled == 1
            outcome: int = functions.dragoman_encode(model, call)
            encoded.append(outcome)
            return outcome

    monkeypatch.setattr(encoder, "_library", Library)
    with cancellation.active(), pytest.raises(Cancelled):
        encoder(*pad([[1, 5, 3]] * 4))
    assert encoded == [3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with random parameters."""
    folder, texts = tmp_path_factory.mktemp("models") / "classifier", ["a dog", "two cats run"]
    head = {"kind": "classification", "labels": ["animal", "dish"]}
    config = EncoderOnlyConfig.model_validate({**SMALL, "head": head})
    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": {"kind": "character"}}), texts, texts)
    settings = json.dumps({"task": {"kind": "classification"}, "model": config.model_dump(mode="json")})
    write_model_folder(folder, model_parameters(config.build_for(tokenizers.sizes)), settings, tokenizers, Meta(step=1))
    (folder.parent / "test.tsv").write_text("a dog\tanimal\nruns\tdish\n" * 5)
    return folder


def test_the_command_line(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    test = folder.parent / "test.tsv"
    predicted: dict[str, list[float]] = {}
    for engine_name, precision in (("torch", "float32"), ("native", "float32"), ("auto", "int8")):
        output = tmp_path / f"{engine_name}-{precision}"
        options = ["--engine", engine_name, "--precision", precision]
        assert main(["predict", str(folder), "--input", str(test), "--output", str(output), *options]) == 0
        lines = [json.loads(line) for line in output.read_text().splitlines()]
        predicted[precision] = [each["probabilities"]["dish"] for each in lines]
        assert predicted[precision] == pytest.approx(predicted["float32"], abs=1e-5 if precision == "float32" else 0.02)
        assert main(["evaluate", "labels", str(folder), "--test", str(test), *options]) == 0
    assert predicted["int8"] != predicted["float32"]
    capfd.readouterr()
    assert main(["predict", str(folder), "--input", str(test), "--engine", "torch", "--precision", "int8"]) == 2
    assert "the torch engine does not support int8: choose the engine native" in capfd.readouterr().err


def test_a_generator_is_computed_by_pytorch() -> None:
    """Its embeddings are those of the body, whose states the engine computes."""
    model = random_encoder({**SMALL, "generator": {"width": 0.5}, "head": {"kind": "replaced_token_detection"}})
    with pytest.raises(UnsupportedModelError, match="generator of a model that detects replaced tokens"):
        choose_engine(model.generator, "native")
    assert choose_engine(model).name == "native"


def test_several_tasks_share_an_encoder() -> None:
    heads = {"a": HEADS[0], "b": {"kind": "tagging", "labels": ["x", "y"]}}
    model = random_encoder({**SMALL, "head": {"kind": "several", "heads": heads}})
    shared, inputs = choose_engine(model), random_inputs(random.Random(4), 5)
    assert shared.of_task("a").model.encoder is shared.of_task("b").model.encoder
    for name in heads:
        found = compute_outputs(shared.of_task(name).model, inputs, CPU)
        for one, other in zip(found, compute_outputs(model.of_task(name), inputs, CPU), strict=True):
            assert_close(one, other)
