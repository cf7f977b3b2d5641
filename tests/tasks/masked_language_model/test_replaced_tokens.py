"""Replaced-token detection (ELECTRA): the generator's draws, the loss, runs, and the use of their folders."""

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import close_to

from dragoman import Predictor, export, predict, score, train
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import load_model_folder
from dragoman.checkpoint.tensors import load_tensors
from dragoman.data.batches.masked import MaskedBatch, MaskedCollator
from dragoman.data.batches.masking import MASK, Masker, MaskingConfig
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.nn.randomness import use_generator
from dragoman.tasks.masked_language_model.replaced_tokens import (
    Detector,
    ReplacedTokenObjective,
    detection_loss,
    replace_tokens,
)
from dragoman.text.symbols import BOS, EOS, PAD, SPECIAL_SYMBOLS
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cross_entropy import CrossEntropy

SIZE = 30
VOCABULARY = range(len(SPECIAL_SYMBOLS), SIZE - 1)
STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 4, "feedforward": 32}
DETECTION: dict[str, Any] = {"head": {"kind": "replaced_token_detection"}, "generator": {"width": 0.5}}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}
LINES = ["a dog runs in the park .", "the man sees a red house .", "two cats sleep under a tree ."] * 4


def build(**settings: Any) -> EncoderOnly:
    torch.manual_seed(1)
    values = {"preset": None, "width": 16, "encoder": STACK, **DETECTION, **settings}
    return EncoderOnlyConfig.model_validate(values).build_for(VocabularySizes(SIZE, SIZE)).eval()


def batch_of(rows: int = 6, length: int = 10) -> MaskedBatch:
    """Return rows of different lengths, a third of whose tokens is masked."""
    draw = torch.Generator().manual_seed(2)
    ids = torch.randint(VOCABULARY.start, VOCABULARY.stop, (rows, length), generator=draw)
    ends = torch.arange(length - rows, length)[:, None]
    position = torch.arange(length)[None]
    ids = torch.where(position == ends, EOS, torch.where(position > ends, PAD, ids))
    ids[:, 0] = BOS
    predicted = (torch.rand(rows, length, generator=draw) < 0.33) & (position > 0) & (position < ends)
    return MaskedBatch(
        inputs=ids.where(~predicted, SIZE - 1),
        labels=ids.where(predicted, -100),
        target_mask=predicted,
        target_tokens=int(predicted.sum()),
        rows=tuple(range(rows)),
        mask=position <= ends,
    )


def test_tokens_are_drawn_from_the_generators_distribution_at_the_predicted_places_only() -> None:
    model, batch = build(), batch_of()
    with torch.no_grad():
        output: MaskedOutput = model.generator(*batch.model_inputs)  # type: ignore[misc]
        place = batch.target_mask.flatten().nonzero()[:1, 0]
        expected = (3 * output.logits(place)[0, VOCABULARY.start : VOCABULARY.stop]).softmax(0)
    model.generator.head.projection.weight.data.mul_(3)  # type: ignore[union-attr]
    draws = torch.Generator().manual_seed(3)
    counts, repeats = torch.zeros(SIZE), 1500
    original = batch.inputs.where(~batch.target_mask, batch.labels)
    for _ in range(repeats):
        ids, labels = replace_tokens(output, batch, VOCABULARY, draws)
        assert torch.equal(ids[~batch.target_mask], original[~batch.target_mask])
        assert torch.equal(labels, ids != original)
        counts[ids.flatten()[place]] += 1
    found = counts[VOCABULARY.start : VOCABULARY.stop] / repeats
    assert counts.sum() == repeats and found.sum() == pytest.approx(1)
    for one, other in zip(found.tolist(), expected.tolist(), strict=True):
        assert abs(one - other) < 4.5 * sqrt(other * (1 - other) / repeats)


def test_draws_depend_on_the_generator_of_the_thread() -> None:
    model, batch = build(), batch_of()
    output: MaskedOutput = model.generator(*batch.model_inputs)  # type: ignore[misc]

    def draw(seed: int) -> torch.Tensor:
        with use_generator(torch.Generator().manual_seed(seed)):
            return replace_tokens(output, batch, VOCABULARY).ids

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def certain_model() -> EncoderOnly:
    """Return a model whose generator always draws the same token, so that parts of a batch have the same draws."""
    model = build()
    model.generator.head.projection.bias.data[VOCABULARY.start] = 1e4  # type: ignore[union-attr]
    return model


