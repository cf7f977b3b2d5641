"""Hugging Face folders of T5 models, imported and exported: logits, generation, round trips, tokens."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from bert_folders import WORDS
from closeness import assert_close
from gpt2_folders import difficult_lines
from random_folders import folder_pairs, loaded, logits_of_steps, round_trip
from safetensors.torch import load_file, save_file
from t5_folders import pieces, untie, write_t5

from dragoman import Translator, train
from dragoman.base.errors import ModelError
from dragoman.data.batches.batch import pad
from dragoman.exchange.formats import export, import_model
from dragoman.exchange.huggingface.t5.vocabulary import t5_order
from dragoman.text.symbols import BOS, EOS, PAD

transformers = pytest.importorskip("transformers")

VARIANTS: dict[str, dict[str, Any]] = {
    "relu": {},
    "gated gelu, untied": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "gated silu, unused rows, few buckets": {
        "feed_forward_proj": "gated-silu",
        "unused": 9,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 12,
        "layer_norm_epsilon": 1e-3,
    },
    "half precision": {"dtype": torch.float16},
}
SOURCES = [[9, 4, 30, 12, 9], [7], [3 + number % 50 for number in range(170)]]
TARGETS = [[5, 6], [9, 9, 41, 11, 8, 8], list(range(3, 50))]


def write_variant(folder: Path, **changes: Any) -> None:
    """Write a folder. An untied projection has a table of its own."""
    write_t5(folder, **changes)
    if not changes.get("tie_word_embeddings", True):
        untie(folder)


folders = folder_pairs(write_variant, VARIANTS)


def their_model(folder: Path) -> Any:
    """Hugging Face's model, in float32. A projection of its own is separated by hand, where the library ties it."""
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    tensors = load_file(folder / "model.safetensors")
    if "lm_head.weight" in tensors:
        model.lm_head.weight = torch.nn.Parameter(tensors["lm_head.weight"].float())
        assert torch.equal(model.shared.weight, tensors["shared.weight"].float())
    return model


@torch.no_grad()
def test_logits_equal_hugging_face_at_once_and_step_by_step(folders: tuple[Path, Path]) -> None:
    theirs, ours = their_model(folders[0]), loaded(folders[1])
    order = t5_order(ours.tokenizers.target)  # type: ignore[arg-type]
    source, source_mask = pad([[*each, 1] for each in SOURCES])
    inputs, keep = pad([[0, *each] for each in TARGETS])
    expected = theirs(
        input_ids=source.masked_fill(~source_mask, 0), attention_mask=source_mask.long(), decoder_input_ids=inputs
    ).logits[keep]
    here, here_mask = pad([[*(order[each] for each in row), EOS] for row in SOURCES])
    targets, _ = pad([[BOS, *(order[each] for each in row)] for row in TARGETS])
    found = ours.model(here, here_mask, targets).logits()[keep]
    assert_close(found[:, order], expected)
    assert float(found.softmax(-1)[:, PAD].max()) == 0
    assert float(expected.std()) > 0.3
    state = ours.model.decoder.start(ours.model.encode(here, here_mask))
    steps = logits_of_steps(ours.model.decoder, state, targets)
    assert_close(steps[keep][:, order], expected)


@torch.no_grad()
def test_translations_equal_hugging_face(tmp_path: Path) -> None:
    folder, ours = tmp_path / "greedy", tmp_path / "greedy, ours"
    write_t5(folder, seed=3, tie_word_embeddings=False)
    untie(folder)
    import_model(folder, ours, quiet=True)
    theirs, translator = their_model(folder), Translator.load(ours, "cpu")
    tokenizer, draw = transformers.AutoTokenizer.from_pretrained(folder), random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=1 + number % 6)) for number in range(50)]
    search = {"length_factor": 0.0, "length_margin": 12, "beam": 1}
    found = translator.translate_nbest(texts, translator.request(search=search))
    order = t5_order(translator.tokenizers.target)  # type: ignore[arg-type]
    outputs = theirs.generate(**tokenizer(texts, return_tensors="pt", padding=True), max_length=13, suppress_tokens=[2])
    for translations, output in zip(found, outputs.tolist(), strict=True):
        expected = output[1 : output.index(1) if 1 in output else None]
        assert [order.index(number) for number in translations[0].ids] == expected
        text = tokenizer.decode(expected, skip_special_tokens=False)
        assert translations[0].text.split() == text.split()
    assert len({each[0].text for each in found}) > 20


@pytest.mark.parametrize(
    ("generation", "longest"),
    [
        ({}, (14, 2010)),
        ({"max_length": 9}, (8, 8)),
        ({"max_length": 900}, (899, 899)),
        ({"max_new_tokens": 900}, (900, 900)),
    ],
)
def test_the_number_of_steps_follows_the_source_or_the_folder(
    tmp_path: Path, generation: dict[str, Any], longest: tuple[int, int]
) -> None:
    """Without a maximum length in the folder, that of our own models applies: 2 n + 10 tokens, with the end symbols."""
    folder, ours = tmp_path / "theirs", tmp_path / "ours"
    write_t5(folder)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **generation}))
    import_model(folder, ours, quiet=True)
    search = Translator.load(ours, "cpu").search_config()
    assert tuple(search.max_length(tokens) for tokens in (2, 1000)) == longest
    export(ours, tmp_path / "out", "t5", quiet=True)
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert written.get("max_length") == (longest[0] + 1 if generation else None)


