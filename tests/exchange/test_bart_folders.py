"""Hugging Face folders of BART models, imported and exported: logits, generation, round trips, tokens."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from bart_folders import write_bart
from bert_folders import WORDS
from closeness import assert_close
from gpt2_folders import difficult_lines
from random_folders import folder_pairs, loaded, logits_of_steps, round_trip
from safetensors.torch import load_file, save_file

from dragoman import Translator, train
from dragoman.base.errors import ModelError
from dragoman.data.batches.batch import pad
from dragoman.exchange.formats import import_model
from dragoman.exchange.huggingface.byte_level import byte_level_order
from dragoman.text.symbols import BOS, EOS

transformers = pytest.importorskip("transformers")

VARIANTS: dict[str, dict[str, Any]] = {
    "gelu, a bias": {},
    "scaled, gelu_new, no bias": {"scale_embedding": True, "activation_function": "gelu_new", "bias": False},
    "untied, odd width, unused rows": {
        "tie_word_embeddings": False,
        "d_model": 15,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 5,
        "vocab_size": 420,
    },
    "half precision": {"dtype": torch.float16, "activation_function": "relu"},
}
SOURCES = [[9, 4, 30, 12, 9], [7], list(range(4, 40))]
TARGETS = [[5, 6], [9, 9, 41, 11, 8, 8], list(range(4, 38))]


folders = folder_pairs(write_bart, VARIANTS)


def their_model(folder: Path) -> Any:
    return transformers.BartForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()


@torch.no_grad()
def test_logits_equal_hugging_face_at_once_and_step_by_step(folders: tuple[Path, Path]) -> None:
    theirs, ours = their_model(folders[0]), loaded(folders[1])
    order = byte_level_order(ours.tokenizers.target)  # type: ignore[arg-type]
    source, source_mask = pad([[0, *each, 2] for each in SOURCES])
    inputs, keep = pad([[2, 0, *each] for each in TARGETS])
    expected = theirs(
        input_ids=source.masked_fill(~source_mask, 1), attention_mask=source_mask.long(), decoder_input_ids=inputs
    ).logits[keep]
    start = ours.tokenizers.target.start_ids
    here, here_mask = pad([[*start, *(order[each] for each in row), EOS] for row in SOURCES])
    targets, _ = pad([[BOS, *start, *(order[each] for each in row)] for row in TARGETS])
    found = ours.model(here, here_mask, targets).logits()[keep]
    assert_close(found[:, order], expected)
    assert float(found.softmax(-1)[:, BOS].max()) == 0
    assert float(expected.std()) > 0.5
    state = ours.model.decoder.start(ours.model.encode(here, here_mask))
    steps = logits_of_steps(ours.model.decoder, state, targets)
    assert_close(steps[keep][:, order], expected)


@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("beam", [1, 4])
@torch.no_grad()
def test_translations_equal_hugging_face(tmp_path: Path, forced: bool, beam: int) -> None:
    folder, ours = tmp_path / f"{forced} {beam}", tmp_path / f"{forced} {beam}, ours"
    theirs = write_bart(folder, seed=3, forced=forced, tie_word_embeddings=False)
    import_model(folder, ours, quiet=True)
    tokenizer, translator = transformers.AutoTokenizer.from_pretrained(folder), Translator.load(ours, "cpu")
    draw = random.Random(1)
    count = 50 if beam == 1 and forced else 10
    texts = [" ".join(draw.choices(WORDS, k=1 + number % 6)) for number in range(count)]
    never = [1, 3, len(tokenizer) - 1]  # padding, unknown and mask, which dragoman never generates
    longest = 14
    search = {"length_factor": 0.0, "length_margin": longest, "length_penalty": "mean", "beam": beam}
    found = translator.translate_nbest(texts, translator.request(search=search))
    order = byte_level_order(translator.tokenizers.target)  # type: ignore[arg-type]
    outputs = theirs.generate(
        **tokenizer(texts, return_tensors="pt", padding=True),
        num_beams=beam,
        max_length=longest + 1,
        forced_eos_token_id=None,
        suppress_tokens=never,
        early_stopping="never" if beam > 1 else False,
    )
    for translations, output in zip(found, outputs.tolist(), strict=True):
        ids = [order.index(number) for number in translations[0].ids]
        assert ids == output[1 : output.index(2, 1) if 2 in output[1:] else None]
        assert not forced or ids[0] == 0
    assert len({each[0].text for each in found}) > len(texts) // 3


def test_further_training_learns_the_first_word(tmp_path: Path) -> None:
    """The symbols that start an output do not hide its first word from the loss (fairseq, issue 2209)."""
    write_bart(tmp_path / "theirs", seed=3, forced=True)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    pairs = {"the sea": "a day", "every stone": "stone a", "and a day": "sea day"}
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs.items()))
    corpus = {"pairs": str(tmp_path / "pairs.tsv")}
    schedule = {"kind": "constant", "peak": 0.01, "warmup": 1}
    machine = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}}
    recipe = {
        "data": {"train": corpus, "valid": corpus},
        "train": {"start": str(tmp_path / "ours"), "max_steps": 40, "schedule": schedule, **machine},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    assert Translator.load(tmp_path / "run", "cpu").translate(list(pairs)) == list(pairs.values())


def test_the_round_trip_is_exact(folders: tuple[Path, Path], tmp_path: Path) -> None:
    theirs, ours = folders
    before, after = round_trip(theirs, ours, tmp_path)
    unused = {"model.shared.weight"} if "lm_head.weight" in before else set()
    for name in before.keys() - unused:
        first = 2 if "embed_positions" in name else 0  # the first two rows are not used
        assert torch.equal(before[name][first:], after[name][first:]) and before[name].dtype == after[name].dtype, name
    model, report = type(their_model(theirs)).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values())
    original = transformers.BartConfig.from_pretrained(theirs)
    for name in ("decoder_start_token_id", "activation_function", "scale_embedding", "dropout", "eos_token_id"):
        assert getattr(model.config, name) == getattr(original, name)
    assert model.generation_config.forced_bos_token_id == 0
    one, other = (transformers.AutoTokenizer.from_pretrained(each) for each in (theirs, tmp_path / "out"))
    lines = list(difficult_lines(200))
    assert one(lines)["input_ids"] == other(lines)["input_ids"]


def test_tokens_equal_hugging_face_on_many_lines(tmp_path: Path) -> None:
    folder, ours = tmp_path / "tokens", tmp_path / "tokens, ours"
    write_bart(folder)
    import_model(folder, ours, quiet=True)
    tokenizer = loaded(ours).tokenizers.source
    theirs, lines = transformers.AutoTokenizer.from_pretrained(folder), list(difficult_lines(1_000))
    order = byte_level_order(tokenizer)  # type: ignore[arg-type]
    expected = theirs(lines, split_special_tokens=True)["input_ids"]
    assert [[*ids, EOS] for ids in tokenizer.encode_batch(lines)] == [[order[each] for each in row] for row in expected]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(lines)] == lines
    for line in lines[:50]:
        indices, words = tokenizer.words(line)
        assert len(indices) == len(tokenizer.spans(line)) == len(tokenizer.encode(line))
        assert "".join(words) == line


def test_tied_tables_are_read_from_any_place_and_settings_are_checked(tmp_path: Path) -> None:
    write_bart(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(path)
    tensors["lm_head.weight"] = tensors.pop("model.shared.weight")
    tensors["model.encoder.version"] = torch.tensor([3.0])
    save_file(tensors, path)
    import_model(tmp_path / "theirs", tmp_path / "again", quiet=True)
    parameters = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("ours", "again")]
    assert parameters[0] == parameters[1]
    save_file({**tensors, "model.extra": torch.ones(2)}, path)
    with pytest.raises(ModelError, match=r"unknown: model.extra \(2,\)"):
        import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    text = (tmp_path / "theirs" / "config.json").read_text()
    for change in ('"normalize_before": true', '"decoder_start_token_id": 0', '"bos_token_id": 5'):
        (tmp_path / "theirs" / "config.json").write_text(text.rstrip().removesuffix("}") + f", {change}}}")
        with pytest.raises(ModelError, match=change.split('"')[1]):
            import_model(tmp_path / "theirs", tmp_path / "third", quiet=True)
    assert not (tmp_path / "third").exists()