def test_the_loss_is_that_of_the_masked_tokens_plus_the_weighted_detection() -> None:
    model, batch = certain_model(), batch_of()
    objective = ReplacedTokenObjective(CrossEntropy(0.0), 50.0, 0.2, VOCABULARY)
    whole = objective(model, batch)
    ids = batch.inputs.where(~batch.target_mask, VOCABULARY.start)
    labels = ids != batch.inputs.where(~batch.target_mask, batch.labels)
    probabilities = model(ids, batch.mask).sigmoid()
    right = torch.where(labels, probabilities, 1 - probabilities)[batch.mask]
    tokens = CrossEntropy(0.0)(model.generator, batch)
    torch.testing.assert_close(whole.total, tokens.total - 50.0 * 0.2 * right.log().sum(), rtol=1e-5, atol=1e-3)
    assert whole.auxiliary["detection"] == pytest.approx(-float(right.detach().log().mean()), rel=1e-4)
    assert whole.tokens == batch.target_tokens
    parts = [objective(model, part) for part in batch.split(3)]
    torch.testing.assert_close(sum(part.total for part in parts), whole.total, rtol=1e-5, atol=1e-3)


def test_detection_trains_the_generator_only_through_the_shared_embeddings() -> None:
    def gradients(weight: float) -> dict[str, torch.Tensor | None]:
        model = certain_model()
        ReplacedTokenObjective(CrossEntropy(0.0), weight, 0.2, VOCABULARY)(model, batch_of()).total.backward()  # type: ignore[no-untyped-call]
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    alone, both = gradients(0.0), gradients(50.0)
    generator = [name for name in alone if name.startswith("generator.")]
    assert len(generator) > 20
    for name in generator:
        assert alone[name] is not None and torch.equal(alone[name], both[name]), name  # type: ignore[arg-type]
    tokens = "encoder.embedding.tokens.weight"
    assert not torch.equal(alone[tokens], both[tokens])  # type: ignore[arg-type]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in both.values())


def test_the_generator_is_a_fraction_of_the_body_and_stores_no_second_embedding() -> None:
    model = build(generator={"width": 0.25, "layers": 0.5})
    generator = model.generator
    assert generator is not None
    assert generator.width == 4 and len(generator.encoder.layers) == 1  # type: ignore[attr-defined]
    tables = [name for name, tensor in model.state_dict().items() if SIZE in tensor.shape and tensor.dim() == 2]
    assert tables == ["encoder.embedding.tokens.weight", "generator.head.projection.weight"]
    assert generator.head.projection.weight is model.encoder.embedding.tokens.weight  # type: ignore[union-attr]


def test_measures_of_detection_count_all_tokens() -> None:
    model, batch = build(), batch_of()
    output: MaskedOutput = model.generator(*batch.model_inputs)  # type: ignore[misc]
    detector = Detector(VOCABULARY)
    with torch.no_grad():
        found = detector.count(model, output, batch, 5) + detector.count(model, output, batch, 6)
        draws = [replace_tokens(output, batch, VOCABULARY, torch.Generator().manual_seed(seed)) for seed in (5, 6)]
        pairs = [
            (float(logit) > 0, bool(label))
            for replaced in draws
            for logit, label in zip(
                model(replaced.ids, batch.mask)[batch.mask], replaced.labels[batch.mask], strict=True
            )
        ]
        loss = sum(detection_loss(model(each.ids, batch.mask), each, batch.mask) for each in draws)
    true = sum(one and other for one, other in pairs)
    assert found.tokens == len(pairs)
    assert found.accuracy == pytest.approx(100 * np.mean([one == other for one, other in pairs]))
    assert found.f1 == pytest.approx(200 * true / (sum(one for one, _ in pairs) + sum(other for _, other in pairs)))
    assert found.loss == pytest.approx(float(loss))


def recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "text.txt").write_text("\n".join(f"{line} {number}" for number, line in enumerate(LINES)) + "\n")
    text = {"text": str(folder / "text.txt")}
    loop = {
        "max_steps": 4,
        "replaced_tokens": 50,
        "schedule": {"kind": "constant", "peak": 0.01, "warmup": 1},
        "checkpoint_every": 2,
        "average": {"count": 0},
    }
    return {
        "task": {"kind": "masked_language_model"},
        "data": {"train": text, "valid": text, "block": 24, "pack": True, "batch": {"tokens": 48}},
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {"preset": "tiny", "width": 16, "encoder": STACK, **changes.pop("model", {})},
        "train": {**loop, **MACHINE, **changes.pop("train", {})},
        "out": str(folder / changes.pop("out", "body")),
        **changes,
    }


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replaced")
    result = train(recipe(folder), quiet=True)
    keys = [score.key for score in result.validation.scores]
    assert keys == ["loss", "masked_loss", "perplexity", "accuracy", "detection_accuracy", "detection_f1"]
    masked = result.validation["masked_loss"].value
    assert result.validation["loss"].value > masked > 0
    assert result.validation["perplexity"].value == pytest.approx(np.exp(masked))
    return folder / "body"


