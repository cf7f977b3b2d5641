"""Descriptions of models, compared with sums and products written out here."""

import json
from pathlib import Path

import pytest
import torch
from tiny_language_model import write_tiny_language_model
from torch.utils.flop_counter import FlopCounterMode
from trained_model import FOLDER as MODEL

from dragoman.base.errors import ConfigError
from dragoman.base.settings.yaml import dump_yaml
from dragoman.cli.main import main
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.models.description.describe import Description, describe_model
from dragoman.models.description.description_text import numbers_text, parts_table
from dragoman.models.description.footprint import Footprint, evaluate_polynomial, measure_footprint
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.parts import count_parameters
from dragoman.text.symbols import BOS
from dragoman.text.tokenizers import VocabularySizes


def described(settings: dict, vocabulary: int = 40, length: int = 8, depth: int = 3) -> Description:
    sizes = VocabularySizes(vocabulary, vocabulary)
    return describe_model(ModelConfig.model_validate({"preset": None, **settings}), sizes, length, depth)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the measurement of memory, which runs the model and takes too long for large ones."""
    monkeypatch.setattr(
        "dragoman.models.description.describe.measure_footprint",
        lambda *_, **__: Footprint(16, (1.0,), (1,), (1,), (1,)),
    )


def multiply(rows: int, inner: int, columns: int) -> int:
    """FLOPs of a matrix product."""
    return 2 * rows * inner * columns


def transformer(d: int, inner: int, layers: int, vocabulary: int, n: int) -> tuple[int, int]:
    """FLOPs of a source and a target sentence of n tokens, by Vaswani et al. 2017, equations 1 and 2."""
    projection = multiply(n, d, d)
    pairs = 2 * multiply(n, d, n)  # scores and weighted mean, all heads
    feedforward = 2 * multiply(n, d, inner)
    encoder = layers * (4 * projection + pairs + feedforward)
    of_the_memory = layers * 2 * projection
    decoder = layers * (4 * projection + pairs + 2 * projection + pairs + feedforward)
    return encoder + of_the_memory, decoder + multiply(n, d, vocabulary)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    ("preset", "d", "inner", "expected", "length"),
    [("base", 512, 2048, 63_082_496, 300), pytest.param("big", 1024, 4096, 214_245_376, 8, marks=pytest.mark.slow)],
)
def test_the_paper_s_models(preset: str, d: int, inner: int, expected: int, length: int) -> None:
    """Parameters and operations; 300 tokens because torch uses fused attention from 256 on."""
    attention, norm = 4 * (d * d + d), 2 * d
    feedforward = d * inner + inner + inner * d + d
    encoder = 6 * (attention + feedforward + 2 * norm)
    decoder = 6 * (2 * attention + feedforward + 3 * norm)
    assert encoder + decoder + 37_000 * d == expected
    # Vaswani et al. 2017, table 3: 65 and 213 million
    assert abs(expected / 1e6 - {"base": 65, "big": 213}[preset]) < 2
    found = described({"preset": preset}, vocabulary=37_000, length=length)
    assert found.parameters == found.active == found.trained == expected
    assert [part.parameters for part in found.parts if part.depth == 0] == [encoder + 37_000 * d, decoder]
    source, target = transformer(d, inner, 6, 37_000, length)
    assert (found.operations.per_source_token * length, found.operations.per_target_token * length) == (source, target)
    assert found.operations.training * length == 3 * (source + target)  # backward: by inputs and by weights


@pytest.mark.usefixtures("unmeasured")
def test_the_training_cost_of_the_paper() -> None:
    """100,000 updates with 25,000 token pairs each; Vaswani et al. 2017, table 2, have 3.3e18 for the base model."""
    cost = described({"preset": "base"}, vocabulary=37_000, length=32).operations.training
    assert round(cost / 1e6) == 381
    assert cost * 25_000 * 100_000 == pytest.approx(9.5e17, rel=0.005)
    assert 3.3e18 / (cost * 25_000 * 100_000) == pytest.approx(3.5, abs=0.05)


def test_operations_of_a_recurrent_model() -> None:
    n, d, vocabulary = 10, 256, 500
    found = described({"preset": "rnn"}, vocabulary=vocabulary, length=n).operations
    step = 2 * multiply(1, d, 3 * d)  # Wx and Uh of a GRU
    source = n * (2 * step + multiply(1, 2 * d, d)) + multiply(1, 2 * d, d)  # both directions, projection, summary
    source += multiply(1, d, d) + multiply(n, d, d)  # the first state, and the keys' half of the scores
    look = multiply(1, d, d) + multiply(n, d, 1) + multiply(1, n, d)  # the query's half, wᵀtanh, the mean
    target = n * (look + step + multiply(1, d, 3 * d) + multiply(1, 3 * d, d) + multiply(1, d, vocabulary))
    assert (found.per_source_token * n, found.per_target_token * n) == (source, target)


def additive(width: int, heads: int, length: int) -> dict[str, int]:
    of_head = width // heads
    return {
        "projections": 4 * multiply(length, width, width),
        "scores": heads * (2 * multiply(length, of_head, of_head) + multiply(length * length, of_head, 1)),
        "mean": multiply(length, length, width),
    }


# 4 · 70² · 16 elements are computed in blocks by a kernel of ours, 4 · 8² · 16 by torch.
@pytest.mark.parametrize("length", [8, 70])
def test_operations_of_additive_attention(length: int) -> None:
    layers = {"layers": 2, "heads": 4, "feedforward": 32}
    settings = {"width": 64, "encoder": {**layers, "attention": {"scorer": {"kind": "additive"}}}, "decoder": layers}
    plain = described({"width": 64, "encoder": layers, "decoder": layers}, length=length).operations
    found = described(settings, length=length).operations
    parts = additive(64, 4, length)
    difference = 2 * (parts["scores"] - multiply(length, 64, length))
    assert (found.per_source_token - plain.per_source_token) * length == difference
    assert found.per_target_token == plain.per_target_token


@pytest.mark.usefixtures("unmeasured")
def test_operations_of_linear_attention() -> None:
    """φ(k)vᵀ is summed once and multiplied by each φ(q); Katharopoulos et al. 2020, equation 5."""
    heads, width, n = 2, 16, 300
    of_head = width // heads
    layers = {"layers": 1, "heads": heads, "feedforward": 8}
    base = {"width": width, "encoder": layers, "decoder": layers}
    plain = described(base, length=n).operations
    found = described({**base, "encoder": {**layers, "attention": {"kind": "linear"}}}, length=n).operations
    sums = multiply(of_head, n, of_head) + multiply(n, of_head, of_head) + multiply(n, of_head, 1)
    assert (found.per_source_token - plain.per_source_token) * n == heads * sums - 2 * multiply(n, width, n)
    assert found.per_target_token == plain.per_target_token


@pytest.mark.parametrize("active", [1, 3])
def test_only_the_active_experts_work(active: int) -> None:
    layers = {"layers": 2, "heads": 2, "feedforward": 24}
    base = {"width": 16, "encoder": layers, "decoder": layers}
    mixed = {**base, "encoder": {**layers, "experts": {"count": 5, "active": active}}}
    plain, found = described(base), described(mixed)
    expert, router = multiply(1, 16, 24) * 2, multiply(1, 16, 5)
    assert found.operations.per_source_token - plain.operations.per_source_token == 2 * ((active - 1) * expert + router)
    network = 16 * 24 + 24 + 24 * 16 + 16
    assert found.parameters - plain.parameters == 2 * (4 * network + 5 * 16)
    assert found.parameters - found.active == 2 * (5 - active) * network


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"positions": {"kind": "relative"}},
        {"positions": {"kind": "alibi"}},
        {"encoder": {"attention": {"kind": "window", "window": 40}}},
        {"decoder": {"cross_attention": {"kind": "hard", "adaptive": True}}},
        {"encoder": {"kind": "convolutional"}, "decoder": {"kind": "bytenet", "cross_attention": {}}},
        {
            "encoder": {"kind": "recurrent", "cell": "lstm"},
            "decoder": {"kind": "recurrent", "wiring": {"kind": "luong"}},
        },
    ],
)
def test_operations_on_the_meta_device_equal_the_real_ones(settings: dict) -> None:
    small = {"layers": 1, "heads": 2, "feedforward": 8}
    sides = {}
    for side in ("encoder", "decoder"):
        given = settings.get(side, {})
        sides[side] = {**(small if "kind" not in given else {"layers": 1}), **given}
    config = ModelConfig.model_validate({"preset": None, "width": 8, **settings, **sides})
    length = 300
    found = describe_model(config, VocabularySizes(20, 20), length).operations
    model = config.build(20, 20).eval()
    tokens = torch.full((1, length), BOS)
    keep = torch.ones_like(tokens, dtype=torch.bool)
    explicit = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)  # all of it as counted products
    with torch.no_grad(), explicit, FlopCounterMode(display=False) as counter:
        assert model(tokens, keep, tokens).logits().isfinite().all()
    assert (found.per_source_token + found.per_target_token) * length == counter.get_total_flops()


def test_memory_is_the_memory_used_by_the_model() -> None:
    settings = {"width": 16, "encoder": {"layers": 2, "heads": 2}, "decoder": {"layers": 2, "heads": 2}}
    found = described(settings, vocabulary=60, length=20)
    config = ModelConfig.model_validate({"preset": None, **settings})
    expected = measure_footprint(config.build(60, 60), 20, training=True)
    assert found.footprint == expected
    assert found.memory["training"] == evaluate_polynomial(expected.training, 20) > 0
    assert found.memory["parameters"] == 4 * found.parameters
    assert found.memory["optimised"] == 16 * found.parameters


def test_tied_tables_count_once_and_name_their_owner() -> None:
    small = {"width": 8, "encoder": {"layers": 1, "heads": 2}, "decoder": {"layers": 1, "heads": 2}}
    tied = {part.name: part for part in described(small).parts}
    assert tied["decoder.embedding.tokens"].tied == tied["decoder.projection"].tied == "encoder.embedding.tokens"
    apart = described({**small, "tie_embeddings": False, "tie_projection": False})
    assert not any(part.tied for part in apart.parts)
    assert apart.parameters == described(small).parameters + 2 * 40 * 8


def test_a_length_beyond_the_positions_is_refused() -> None:
    with pytest.raises(ConfigError, match="12 positions of the source"):
        described({"width": 8, "positions": {"kind": "learned", "limit": 12}}, length=13)


def printed(capsys: pytest.CaptureFixture, *arguments: str) -> dict:
    assert main(["describe", *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_the_command_reads_a_model_a_recipe_and_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = {"preset": "tiny", "encoder": {"layers": 1}}
    alone, recipe = tmp_path / "model.yaml", tmp_path / "recipe.yaml"
    alone.write_text(dump_yaml(model))
    missing = {"train": {"pairs": "${NO_SUCH_VARIABLE}/a"}, "valid": {"pairs": "b"}}
    recipe.write_text(
        dump_yaml(
            {"data": missing, "text": {"subword": {"kind": "word", "size": 900}}, "model": model, "out": "runs/x"}
        )
    )
    one = printed(capsys, str(alone), "model.decoder.layers=2", "--vocabulary", "900")
    other = printed(capsys, str(recipe), "model.decoder.layers=2")
    assert one["model"] == other["model"]
    assert one["parameters"] == other["parameters"]
    assert other["source"] == other["target"] == 900
    assert (one["model"]["encoder"]["layers"], one["model"]["decoder"]["layers"]) == (1, 2)
    assert (
        one["parameters"]["all"]
        == sum(part["parameters"] for part in one["parts"] if "." not in part["name"])
        == count_parameters(ModelConfig.model_validate(one["model"]).build(900, 900))
    )
    folder = printed(capsys, str(MODEL))
    assert folder["parameters"]["all"] == 3856
    assert "600 steps" in folder["notes"][0]


@pytest.mark.usefixtures("unmeasured")
def test_assumptions_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    notes = " ".join(printed(capsys, str(path), "--length", "2")["notes"])
    assert "preset auto is base for a corpus of 4,500,000 pairs (assumed" in notes
    assert "37,000 entries (assumed" in notes
    result = printed(capsys, str(path), "--length", "2", "--pairs", "29000", "--vocabulary", "700,800")
    notes = " ".join(result["notes"])
    assert "preset auto is tiny for a corpus of 29,000 pairs (from --pairs)" in notes
    assert "vocabularies of 700 and 800 entries (as given)" in notes
    assert result["model"]["tie_embeddings"] is False
    vectors = printed(capsys, "model.preset=tiny", "text.vectors.width=40", "--vocabulary", "500")
    assert "vectors of 40 numbers" in " ".join(vectors["notes"])


@pytest.mark.usefixtures("unmeasured")
def test_the_batches_of_a_recipe_are_packed_or_the_reason_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("train: {max_steps: 5}\n")
    assert (
        "batches: packed on a GPU or in bfloat16 (data.batch.packed=auto)"
        in printed(capsys, str(path), "--length", "2")["notes"]
    )
    recurrent = ["model.preset=rnn", "train.compile=false"]
    (note,) = [
        each for each in printed(capsys, str(path), *recurrent, "--length", "2")["notes"] if each.startswith("batches:")
    ]
    padded = "batches: padded, on a GPU to few shapes (data.batch.few_shapes=auto), because packed states need"
    assert note == f"{padded} Transformer layers with attention of kind soft, window or hard"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to describe"),
        (["missing.yaml"], "cannot read the settings missing.yaml"),
        (["model.preset=huge"], "unknown preset 'huge'"),
        (["model.widht=3"], "did you mean model.width?"),
        (["model.preset=tiny", "model.encoder.heads=7"], "is not divisible by 7 heads"),
        (["model.preset=tiny", "words"], "'words' is not a setting"),
        (["model.preset=tiny", "--vocabulary", "many"], "neither a size"),
        (["model.preset=tiny", "model.positions.kind=learned", "--length", "600"], "512 positions"),
        ([str(MODEL), "model.width=3"], "settings cannot be changed"),
        ([str(MODEL.parent)], "not a model folder"),
    ],
)
def test_mistakes_are_reported(arguments: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["describe", *arguments]) in (1, 2)
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_fits_a_terminal(width: int) -> None:
    found = described({"preset": "tiny"}, vocabulary=8000)
    lines = [*parts_table(found, width).split("\n"), *numbers_text(found).split("\n")]
    assert max(map(len, lines)) <= width
    table = "\n".join(lines)
    assert ("weight 192×192, bias 192" in table) == (width == 120)
    assert "tied to encoder.embedding.tokens" in table
    assert f"{found.parameters:,} parameters" in table


def test_a_language_models_recipe_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unmeasured: None
) -> None:
    write_tiny_language_model(tmp_path / "model")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("task: {kind: language_model}\nmodel: {preset: base, tie_projection: true}\n", encoding="utf-8")
    trained = printed(capsys, str(tmp_path / "model"))
    model = LanguageModel.load(tmp_path / "model", "cpu")
    assert trained["parameters"]["all"] == sum(parameter.numel() for parameter in model.model.parameters())
    # GPT-2's smallest (Radford et al. 2019)
    base = printed(capsys, str(recipe), "--vocabulary", "50257")
    assert base["parameters"]["all"] == 124_439_808
    assert base["flops"]["source_token"] == 0
    assert base["most_tokens"] == {"target": 1023}
    assert main(["describe", str(recipe)]) == 0
    shown = capsys.readouterr().out
    assert "source" not in shown
    assert "per text" in shown
