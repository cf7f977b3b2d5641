"""The native engine gives the results of PyTorch's search, for every model, search and instruction set."""

import ctypes
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import native_searches
import pytest
import torch
from native_searches import native_request, random_model, random_search, random_settings, searched
from sanitizers import sanitizer_library
from tiny_model import write_tiny_model

from dragoman.base.errors import ModelError, ResourceError
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import Hypothesis
from dragoman.engines.native.embeddings import UnsupportedModelError
from dragoman.engines.native.engine import NativeEngine
from dragoman.engines.native.model import NativeModel
from dragoman.inference.translation.translator import Translator
from dragoman.native import library
from dragoman.native.build import compiled_library
from dragoman.native.compiler import ENGINE, InstructionSet, available, compile_library

RANDOM_MODEL = Path(__file__).with_name("random_model.c")
BASE: dict[str, Any] = {
    "preset": None,
    "width": 16,
    "encoder": {"layers": 1, "heads": 2, "feedforward": 32},
    "decoder": {"layers": 1, "heads": 2, "feedforward": 32},
    "tie_embeddings": False,
}


pytestmark = pytest.mark.usefixtures("one_thread")


def close(found: list[Hypothesis], expected: list[Hypothesis]) -> bool:
    """Return whether the hypotheses are the same; two whose scores differ only by rounding may be swapped."""
    if [each.tokens for each in found] != [each.tokens for each in expected]:
        scores = [each.score for each in (*found, *expected)]
        return any(abs(a - b) < 1e-4 for a, b in pairwise(scores))
    return all(
        abs(a.log_probability - b.log_probability) < 1e-3 and abs(a.score - b.score) < 1e-3 and a.finished == b.finished
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("instructions", available(), ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_pytorch_search(instructions: InstructionSet, seed: int) -> None:
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    searches = [random_search(chance) for _ in range(7)]
    requests = [native_request(model, *each) for each in searches]
    native = NativeModel(model, "float32", threads=2, instructions=instructions)
    found = native.translate(requests, batch_size=3, workers=2)
    assert all(close(one, searched(model, *each)) for one, each in zip(found, searches, strict=True))
    # bit for bit with any batch, order and number of threads
    assert native.translate(requests[::-1], batch_size=7, workers=1) == found[::-1]
    assert [
        NativeModel(model, "float32", 1, instructions).translate([request], 1, 1)[0] for request in requests
    ] == found


def test_int8_results_do_not_depend_on_the_batch() -> None:
    """With more requests than are decoded together, of all beam sizes, in two orders."""
    chance = random.Random(5)
    model = random_model(random_settings(chance), 5)
    native = NativeModel(model, "int8", threads=2)
    requests = [native_request(model, *random_search(chance)) for _ in range(60)]
    found = native.translate(requests, batch_size=64, workers=1)
    assert native.translate(requests[::-1], batch_size=5, workers=2) == found[::-1]
    assert [native.translate([request], 1, 1)[0] for request in requests] == found


@pytest.mark.parametrize("instructions", available(), ids=lambda each: each.name)
def test_bfloat16_is_float32_up_to_its_rounding(instructions: InstructionSet) -> None:
    """Bit for bit the same with any batch, order and number of threads, and close to float32."""
    for seed in range(4):
        chance = random.Random(seed)
        model = random_model(random_settings(chance), seed)
        searches = [random_search(chance) for _ in range(7)]
        requests = [native_request(model, *each) for each in searches]
        native = NativeModel(model, "bfloat16", threads=2, instructions=instructions)
        found = native.translate(requests, batch_size=3, workers=2)
        assert native.translate(requests[::-1], batch_size=7, workers=1) == found[::-1]
        exact = NativeModel(model, "float32", 1, instructions).translate(requests, 7, 1)
        same = [
            abs(one.log_probability - other.log_probability) / len(one.tokens or "x")
            for ours, theirs in zip(found, exact, strict=True)
            for one, other in zip(ours, theirs, strict=False)
            if one.tokens == other.tokens
        ]
        assert len(same) > len(requests) // 2
        assert 0 < median(same) < 0.05 and max(same) < 0.2, "bfloat16 has 8 bits of precision"
        portable = NativeModel(model, "bfloat16", 1, available()[-1]).translate(requests, 7, 1)
        differences = [
            abs(one.log_probability - other.log_probability)
            for ours, theirs in zip(found, portable, strict=True)
            for one, other in zip(ours, theirs, strict=True)
            if one.tokens == other.tokens
        ]
        assert len(differences) > len(requests) // 2
        # the instruction computes what plain C does, but a value between two numbers may be rounded to the other one
        assert median(differences) < 1e-4 and max(differences) < 0.02


@pytest.mark.parametrize("instructions", available(), ids=lambda each: each.name)
def test_int8_log_probabilities_are_close(instructions: InstructionSet) -> None:
    """With the same prefix, the 8-bit model gives nearly the same log-probability."""
    model = random_model({**BASE, "width": 64}, seed=1)
    exact, codes = (NativeModel(model, precision, 1, instructions) for precision in ("float32", "int8"))
    source, _, config = random_search(random.Random(3))
    prefix = [5, 6, 7, 8, 9, 10, 11, 12]
    requests = [native_request(model, [*range(4, 4 + length), 3], prefix, config) for length in (1, 5, 20)]
    for a, b in zip(exact.translate(requests, 3, 1), codes.translate(requests, 3, 1), strict=True):
        first = min(len(a[0].tokens), len(b[0].tokens), len(prefix))
        assert first == len(prefix)
        assert a[0].log_probability != b[0].log_probability
        assert a[0].log_probability == pytest.approx(b[0].log_probability, abs=1.5)
    assert codes.translate(requests, 1, 1) == codes.translate(requests[::-1], 3, 1)[::-1]
    assert source


def best_and_portable() -> list[Any]:
    """Return all instruction sets. Those between the best and the portable one are left to the slow tests."""
    sets = available()
    return [pytest.param(each, marks=[] if each in (sets[0], sets[-1]) else [pytest.mark.slow]) for each in sets]


@pytest.mark.parametrize("instructions", best_and_portable(), ids=lambda each: each.name)
def test_codes_of_values_after_relu_have_no_sign(instructions: InstructionSet, tmp_path: Path) -> None:
    """The largest error is half a step: 1/254 (7 bits: 1/126) of the largest value, or 1/510 (1/254) without a sign."""
    program = tmp_path / "program"
    flags = ["-std=gnu11", "-O0", "-Wno-psabi", *instructions.flags, f"-I{ENGINE.folder}"]
    source = RANDOM_MODEL.with_name("nonnegative_inputs.c")
    subprocess.run(["cc", *flags, str(source), "-o", str(program), "-lm", "-lpthread"], check=True)
    output = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    bits, with_sign, without_sign = map(float, output.split())
    steps = {7: (63, 127), 8: (127, 255)}[int(bits)]
    assert [with_sign, without_sign] == pytest.approx([0.5 / step for step in steps], rel=0.03)


@pytest.mark.parametrize("activation", ["swish", "swiglu", "gelu"])
@pytest.mark.parametrize("bias", [-300.0, 300.0])
def test_activations_far_from_zero(activation: str, bias: float) -> None:
    side = {"layers": 1, "heads": 2, "feedforward": 32, "activation": activation}
    model = random_model({**BASE, "encoder": side, "decoder": side}, 1)
    with torch.no_grad():
        model.encoder.layers[0].feedforward.inner.bias.fill_(bias)
    search = random_search(random.Random(2))
    native = NativeModel(model, "float32", 1)
    assert close(native.translate([native_request(model, *search)], 1, 1)[0], searched(model, *search))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"encoder": {"kind": "recurrent"}}, "model.encoder.kind=transformer"),
        ({"decoder": {"kind": "convolutional"}}, "model.decoder.kind=transformer"),
        ({"positions": {"kind": "relative"}}, "model.positions.kind"),
        ({"positions": {"kind": "bucketed"}}, "model.positions.kind"),
        ({"positions": {"kind": "fraction"}, "target_positions": {"kind": "none"}}, "model.positions.kind=fraction"),
        ({"encoder": {"attention": {"kind": "window", "window": 4}}}, "model.encoder.attention.kind=soft"),
        ({"encoder": {"attention": {"kind": "linear"}}}, "model.encoder.attention.kind=soft"),
        ({"decoder": {"cross_attention": {"kind": "hard"}}}, "model.decoder.cross_attention.kind=soft"),
        ({"decoder": {"attention": {"scorer": {"kind": "additive"}}}}, "attention.scorer.kind=.*it is additive"),
        ({"decoder": {"attention": {"scorer": {"kind": "general"}}}}, "attention.scorer.kind=.*it is general"),
        ({"encoder": {"attention": {"normaliser": "sum"}}}, "normaliser=softmax, but it is sum"),
        ({"encoder": {"attention": {"projections": False}}}, "model.encoder.attention.projections=true"),
        ({"encoder": {"attention": {"combine": "mean"}}}, "model.encoder.attention.combine=project"),
        ({"encoder": {"experts": {"count": 2}}}, "model.encoder.experts"),
        ({"decoder": {"normalisation": {"kind": "batch"}}}, "model.decoder.normalisation.kind=layer or rms"),
        ({"decoder": {"residual": False}}, "model.decoder.residual is false"),
        ({"encoder": {"activation": "geglu_tanh"}}, "model.encoder.activation=geglu_tanh"),
        ({"embedding_norm": {"kind": "layer"}}, "model.embedding_norm is set"),
    ],
)
def test_unsupported_parts_are_refused_by_name(settings: dict[str, Any], named: str) -> None:
    merged = {**BASE}
    for key, value in settings.items():
        merged[key] = {**(BASE.get(key) or {}), **value} if value.get("kind", "transformer") == "transformer" else value
        if key.endswith("positions"):
            merged[key] = value
    with pytest.raises(UnsupportedModelError, match=named):
        NativeModel(random_model(merged, 1), "float32", 1)