@pytest.mark.slow
def test_a_resumed_run_ends_like_an_uninterrupted_one(body: Path, tmp_path: Path) -> None:
    train(recipe(tmp_path, train={"max_steps": 2}), quiet=True)
    assert train(recipe(tmp_path), resume=True, quiet=True).step == 4
    folders = (folder / "checkpoints" for folder in (body, tmp_path / "body"))
    whole, resumed = (load_tensors(max(each.iterdir()) / "model.safetensors")[0] for each in folders)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_generator_fills_masks_and_scores_texts_and_the_body_gives_vectors(body: Path, tmp_path: Path) -> None:
    predictor = Predictor.load(body, "cpu", fills=3)
    (prediction,) = predictor.predict(["a <mask> runs"])
    filled: Any = prediction
    loaded = load_model_folder(body, torch.device("cpu"))
    tokenizer = loaded.tokenizers.source
    inputs = predictor.encode(["a <mask> runs"])[0].inputs[0]
    ids = torch.tensor([inputs.ids])
    with torch.no_grad():
        logits = loaded.model.generator(ids, torch.ones_like(ids, dtype=torch.bool)).logits()[0, inputs.places[0]]
    words = logits.softmax(0)[len(SPECIAL_SYMBOLS) : tokenizer.size - len(tokenizer.tags)]
    assert [each.probability for each in filled.fills[0]] == pytest.approx(words.topk(3).values.tolist(), rel=1e-4)
    ids = torch.tensor([[BOS, *tokenizer.encode("a dog"), EOS]])
    with torch.no_grad():
        summary = loaded.model.encode(ids, torch.ones_like(ids, dtype=torch.bool)).summary[0].numpy()
    assert predictor.vectors("a dog")[0] == close_to(summary / np.linalg.norm(summary))
    (tmp_path / "in.txt").write_text("a <mask> runs\n\n")
    assert predict(predictor, tmp_path / "in.txt", tmp_path / "out.jsonl", quiet=True) == 2
    assert np.isfinite(score(body, ["a dog runs"], quiet=True).each[0].log_probability)


def test_fine_tuning_starts_from_the_body_and_further_detection_also_from_the_generator(
    body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text("a dog runs\tyes\nthe man\tno\n" * 4)
    data = {"train": str(tmp_path / "a.tsv"), "valid": str(tmp_path / "a.tsv")}
    start = {"start": str(body), "max_steps": 1, **MACHINE}
    train({"task": {"kind": "classification"}, "data": data, "train": start, "out": str(tmp_path / "classes")})
    reported = capsys.readouterr().err
    assert "copied encoder.embedding, encoder. New: head" in reported and "Not used:" in reported
    copied = load_tensors(tmp_path / "classes" / "model.safetensors")[0]
    assert not [name for name in copied if name.startswith("generator")]
    Predictor.load(tmp_path / "classes", "cpu").predict("a dog")
    again = recipe(tmp_path, out="again", train=start)
    del again["model"], again["text"]
    train(again)
    reported = capsys.readouterr().err
    assert "New" not in reported and "generator" in reported
    masked = recipe(tmp_path, out="masked", train={**start, "replaced_tokens": 0})
    del masked["model"], masked["text"]
    train(masked)
    assert Predictor.load(tmp_path / "masked", "cpu").model.generator is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": {"next_sentence": 1.0}}, r"train\.next_sentence and train\.replaced_tokens cannot be combined"),
        ({"train": {"replaced_tokens": 0, "metric": "detection_f1"}}, r"detection_f1 needs replaced tokens"),
        ({"model": {"encoder": {"kind": "mean"}}}, r"generator: a generator needs a Transformer"),
        ({"model": {"generator": {"width": 0.5}}, "train": {"replaced_tokens": 0}}, r"remove model\.generator"),
        ({"model": {"head": {"kind": "masked_language_model"}}}, r"needs a head of kind replaced_token_detection"),
        ({"model": {"generator": {"head": {"transform": False}}}}, r"generator\.head\.transform=false"),
    ],
)
def test_contradictory_settings_are_errors(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train(recipe(tmp_path, **changes), quiet=True)


def test_bert_cannot_express_a_detector(body: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"vocabulary|model\.head\.kind"):
        export(body, tmp_path / "out", "bert")


def test_all_predicted_tokens_are_hidden_unless_the_recipe_says_otherwise(body: Path) -> None:
    masking = load_model_folder(body, torch.device("cpu")).config["data"]["masking"]
    assert (masking["replaced"], masking["random"]) == (1.0, 0.0)
    tokenizer = load_model_folder(body, torch.device("cpu")).tokenizers.source
    masker = Masker(MaskingConfig(**masking), tokenizer, 1)
    batch = MaskedCollator(masker)([[BOS, *tokenizer.encode(" ".join(LINES)), EOS]], [0])
    assert (batch.inputs[batch.target_mask] == tokenizer.tag_ids([MASK])[0]).all()
