"""Masked language models: training, validation, packed documents, filling, pseudo-log-likelihood, fine-tuning."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_close

from dragoman import Predictor, evaluate_labels, evaluate_pairs, predict, score, train
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.cli.main import main
from dragoman.data.batches.batch import document_blocks
from dragoman.data.batches.masked import MaskedCollator
from dragoman.data.batches.masking import MASK, Masker, MaskingConfig
from dragoman.inference.prediction.pseudo_likelihood import pseudo_log_likelihoods
from dragoman.models.initialisation import without_storage
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.models.parts import count_parameters
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cross_entropy import CrossEntropy

STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
HEAD: dict[str, Any] = {"kind": "masked_language_model"}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}
LINES = ["a dog runs in the park .", "the man sees a red house .", "two cats sleep under a tree ."] * 4


def recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "text.txt").write_text("\n".join(f"{line} {number}" for number, line in enumerate(LINES)) + "\n")
    text = {"text": str(folder / "text.txt")}
    return {
        "task": {"kind": "masked_language_model"},
        "data": {"train": text, "valid": text, "block": 24, **changes.pop("data", {})},
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {"preset": "tiny", "width": 8, "encoder": STACK, **changes.pop("model", {})},
        "train": {"max_steps": 2, **MACHINE, **changes.pop("train", {})},
        "out": str(folder / "body"),
        **changes,
    }


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    train(recipe(folder), quiet=True)
    return folder / "body"


def build(**settings: Any) -> EncoderOnly:
    torch.manual_seed(1)
    values = {"preset": None, "width": 8, "encoder": STACK, "head": HEAD, "segments": 2, **settings}
    return EncoderOnlyConfig.model_validate(values).build_for(VocabularySizes(30, 30)).eval()


POSITIONS: list[dict[str, Any]] = [
    {"kind": "learned", "limit": 40},
    {"kind": "sinusoidal"},
    {"kind": "rotary"},
    {"kind": "relative"},
    {"kind": "alibi"},
]


@pytest.mark.parametrize("positions", POSITIONS, ids=lambda each: each["kind"])
def test_a_document_has_the_same_outputs_beside_any_others_in_its_row(positions: dict[str, Any]) -> None:
    model = build(positions=positions)
    documents = [[BOS, 5, 6, EOS, 9, EOS], [BOS, 7, 8, 9, EOS], [BOS, EOS], [BOS, *range(5, 20), EOS]]
    for order in ([0, 1, 2, 3], [3, 0, 2, 1]):
        row = [number for index in order for number in documents[index]]
        tokens = torch.tensor([[*row, PAD, PAD], [*documents[3], *[PAD] * (len(row) + 2 - len(documents[3]))]])
        packed = model(tokens, tokens != PAD, True).logits()[0]
        start = 0
        for index in order:
            alone = model(torch.tensor([documents[index]]), torch.ones(1, len(documents[index]), dtype=torch.bool))
            end = start + len(documents[index])
            assert_close(packed[start:end], alone.logits()[0])
            start = end


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"encoder": {"kind": "recurrent"}}, "model.encoder is of kind recurrent"),
        ({"encoder": {**STACK, "attention": {"kind": "window", "window": 4}}}, "is of kind transformer"),
        ({"positions": {"kind": "fraction"}}, "positions of kind fraction depend on the length"),
    ],
)
def test_encoders_that_cannot_keep_documents_apart_are_not_packed(
    model: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    settings = recipe(tmp_path, data={"pack": True})
    settings["model"] = {"preset": None, "width": 8, "encoder": STACK, **model}
    with pytest.raises(ConfigError, match=reason):
        train(settings, quiet=True)


def test_the_loss_is_the_cross_entropy_at_masked_places_only(body: Path) -> None:
    tokenizer, model = Predictor.load(body, "cpu").tokenizer, build()
    model = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": STACK, "head": HEAD}).build_for(
        VocabularySizes(tokenizer.size, tokenizer.size)
    )
    collate = MaskedCollator(Masker(MaskingConfig(), tokenizer, 1))
    batch = collate([document_blocks(tokenizer.encode(line), 50)[0] for line in LINES], range(len(LINES)))
    calls: list[int] = []
    model.head.transform.register_forward_hook(lambda module, inputs, output: calls.append(len(output)))
    loss = CrossEntropy(0.0)(model.eval(), batch)
    assert calls == [batch.target_tokens] and batch.target_tokens < batch.mask.sum() / 3
    logits = model(batch.inputs, batch.mask).logits()
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="sum")
    assert_close(loss.total, expected)


@pytest.mark.parametrize(("preset", "published"), [("base", 110e6), ("large", 340e6)])
def test_presets_have_the_published_numbers_of_parameters_and_exactly_those_of_transformers(
    preset: str, published: float
) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = VocabularySizes(30522, 30522)
    heads = {"masked": HEAD, "pooled": {"kind": "classification", "labels": ["a", "b"], "hidden": True}}
    with without_storage():
        ours = {
            name: EncoderOnlyConfig.model_validate({"preset": preset, "head": head}).build_for(sizes)
            for name, head in heads.items()
        }
        width, layers, heads_of = {"base": (768, 12, 12), "large": (1024, 24, 16)}[preset]
        config = transformers.BertConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads_of, intermediate_size=4 * width
        )
    with torch.device("meta"):
        theirs = {"masked": transformers.BertForMaskedLM(config), "pooled": transformers.BertModel(config)}
    assert count_parameters(ours["masked"]) == theirs["masked"].num_parameters()
    output = sum(each.numel() for each in ours["pooled"].head.output.parameters())
    assert count_parameters(ours["pooled"]) - output == theirs["pooled"].num_parameters()
    assert abs(theirs["pooled"].num_parameters() / published - 1) < 0.02


def test_fills_are_the_most_probable_tokens_and_their_probabilities(body: Path) -> None:
    predictor = Predictor.load(body, "cpu", fills=300)
    texts = ["a dog <mask> in the <mask> .", "no mask", "", "<mask>"]
    predictions: list[Any] = predictor.predict(texts)
    assert [len(each.fills) for each in predictions] == [2, 0, 0, 1]
    assert predictions[1].text == "no mask"
    tokenizer = predictor.tokenizer
    (mask,) = tokenizer.tag_ids([MASK])
    ids = [BOS, *tokenizer.encode("a dog"), mask, *tokenizer.encode_continuation([" in the"])[0], mask]
    ids += [*tokenizer.encode_continuation([" ."])[0], EOS]
    logits = predictor.model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool)).logits()[0]
    place = ids.index(mask)
    expected = logits[place].softmax(0).tolist()
    for fill in predictions[0].fills[0]:
        same = [number for number in range(4, tokenizer.size - 1) if tokenizer.surface(number) == fill.text.encode()]
        assert any(abs(expected[number] - fill.probability) < 1e-6 for number in same) or "�" in fill.text
    chances = [fill.probability for fill in predictions[0].fills[0]]
    assert chances == sorted(chances, reverse=True) and len(chances) == tokenizer.size - 5
    assert 1 - sum(chances) == pytest.approx(sum(expected[:4]) + expected[mask], abs=1e-5)
    alone = predictor.predict(texts[0])[0]
    assert [fill.text for fill in alone.fills[1][:3]] == [fill.text for fill in predictions[0].fills[1][:3]]  # type: ignore[attr-defined]


def test_the_card_says_that_the_model_fills_masks(body: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = (body / "README.md").read_text()
    assert "\n# Masked language model\n" in card and "fills masks in similar text best" in card
    assert "| Tokens that are predicted | 15% |" in card and "| Seed | 1 |" in card
    assert "| Checkpoint selected by | loss on " in card and card.index("## Training") < card.index("## Use")
    assert main(["describe", str(body)]) == 0
    assert f"{body}: a masked language model, trained for 2 steps" in capsys.readouterr().out


def test_predict_writes_the_fills_of_each_text(body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.txt").write_text("a <mask> runs .\nthe man\n")
    assert predict(body, tmp_path / "texts.txt", tmp_path / "out.jsonl", fills=3, device="cpu", quiet=True) == 2
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert len(first["fills"][0]) == 3 and first["fills"][0][0].keys() == {"text", "probability"}
    assert second == {"id": "2", "fills": [], "text": "the man"}
    assert "warning: 1 text(s) contain no <mask>, so nothing was predicted for them" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        Predictor.load(body, "cpu", fills=0)


def test_a_pseudo_log_likelihood_masks_each_token_in_turn(body: Path) -> None:
    predictor = Predictor.load(body, "cpu")
    tokenizer = predictor.tokenizer
    (mask,) = tokenizer.tag_ids([MASK])
    texts = ["a dog runs", "the man sees a red house .", "x", ""]
    expected = []
    for text in texts:
        ids = [BOS, *tokenizer.encode(text), EOS]
        total = 0.0
        for place in range(1, len(ids) - 1):
            masked = torch.tensor([[*ids[:place], mask, *ids[place + 1 :]]])
            logits = predictor.model(masked, torch.ones_like(masked, dtype=torch.bool)).logits()[0, place]
            total += float(logits.detach().log_softmax(0)[ids[place]])
        expected.append(total)
    scores = score(body, texts, device="cpu", quiet=True)
    assert [each.log_probability for each in scores.each] == pytest.approx(expected, abs=1e-4)
    assert [each.tokens for each in scores.each] == [len(tokenizer.encode(text)) for text in texts]
    assert "pseudo-perplexity per token" in str(scores)
    small = [each.log_probability for each in predictor.score(texts, batch_tokens=1)]
    assert small == pytest.approx(expected, abs=1e-4)


def test_long_texts_are_scored_in_blocks(body: Path) -> None:
    predictor = Predictor.load(body, "cpu")
    assert predictor.limit == 24
    ids = predictor.tokenizer.encode("a dog runs in the park . " * 6)
    parts = [ids[start : start + 22] for start in range(0, len(ids), 22)]
    assert len(parts) > 2
    whole = pseudo_log_likelihoods(predictor.model, predictor.tokenizer, [ids], predictor.limit)
    separate = pseudo_log_likelihoods(predictor.model, predictor.tokenizer, parts, None)
    assert whole[0] == pytest.approx(sum(separate), abs=1e-4)


def test_minimal_pairs_are_scored_by_paradigm(body: Path, tmp_path: Path) -> None:
    predictor = Predictor.load(body, "cpu")
    texts = ["a dog runs", "runs dog a", "two cats sleep", "the man sees", "tree a under"]
    chances = {text: predictor.score([text])[0].log_probability for text in texts}
    rows = [(one, other, name) for one, other, name in zip(texts, texts[1:], "xxyy", strict=False)]
    keys = ("right", "wrong", "UID")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in [*rows, (texts[0], texts[0], "same")]]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n\n")
    settings = {"good": "right", "bad": "wrong"}
    result = evaluate_pairs(body, tmp_path / "pairs.jsonl", settings, device="cpu", quiet=True)
    right = [chances[one] > chances[other] for one, other, _ in rows]
    assert result.by_paradigm == {"x": 50 * sum(right[:2]), "y": 50 * sum(right[2:]), "same": 0}
    assert result.pairs == {"x": 2, "y": 2, "same": 1}
    with pytest.raises(DataError, match=r"pairs\.jsonl, line 1: the key 'sentence_good' has no text"):
        evaluate_pairs(body, tmp_path / "pairs.jsonl", quiet=True)


def test_a_causal_language_model_scores_minimal_pairs_too(tmp_path: Path) -> None:
    from tiny_language_model import tiny_language_model

    model = tiny_language_model(tmp_path / "model")
    one, other = "a dog runs", "dög 🐕"
    first, second = (each.log_probability for each in model.score([one, other]))
    pair = {"sentence_good": one, "sentence_bad": other} if first > second else {}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair or {"sentence_good": other, "sentence_bad": one}))
    assert evaluate_pairs(model, tmp_path / "pairs.jsonl", quiet=True).mean == 100
    assert "accuracy 100.0" in str(evaluate_pairs(tmp_path / "model", tmp_path / "pairs.jsonl", quiet=True))


def classification(folder: Path, start: Path) -> dict[str, Any]:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (folder / "data.tsv").write_text("\n".join(rows) + "\n")
    return {
        "task": {"kind": "classification"},
        "data": {"train": str(folder / "data.tsv"), "valid": str(folder / "data.tsv")},
        "model": {},
        "train": {"max_steps": 1, "start": str(start), "schedule": {"kind": "constant", "peak": 1e-30}, **MACHINE},
        "out": str(folder / "classifier"),
    }


def test_a_classifier_starts_from_the_body(body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(classification(tmp_path, body))
    stored, _ = load_tensors(body / "model.safetensors")
    ours, _ = load_tensors(tmp_path / "classifier" / "model.safetensors")
    assert ours.keys() - stored.keys() == {"head.output.weight", "head.output.bias"}
    for name in ours.keys() & stored.keys():
        torch.testing.assert_close(ours[name], stored[name], rtol=0, atol=1e-20)
    assert "New: head" in " ".join(capsys.readouterr().err.split())
    assert Predictor.load(tmp_path / "classifier", "cpu").tokenizer.tags == (MASK,)
    with pytest.raises(ModelError, match="a head of kind classification; it cannot score texts"):
        score(tmp_path / "classifier", ["a dog"], device="cpu", quiet=True)
    with pytest.raises(ConfigError, match="predicts tokens, not labels"):
        evaluate_labels(body, tmp_path / "data.tsv", device="cpu", quiet=True)


@pytest.mark.slow
def test_pre_training_continues_from_a_body_and_from_a_classifier(
    body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def continued(start: Path, out: str) -> dict[str, Any]:
        settings = recipe(tmp_path, train={"start": str(start), "max_steps": 1}, out=str(tmp_path / out))
        return {name: value for name, value in settings.items() if name not in ("model", "text")} | {"model": {}}

    train(continued(body, "same"))
    said = " ".join(capsys.readouterr().err.split())
    assert "New:" not in said and "head.projection" in said
    train(classification(tmp_path, body), quiet=True)
    capsys.readouterr()
    train(continued(tmp_path / "classifier", "again"))
    assert "New: head" in " ".join(capsys.readouterr().err.split())


def test_validation_masks_the_same_tokens_every_time(body: Path) -> None:
    log = [json.loads(line) for line in (body / "log.jsonl").read_text().splitlines()]
    last = next(line for line in reversed(log) if "valid_loss" in line)
    assert last["valid_perplexity"] == pytest.approx(np.exp(last["valid_loss"]))
    assert 0 <= last["valid_accuracy"] <= 100


def test_a_row_may_not_exceed_the_positions_of_the_model(tmp_path: Path) -> None:
    settings = recipe(tmp_path, model={"positions": {"kind": "learned", "limit": 16}})
    with pytest.raises(ConfigError, match=r"data\.block is 24 tokens, but the model has 16 positions"):
        train(settings, quiet=True)