def test_damaged_weights_and_unknown_ids_are_refused() -> None:
    model = random_model(BASE, 1)
    native = NativeModel(model, "float32", 1)
    source, prefix, config = random_search(random.Random(1))
    for wrong in ({"source": [99]}, {"source": [-1]}, {"prefix": [37]}, {"forbidden": [37]}):
        request = replace(native_request(model, source, prefix, config), **wrong)
        with pytest.raises(ModelError, match="is not in the vocabulary"):
            native.translate([request], 1, 1)
    assert native.translate([], 1, 1) == []
    with torch.no_grad():
        model.encoder.layers[0].feedforward.inner.weight[3, 4] = torch.nan
    with pytest.raises(ModelError, match="NaN or infinity"):
        NativeModel(model, "int8", 1)


def test_overflow_is_reported() -> None:
    model = random_model({**BASE, "tie_projection": False}, 1)
    with torch.no_grad():
        model.decoder.projection.weight.fill_(3e38)
    source, _, config = random_search(random.Random(1))
    with pytest.raises(ModelError, match="log-probabilities are NaN"):
        NativeModel(model, "float32", 1).translate([native_request(model, source, [], config)], 1, 1)


def test_translator_with_the_native_engine(tmp_path: Path) -> None:
    write_tiny_model(tmp_path)
    plain = Translator.load(tmp_path, "cpu", engine="torch")
    engine = NativeEngine(plain.engine.model, plain.tokenizers, plain.engine, "float32", 2)  # type: ignore[attr-defined]
    native = Translator(engine, plain.tokenizers, plain.meta)
    texts = ["a dog runs", "", "The man sees a dög –", "Two dogs", "a"] * 3
    requests = [plain.request(beam=1 + number % 3, prefix="ein" * (number % 2)) for number in range(len(texts))]
    found, expected = (each.translate_nbest(texts, requests, 4) for each in (native, plain))
    assert [[one.text for one in each] for each in found] == [[one.text for one in each] for each in expected]
    assert native.score(["a dog"], ["ein Hund"]) == plain.score(["a dog"], ["ein Hund"])
    row = {"decoding": Sampling(), "prefix": None}
    assert "does not support sampling" in str(engine.refusal(type("Row", (), row)()))