@pytest.mark.slow
def test_tags_of_further_training_are_exported_as_special_tokens(tmp_path: Path) -> None:
    write_t5(tmp_path / "theirs", unused=3)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    (tmp_path / "pairs.tsv").write_text("the sea\ta day\nevery stone\tthe sea\n")
    corpus = {"pairs": str(tmp_path / "pairs.tsv")}
    machine = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}}
    recipe = {
        "data": {"train": [{**corpus, "tags": ["bt"]}], "valid": corpus},
        "train": {"start": str(tmp_path / "ours"), "max_steps": 1, **machine},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    export(tmp_path / "run", tmp_path / "out", "t5", quiet=True)
    theirs = their_model(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = loaded(tmp_path / "run")
    ids = tokenizer("<bt>the sea")["input_ids"]
    order = t5_order(ours.tokenizers.source)  # type: ignore[arg-type]
    source = ours.tokenizers.source
    expected = [*source.tag_ids(["bt"]), *source.encode("the sea"), EOS]
    assert [order[each] for each in ids] == expected
    with torch.no_grad():
        here = ours.model(torch.tensor([expected]), torch.ones(1, len(ids), dtype=torch.bool), torch.tensor([[BOS]]))
        there = theirs(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]])).logits
    assert_close(here.logits()[0, :, order], there[0])


def test_files_that_disagree_on_the_first_symbol_are_rejected(tmp_path: Path) -> None:
    write_t5(tmp_path / "theirs")
    path = tmp_path / "theirs" / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "decoder_start_token_id": 7}))
    with pytest.raises(ModelError, match=r"decoder_start_token_id 7, but .*config.json has 0: the files disagree"):
        import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)


def test_the_round_trip_is_exact(folders: tuple[Path, Path], tmp_path: Path) -> None:
    theirs, ours = folders
    before, after = round_trip(theirs, ours, tmp_path)
    for name in before:
        assert torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype, name
    one, other = (transformers.T5Config.from_pretrained(each) for each in (theirs, tmp_path / "out"))
    for name in ("scale_decoder_outputs", "feed_forward_proj", "d_kv", "decoder_start_token_id", "dropout_rate"):
        assert getattr(one, name) == getattr(other, name)
    tokenizers = [transformers.AutoTokenizer.from_pretrained(each) for each in (theirs, tmp_path / "out")]
    lines = list(difficult_lines(200))
    assert tokenizers[0](lines)["input_ids"] == tokenizers[1](lines)["input_ids"]


def test_tokens_equal_hugging_face_on_many_lines(tmp_path: Path) -> None:
    """Hugging Face reads special symbols in a text, and dragoman does not."""
    folder, ours = tmp_path / "tokens", tmp_path / "tokens, ours"
    write_t5(folder)
    import_model(folder, ours, quiet=True)
    tokenizer = loaded(ours).tokenizers.source
    theirs, order = transformers.AutoTokenizer.from_pretrained(folder), t5_order(tokenizer)  # type: ignore[arg-type]
    lines = list(difficult_lines(2_000))
    special = [any(name in line for name in ("</s>", "<pad>", "<unk>")) for line in lines]
    expected = theirs(lines, split_special_tokens=True)["input_ids"]
    found = [[*ids, EOS] for ids in tokenizer.encode_batch(lines)]
    for line, ids, row, is_special in zip(lines, found, expected, special, strict=True):
        assert is_special or ids == [order[each] for each in row], line
        assert EOS not in ids[:-1] and PAD not in ids and BOS not in ids
    assert not all(special)
    for line in lines[:100]:
        indices, words = tokenizer.words(line)
        assert len(indices) == len(tokenizer.spans(line)) == len(tokenizer.encode(line))
        assert "".join(words) == line or not indices


def test_the_table_is_read_in_whichever_place_the_file_holds_it(tmp_path: Path) -> None:
    write_t5(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(path)
    shared = tensors.pop("shared.weight")
    for number, name in enumerate(("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")):
        save_file({**tensors, name: shared}, path)
        import_model(tmp_path / "theirs", tmp_path / f"again {number}", quiet=True)
        parameters = [(tmp_path / each / "model.safetensors").read_bytes() for each in ("ours", f"again {number}")]
        assert parameters[0] == parameters[1]
    save_file({**tensors, "shared.weight": shared, "lm_head.weight": shared + 1}, path)
    with pytest.raises(ModelError, match="different values: lm_head.weight and shared.weight"):
        import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    del tensors["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    save_file({**tensors, "shared.weight": shared, "extra": torch.ones(2)}, path)
    with pytest.raises(ModelError) as error:
        import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    for line in ("missing: encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "unknown: extra"):
        assert line in str(error.value)
    assert not (tmp_path / "third").exists()


@torch.no_grad()
def test_the_output_of_the_feed_forward_network_exceeds_float16_without_overflow(tmp_path: Path) -> None:
    """Text of 512 tokens whose states exceed 65,504, the largest number of float16."""
    folder, ours = tmp_path / "float16", tmp_path / "float16, ours"
    write_t5(folder)
    torch.manual_seed(1)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({name: 1e5 * each if name.endswith("wo.weight") else each for name, each in tensors.items()}, path)
    import_model(folder, ours, quiet=True)
    model, tokens = loaded(ours).model, torch.randint(4, len(pieces()), (1, 512))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    expected = model(tokens, mask, tokens[:, :20]).logits()
    largest = model.encoder.layers[0].feedforward(torch.randn(9, 32)).abs().max()
    assert float(largest) > 65_504
    with torch.autocast("cpu", dtype=torch.float16):
        found = model(tokens, mask, tokens[:, :20]).logits()
    assert torch.isfinite(found).all()
    assert float((found - expected).abs().max()) < 0.05 * float(expected.abs().max())
