"""Hugging Face folders of BERT models, imported and exported: outputs, tokens, round trips."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bert_folders import TEXTS, hard_lines, write_bert
from closeness import assert_close
from safetensors.torch import load_file, save_file

from dragoman import Predictor
from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.data.batches.batch import pad
from dragoman.exchange.formats import export, import_model
from dragoman.exchange.huggingface.bert.vocabulary import bert_order
from dragoman.inference.prediction.heads.inputs import join_texts
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.text.symbols import BOS

transformers = pytest.importorskip("transformers")

LABELS = {"id2label": {2: "gut", 0: "sehr schlecht", 1: "so la la"}, "num_labels": 3}
VARIANTS: dict[str, dict[str, Any]] = {
    "body": {},
    "cased, approximate gelu": {"lowercase": False, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
    "one segment, relu, odd sizes": {
        "type_vocab_size": 1,
        "hidden_act": "relu",
        "hidden_size": 15,
        "num_attention_heads": 3,
    },
    "classes": {"architecture": "BertForSequenceClassification", **LABELS},
    "a number": {"architecture": "BertForSequenceClassification", "num_labels": 1},
    "tags": {"architecture": "BertForTokenClassification", **LABELS, "hidden_act": "silu"},
    "answers": {"architecture": "BertForQuestionAnswering"},
    "masked words": {"architecture": "BertForMaskedLM", "hidden_act": "gelu_new", "layer_norm_eps": 1e-4},
    "masked words and next sentences": {"architecture": "BertForPreTraining"},
    "masked words, untied": {"architecture": "BertForMaskedLM", "tie_word_embeddings": False},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bert")


@pytest.fixture(scope="module", params=VARIANTS)
def models(request: pytest.FixtureRequest, root: Path) -> tuple[Any, Path, Path]:
    """Hugging Face's model, its folder, and the model folder imported from it."""
    theirs, ours = root / request.param, root / f"{request.param}, ours"
    model = write_bert(theirs, **VARIANTS[request.param])
    import_model(theirs, ours)
    return model, theirs, ours


def loaded(folder: Path) -> LoadedModel:
    return load_model_folder(folder, torch.device("cpu"))