def test_structures_agree_field_by_field() -> None:
    """Sizes alone would not show two fields that are swapped."""
    compiled = library.load(compiled_library(available()[0]))
    assert library.layout_differences(compiled) == []


def test_a_library_of_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    path = compiled_library(available()[0])
    fields = [*library.Options._fields_]
    fields[2], fields[3] = fields[3], fields[2]
    other = type("Options", (ctypes.Structure,), {"_fields_": fields})
    structures = [other if each is library.Options else each for each in library.STRUCTURES]
    monkeypatch.setattr(library, "STRUCTURES", structures)
    library.load.cache_clear()
    with pytest.raises(ResourceError, match=r"Options\.begin: "):
        library.load(path)
    library.load.cache_clear()


@pytest.mark.slow
def test_address_and_undefined_behaviour_sanitizers(tmp_path: Path) -> None:
    """They report no error for models of odd widths and requests of odd lengths."""
    preload = [sanitizer_library(name) for name in ("libasan.so", "libubsan.so")]
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0", "-g")
    path = tmp_path / "engine.so"
    path.write_bytes(compile_library(["cc"], available()[0], tmp_path, flags))
    settings = {
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, native_searches.__file__, str(path)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "searched\n"


@pytest.mark.slow
def test_thread_sanitizer(tmp_path: Path) -> None:
    """It reports no data race between the workers of a session, the members of a team and the thread that submits."""
    sanitizer_library("libtsan.so")
    program = tmp_path / "program"
    flags = ["-std=gnu11", "-O0", "-g", "-Wno-psabi", "-fsanitize=thread", f"-I{ENGINE.folder}"]
    subprocess.run(["cc", *flags, str(RANDOM_MODEL), "-o", str(program), "-lm", "-lpthread"], check=True)
    settings = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run([str(program)], env=settings, capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel places memory where the compiler's ThreadSanitizer cannot work")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("\n") == 36


@pytest.mark.slow
def test_another_processor(tmp_path: Path) -> None:
    """The portable kernels, compiled for 64-bit ARM and run under an emulator, give the same results as here."""
    cross_compiler, emulator = "aarch64-linux-gnu-gcc", "qemu-aarch64"
    for name in (cross_compiler, emulator):
        if shutil.which(name) is None:
            pytest.skip(
                f"there is no {name} (Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
            )
    outputs = []
    for name, before in (("cc", []), (cross_compiler, [emulator])):
        flags = ["-std=gnu11", "-O1", "-Wno-psabi", "-ffp-contract=off", "-static", f"-I{ENGINE.folder}"]
        made = tmp_path / name
        subprocess.run([name, *flags, str(RANDOM_MODEL), "-o", str(made), "-lm", "-lpthread"], check=True)
        outputs.append(subprocess.run([*before, str(made)], capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 36
