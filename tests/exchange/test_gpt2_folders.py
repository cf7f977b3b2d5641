"""Hugging Face folders of GPT-2 models, imported and exported: logits, generation, round trips, tokens."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from bert_folders import WORDS
from closeness import assert_close
from gpt2_folders import difficult_lines, write_gpt2
from random_folders import folder_pairs, loaded, logits_of_steps, round_trip
from safetensors.torch import load_file, save_file

from dragoman import LanguageModel
from dragoman.base.errors import ModelError
from dragoman.exchange.formats import import_model
from dragoman.exchange.huggingface.byte_level import byte_level_order
from dragoman.text.symbols import BOS, PAD, UNK

transformers = pytest.importorskip("transformers")

VARIANTS: dict[str, dict[str, Any]] = {
    "gelu_new": {},
    "untied, relu, narrow": {"tie_word_embeddings": False, "activation_function": "relu", "n_inner": 20},
    "gelu, odd width, unused rows": {
        "activation_function": "gelu",
        "n_embd": 15,
        "n_head": 3,
        "vocab_size": 420,
        "layer_norm_epsilon": 1e-3,
    },
    "half precision": {"dtype": torch.float16},
}


folders = folder_pairs(write_gpt2, VARIANTS)


def their_model(folder: Path) -> Any:
    return transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()


def texts(count: int, size: int, seed: int = 1) -> list[list[int]]:
    """Random texts of different lengths, as ids of Hugging Face without the end."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(0, size - 1, (1 + number % 9,), generator=draw).tolist() for number in range(count)]


@torch.no_grad()
def test_logits_equal_hugging_face_at_once_and_step_by_step(folders: tuple[Path, Path]) -> None:
    theirs, ours = their_model(folders[0]), loaded(folders[1])
    order, end = byte_level_order(ours.tokenizers.target), theirs.config.eos_token_id  # type: ignore[arg-type]
    for text in texts(6, end + 1):
        expected = theirs(torch.tensor([[end, *text]])).logits[0]
        inputs = torch.tensor([[BOS, *(order[number] for number in text)]])
        found = ours.model(inputs).logits()[0]
        assert_close(found[:, order], expected)
        assert float(found.softmax(-1)[:, [PAD, BOS, UNK]].max()) == 0
        steps = logits_of_steps(ours.model.decoder, ours.model.decoder.start(None), inputs)[0]
        assert_close(steps[:, order], expected)
    assert float(expected.std()) > 0.5


@torch.no_grad()
def test_greedy_continuations_equal_hugging_face(tmp_path: Path) -> None:
    folder, ours = tmp_path / "greedy", tmp_path / "greedy, ours"
    theirs = write_gpt2(folder, seed=5, tie_word_embeddings=False)
    import_model(folder, ours, quiet=True)
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(folder), LanguageModel.load(ours, "cpu")
    draw = random.Random(1)
    prompts = ["", " the", *(" ".join(draw.choices(WORDS, k=1 + number % 6)) for number in range(48))]
    found = model.generate(prompts, top_k=1, max_tokens=12)
    end = theirs.config.eos_token_id
    starts = [ids or [end] for ids in tokenizer(prompts)["input_ids"]]
    longest = max(map(len, starts))
    rows = torch.tensor([[end] * (longest - len(ids)) + ids for ids in starts])
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in starts])
    outputs = theirs.generate(rows, attention_mask=mask, do_sample=False, max_new_tokens=12, pad_token_id=end)
    for continuation, output in zip(found, outputs[:, longest:], strict=True):
        assert continuation == tokenizer.decode(output, skip_special_tokens=True)
    assert len(set(found)) > 25


def test_the_round_trip_is_exact(folders: tuple[Path, Path], tmp_path: Path) -> None:
    theirs, ours = folders
    before, after = round_trip(theirs, ours, tmp_path)
    assert all(torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype for name in before)
    model, report = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values())
    original = transformers.GPT2Config.from_pretrained(theirs)
    for name in ("bos_token_id", "eos_token_id", "activation_function", "layer_norm_epsilon", "resid_pdrop", "n_head"):
        assert getattr(model.config, name) == getattr(original, name)
    one, other = (transformers.AutoTokenizer.from_pretrained(each) for each in (theirs, tmp_path / "out"))
    lines = list(difficult_lines(200))
    assert one(lines)["input_ids"] == other(lines)["input_ids"]
    assert (one.bos_token, one.eos_token, one.unk_token) == (other.bos_token, other.eos_token, other.unk_token)


def test_tokens_equal_hugging_face_on_many_lines(tmp_path: Path) -> None:
    folder, ours = tmp_path / "tokens", tmp_path / "tokens, ours"
    write_gpt2(folder)
    import_model(folder, ours, quiet=True)
    tokenizer = loaded(ours).tokenizers.target
    theirs, lines = transformers.AutoTokenizer.from_pretrained(folder), list(difficult_lines(2_000))
    order = byte_level_order(tokenizer)  # type: ignore[arg-type]
    expected = theirs(lines, split_special_tokens=True)["input_ids"]
    assert tokenizer.encode_batch(lines) == [[order[number] for number in row] for row in expected]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(lines[:500])] == lines[:500]
    import_without_library(folder, tmp_path, ours)


def import_without_library(folder: Path, tmp_path: Path, ours: Path) -> None:
    """The first files of GPT-2 have no `tokenizer.json`, and the result is the same."""
    (folder / "tokenizer.json").unlink()
    import_model(folder, tmp_path / "tokens, first files", quiet=True)
    assert (tmp_path / "tokens, first files" / "tokenizer.json").read_bytes() == (ours / "tokenizer.json").read_bytes()


def test_first_names_and_constants_are_read_and_the_tied_table_in_either_place(tmp_path: Path) -> None:
    """The first files have no prefix, and contain the causal mask of each layer."""
    write_gpt2(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
    tensors["h.1.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors.pop("wte.weight")
    save_file(tensors, path)
    import_model(tmp_path / "theirs", tmp_path / "again", quiet=True)
    parameters = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("ours", "again")]
    assert parameters[0] == parameters[1]
    save_file({**tensors, "h.0.attn.bias": torch.ones(1, 1, 32, 32), "h.2.ln_1.weight": torch.ones(32)}, path)
    with pytest.raises(ModelError) as error:
        import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    assert "unsupported values: transformer.h.0.attn.bias" in str(error.value)
    assert "unknown: transformer.h.2.ln_1.weight (32,)" in str(error.value)
    save_file({**tensors, "wte.weight": tensors["lm_head.weight"] + 1}, path)
    with pytest.raises(ModelError, match="different values: lm_head.weight and transformer.wte.weight"):
        import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    assert not (tmp_path / "third").exists()


def test_a_folder_that_does_not_name_the_end_of_texts(tmp_path: Path) -> None:
    """As folders of only `vocab.json` and `merges.txt`: `<|endoftext|>` is the default of GPT-2's tokenizer."""
    folder = tmp_path / "theirs"
    write_gpt2(folder, vocab_size=420)
    import_model(folder, tmp_path / "named", quiet=True)
    for name in ("tokenizer.json", "special_tokens_map.json", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    import_model(folder, tmp_path / "unnamed", quiet=True)
    named, unnamed = ((tmp_path / name / "tokenizer.json").read_bytes() for name in ("named", "unnamed"))
    assert unnamed == named
