"""Settings of generation in Hugging Face's files, and the special symbols of byte-level vocabularies."""

import json
from pathlib import Path
from typing import Any

import pytest
from gpt2_folders import vocabulary

from dragoman.base.errors import ModelError
from dragoman.decode.sampling import GenerationConfig
from dragoman.exchange.huggingface.byte_level import byte_level_order, byte_level_symbols, read_byte_level
from dragoman.exchange.huggingface.generation import (
    generation_json,
    sampling_json,
    sampling_section,
    search_section,
)
from dragoman.exchange.huggingface.gpt2.conversion import _starts_prompts

IDS = list(range(10))


def section(content: dict[str, Any], limit: int | None = 20, start: int | None = 5) -> Any:
    return search_section(content, Path("generation_config.json"), limit, IDS, start)


@pytest.mark.parametrize(
    ("content", "shortest"),
    [({}, 0), ({"min_length": 4}, 3), ({"min_new_tokens": 4}, 4), ({"min_length": 9, "min_new_tokens": 4}, 4)],
)
def test_minimum_lengths_count_the_first_symbol_or_not(content: dict[str, Any], shortest: int) -> None:
    """Hugging Face's `min_length` counts the symbol that starts an output, and `min_new_tokens` replaces it."""
    assert section(content).minimum_length == shortest


@pytest.mark.parametrize(
    ("content", "limit", "longest"),
    [
        ({}, 20, (14, 19)),
        ({}, None, (14, 2010)),
        ({"max_length": 9}, 20, (8, 8)),
        ({"max_new_tokens": 9}, 20, (9, 9)),
        ({"max_length": 9, "max_new_tokens": 3}, 20, (3, 3)),
        ({"max_length": 900}, 20, (19, 19)),
        ({"max_length": 900}, None, (899, 899)),
    ],
)
def test_maximum_lengths(content: dict[str, Any], limit: int | None, longest: tuple[int, int]) -> None:
    """Of outputs for sources of 2 and of 1,000 tokens. An export writes what an import reads again."""
    search = section(content, limit)
    assert (search.max_length(2), search.max_length(1000)) == longest
    assert section(generation_json(search, limit, IDS), limit) == search


def test_the_key_of_older_files_forces_the_first_symbol() -> None:
    """As transformers converts it."""
    old = {"force_bos_token_to_be_generated": True}
    assert section(old).force_start and not section({}).force_start
    assert section({"forced_bos_token_id": 5}) == section(old)
    with pytest.raises(ModelError, match="forced_bos_token_id is 7"):
        section({"forced_bos_token_id": 7})


def test_settings_without_a_counterpart_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    section({"num_return_sequences": 3, "num_beams": 3, "do_sample": False})
    sampling_section({"max_length": 50, "min_length": 9, "num_return_sequences": 1}, Path("file"), IDS)
    said = " ".join(capsys.readouterr().err.split())
    assert "num_return_sequences 3" in said and "max_length includes the prompt" in said and "min_length 9" in said
    assert "num_return_sequences 1" not in said


def test_greedy_generation_is_read_and_written_as_a_temperature_of_0() -> None:
    path, config = Path("generation_config.json"), GenerationConfig(temperature=0)
    assert sampling_section({"do_sample": False}, path, IDS).temperature == 0
    written = sampling_json(config, IDS)
    assert written["do_sample"] is False and not {"temperature", "top_k", "top_p"} & written.keys()
    assert sampling_section(written, path, IDS) == config


def template(*parts: str) -> dict[str, Any]:
    names = {"text": {"Sequence": {"id": "A", "type_id": 0}}, "symbol": {"SpecialToken": {"id": "<s>", "type_id": 0}}}
    return {"type": "TemplateProcessing", "single": [names[each] for each in parts]}


@pytest.mark.parametrize(
    ("processor", "starts"),
    [
        (None, False),
        ({"type": "ByteLevel"}, False),
        (template("symbol", "text"), True),
        (template("text", "symbol"), False),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, template("symbol", "text")]}, True),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, template("text", "symbol")]}, False),
    ],
)
def test_prompts_start_with_the_symbol_that_the_tokenizer_adds_before_a_text(
    tmp_path: Path, processor: dict[str, Any] | None, starts: bool
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"post_processor": processor}))
    assert _starts_prompts(tmp_path) == starts


def test_special_symbols_of_the_same_word_have_different_tags(tmp_path: Path) -> None:
    special = ("<|user|>", "[user]", "<|>|")
    vocab, merges = vocabulary(special)
    (tmp_path / "vocab.json").write_text(vocab)
    (tmp_path / "merges.txt").write_text(merges)
    added = {str(json.loads(vocab)[name]): {"content": name, "special": True} for name in (*special, "<|endoftext|>")}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    read = read_byte_level(tmp_path)
    tokenizer = read.tokenizer((None, None, "<|endoftext|>", None), len(read.ids), tmp_path)
    assert len(tokenizer.tags) == len(special) == len({*tokenizer.tags})
    symbols = byte_level_symbols(tokenizer)
    assert symbols == sorted(read.ids, key=read.ids.__getitem__) and len(byte_level_order(tokenizer)) == len(symbols)


def test_a_tokenizer_that_drops_merges_at_random_is_rejected(tmp_path: Path) -> None:
    vocab, merges = vocabulary()
    pairs = [line.split(" ") for line in merges.splitlines()[1:]]
    model = {"type": "BPE", "vocab": json.loads(vocab), "merges": pairs, "dropout": 0.1}
    splitter = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model, "pre_tokenizer": splitter}))
    with pytest.raises(ModelError, match=r"model.dropout must be None, not 0.1"):
        read_byte_level(tmp_path)