@torch.no_grad()
def their_outputs(model: Any, tokenizer: Any, texts: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states and the output of the head of Hugging Face's model, with padding."""
    firsts, seconds = zip(*[(text, None) if isinstance(text, str) else text for text in texts], strict=True)
    pairs = None if None in seconds else list(seconds)
    inputs = tokenizer(list(firsts), pairs, padding=True, return_tensors="pt", split_special_tokens=True)
    output = model(**inputs, output_hidden_states=True)
    if hasattr(output, "start_logits"):
        return output.hidden_states[-1], torch.stack((output.start_logits, output.end_logits), 2)
    if hasattr(output, "prediction_logits"):
        return output.hidden_states[-1], output.prediction_logits
    return output.hidden_states[-1], output.pooler_output if hasattr(output, "pooler_output") else output.logits


@torch.no_grad()
def our_outputs(model: LoadedModel, texts: list[Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the mask, the states and the output of the head."""
    tokenizer = model.tokenizers.source
    rows = [[tokenizer.encode(part) for part in ([text] if isinstance(text, str) else text)] for text in texts]
    ids, mask = pad([join_texts(row, None).ids for row in rows])
    output = model.model(ids, mask)
    if isinstance(output, MaskedOutput):
        output = output.logits()[:, :, bert_order(tokenizer)]  # type: ignore[arg-type]
    return mask, model.model.encode(ids, mask).states, output


PAIRS = [("a dog", "the cat sleeps"), ("the green grass .", ""), ("", "house"), ("", "")]


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_outputs_equal_hugging_face(models: tuple[Any, Path, Path], texts: list[Any]) -> None:
    theirs, folder, ours = models
    if theirs.config.type_vocab_size == 1 and texts is PAIRS:
        return  # Hugging Face's model with one segment does not accept pairs
    model, tokenizer = loaded(ours), transformers.AutoTokenizer.from_pretrained(folder)
    states, outputs = their_outputs(theirs, tokenizer, texts)
    mask, our_states, our_output = our_outputs(model, texts)
    assert_close(our_states[mask], states[mask])
    per_token = our_output.dim() == 3
    expected = outputs.squeeze(1) if model.config["model"]["head"]["kind"] == "regression" else outputs
    chosen = mask if per_token else torch.ones(len(texts), dtype=torch.bool)
    assert_close(our_output[chosen], expected[chosen])
    for number, text in enumerate(texts):
        alone_mask, _, alone = our_outputs(model, [text])
        row = our_output[number][mask[number]] if per_token else our_output[number]
        assert_close(alone[0][alone_mask[0]] if per_token else alone[0], row)


def test_rows_without_an_entry_are_unused(tmp_path: Path) -> None:
    """As `resize_token_embeddings(pad_to_multiple_of=64)` adds them."""
    theirs = write_bert(tmp_path / "theirs", "BertForMaskedLM", vocab_size=128)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    test_outputs_equal_hugging_face((theirs, tmp_path / "theirs", tmp_path / "ours"), TEXTS)


def test_names_of_labels_keep_their_order(models: tuple[Any, Path, Path]) -> None:
    theirs, _, ours = models
    predictor = Predictor.load(ours)
    if predictor.labels:
        assert predictor.labels == tuple(theirs.config.id2label[number] for number in range(3))
        assert predictor.labels == ("sehr schlecht", "so la la", "gut")


def test_classes_are_predicted_by_name(root: Path) -> None:
    model = write_bert(root / "named", "BertForSequenceClassification", **LABELS)
    import_model(root / "named", root / "named, ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(root / "named")
    _, logits = their_outputs(model, tokenizer, PAIRS)
    predictions = Predictor.load(root / "named, ours").predict(PAIRS)
    for prediction, probabilities in zip(predictions, logits.softmax(1).tolist(), strict=True):
        named = dict(zip(("sehr schlecht", "so la la", "gut"), probabilities, strict=True))
        assert prediction.as_json()["probabilities"] == pytest.approx(named, abs=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_the_native_engine_has_the_outputs_of_transformers(activation: str, tmp_path: Path) -> None:
    model = write_bert(tmp_path / "theirs", "BertForSequenceClassification", hidden_act=activation)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    predictor = Predictor.load(tmp_path / "ours", "cpu", engine="native")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states, logits = model.bert(**encoded).last_hidden_state, model(**encoded).logits
    mask = encoded["attention_mask"][:, :, None]
    means = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    np.testing.assert_allclose(predictor.vectors(TEXTS), means, rtol=1e-4, atol=1e-5)
    for one, expected in zip(predictor.predict(TEXTS), logits.softmax(1).tolist(), strict=True):
        assert list(one.as_json()["probabilities"].values()) == pytest.approx(expected, rel=1e-4)


def test_a_round_trip_changes_nothing(models: tuple[Any, Path, Path], tmp_path: Path) -> None:
    _, folder, ours = models
    export(ours, tmp_path / "out", "bert")
    import_model(tmp_path / "out", tmp_path / "again")
    for name in ("config.yaml", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (ours / name).read_bytes()
    one, other = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


def test_hugging_face_loads_the_export(models: tuple[Any, Path, Path], tmp_path: Path) -> None:
    theirs, folder, ours = models
    export(ours, tmp_path / "out", "bert")
    model, report = type(theirs).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values())
    for name in ("num_labels", "id2label", "hidden_act", "layer_norm_eps", "type_vocab_size"):
        assert getattr(model.config, name) == getattr(theirs.config, name)
    one, other = (transformers.AutoTokenizer.from_pretrained(each) for each in (folder, tmp_path / "out"))
    assert one(TEXTS) == other(TEXTS)
    before, after = their_outputs(theirs, one, TEXTS), their_outputs(model.eval(), other, TEXTS)
    assert all(torch.equal(*each) for each in zip(before, after, strict=True))


@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_equal_hugging_face_on_10000_lines(root: Path, lowercase: bool) -> None:
    folder = root / f"tokens, {lowercase}"
    write_bert(folder, lowercase=lowercase)
    import_model(folder, root / f"tokens, {lowercase}, ours")
    tokenizer = loaded(root / f"tokens, {lowercase}, ours").tokenizers.source
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    lines = list(hard_lines(10_000))
    order = bert_order(tokenizer)  # type: ignore[arg-type]
    expected = theirs(lines, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.encode_batch(lines) == [[order[number] for number in row] for row in expected]
    halves = [
        (one, other if number % 3 else "")
        for number, (one, other) in enumerate(zip(lines[:300], lines[300:600], strict=True))
    ]
    pairs = theirs(*map(list, zip(*halves, strict=True)), split_special_tokens=True)
    for pair, row in zip(halves, pairs["input_ids"], strict=True):
        assert list(join_texts(tokenizer.encode_batch(pair), None).ids) == [order[number] for number in row]


def test_old_names_and_fixed_tensors_are_read(root: Path, tmp_path: Path) -> None:
    """The first files name gain and offset `gamma` and `beta`, and contain the numbers of positions."""
    write_bert(root / "old", "BertForTokenClassification", **LABELS)
    import_model(root / "old", tmp_path / "current")
    tensors = load_file(root / "old" / "model.safetensors")
    new = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    new["bert.embeddings.position_ids"] = torch.arange(64)[None]
    save_file(new, root / "old" / "model.safetensors")
    import_model(root / "old", tmp_path / "old")
    assert (tmp_path / "old" / "model.safetensors").read_bytes() == (
        tmp_path / "current" / "model.safetensors"
    ).read_bytes()


def test_scale_and_offset_of_a_regression_are_exported(root: Path, tmp_path: Path) -> None:
    write_bert(root / "scaled", "BertForSequenceClassification", num_labels=1)
    import_model(root / "scaled", tmp_path / "ours")
    config = tmp_path / "ours" / "config.yaml"
    text = config.read_text().replace("offset: 0.0", "offset: 2.5").replace("scale: 1.0", "scale: 0.75")
    config.write_text(text)
    export(tmp_path / "ours", tmp_path / "out", "bert")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    _, expected = their_outputs(model, transformers.AutoTokenizer.from_pretrained(tmp_path / "out"), TEXTS)
    found = [each.as_json()["value"] for each in Predictor.load(tmp_path / "ours").predict(TEXTS)]
    assert found == pytest.approx(expected.flatten().tolist(), abs=1e-5)


DECODER, WORDS, BIAS = (
    "cls.predictions.decoder.weight",
    "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias",
)


@pytest.mark.parametrize("names", [(WORDS,), (DECODER,), (WORDS, DECODER), (DECODER, BIAS)], ids=" and ".join)
def test_tied_weights_are_found_under_any_name(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "theirs"
    write_bert(folder, "BertForMaskedLM", seed=3)
    import_model(folder, tmp_path / "expected")
    tensors = load_file(folder / "model.safetensors")
    table, bias = tensors.pop(WORDS), tensors.pop("cls.predictions.bias")
    tensors["cls.predictions.bias" if BIAS not in names else BIAS] = bias
    tensors |= {name: table.clone() for name in names if name != BIAS}
    save_file(tensors, folder / "model.safetensors")
    import_model(folder, tmp_path / "ours")
    expected = (tmp_path / "expected" / "model.safetensors").read_bytes()
    assert (tmp_path / "ours" / "model.safetensors").read_bytes() == expected


def test_tied_weights_with_different_values_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    write_bert(folder, "BertForMaskedLM")
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, DECODER: tensors[WORDS] + 1}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=f"different values: {DECODER} and {WORDS}"):
        import_model(folder, tmp_path / "ours")
    del tensors[WORDS]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError, match=f"missing: {WORDS}"):
        import_model(folder, tmp_path / "ours")


def test_the_unused_bias_of_an_untied_model_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    write_bert(folder, "BertForMaskedLM", tie_word_embeddings=False)
    import_model(folder, tmp_path / "expected")
    tensors = load_file(folder / "model.safetensors")
    for name, other in (("changed", {BIAS: tensors[BIAS], "cls.predictions.bias": tensors[BIAS] + 1}), ("only", {})):
        rest = {key: tensor for key, tensor in tensors.items() if name == "changed" or key != BIAS}
        save_file({**rest, **other}, folder / "model.safetensors")
        import_model(folder, tmp_path / name)
        expected = (tmp_path / "expected" / "model.safetensors").read_bytes()
        assert (tmp_path / name / "model.safetensors").read_bytes() == expected


def test_pairs_continue_as_hugging_face_says(tmp_path: Path) -> None:
    """Hugging Face's first class is "continues", ours is "does not continue"."""
    model = write_bert(tmp_path / "theirs", "BertForPreTraining")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    with torch.no_grad():
        inputs = tokenizer([one for one, _ in PAIRS], [other for _, other in PAIRS], padding=True, return_tensors="pt")
        expected = model(**inputs).seq_relationship_logits
        ours = loaded(tmp_path / "ours")
        rows = [ours.tokenizers.source.encode_batch(pair) for pair in PAIRS]
        ids, mask = pad([join_texts(row, None).ids for row in rows])
        found = ours.model(ids, mask).next_sentence_logits(ids == BOS)
    assert_close(found, expected.flip(1))


def test_a_masked_model_with_the_parts_of_pre_training_keeps_them(tmp_path: Path) -> None:
    """BERT's own folders state the class BertForMaskedLM, but contain the pooler and the classifier of sentences."""
    write_bert(tmp_path / "theirs", "BertForPreTraining")
    import_model(tmp_path / "theirs", tmp_path / "expected")
    config = tmp_path / "theirs" / "config.json"
    config.write_text(config.read_text().replace("BertForPreTraining", "BertForMaskedLM"))
    import_model(tmp_path / "theirs", tmp_path / "ours")
    expected = (tmp_path / "expected" / "model.safetensors").read_bytes()
    assert (tmp_path / "ours" / "model.safetensors").read_bytes() == expected


def test_masks_are_filled(tmp_path: Path) -> None:
    model = write_bert(tmp_path / "theirs", "BertForPreTraining")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    inputs = tokenizer("the dog [MASK] over the [MASK] grass", return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).prediction_logits[0][inputs["input_ids"][0] == tokenizer.mask_token_id]
    prediction = Predictor.load(tmp_path / "ours").predict("the dog <mask> over the <mask> grass")[0].as_json()
    assert len(prediction["fills"]) == len(logits) == 2
    for fills, row in zip(prediction["fills"], logits.softmax(1), strict=True):
        best = max(number for number in row.topk(8).indices.tolist() if number not in tokenizer.all_special_ids)
        expected = {tokenizer.convert_ids_to_tokens(number): float(row[number]) for number in range(len(row))}
        for fill in fills:
            names = (fill["text"].strip(), f"##{fill['text']}")
            assert any(expected.get(name) == pytest.approx(fill["probability"], abs=1e-6) for name in names)
        assert fills[0]["probability"] >= float(row[best]) - 1e-6
