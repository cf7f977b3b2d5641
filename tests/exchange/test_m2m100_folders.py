"""Hugging Face folders of M2M-100 and NLLB models, imported and exported: logits, generation, round trips, tokens."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from closeness import assert_close
from gpt2_folders import difficult_lines
from m2m100_folders import MODEL, write_m2m100
from marian_folders import WORDS
from random_folders import folder_pairs, loaded, logits_of_steps
from safetensors.torch import load_file, save_file
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

from dragoman import Translator, train
from dragoman.base.errors import ConfigError, ModelError
from dragoman.data.batches.batch import pad
from dragoman.exchange.formats import export, import_model
from dragoman.exchange.huggingface.m2m100.vocabulary import LANGUAGES, original_ids
from dragoman.text.symbols import BOS, EOS

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

VARIANTS: dict[str, dict[str, Any]] = {
    "nllb": {},
    "m2m100, unscaled, gelu": {"style": "m2m100", "scale_embedding": False, "activation_function": "gelu"},
    "nllb, uneven, silu": {"d_model": 24, "encoder_layers": 1, "decoder_layers": 3, "activation_function": "silu"},
    "m2m100, half precision": {"style": "m2m100", "dtype": torch.float16},
}
SOURCES = [[9, 4, 30, 12, 9], [7], list(range(4, 40))]
TARGETS = [[5, 6], [9, 9, 41, 11, 8, 8], list(range(4, 38))]

folders = folder_pairs(write_m2m100, VARIANTS)


def their_model(folder: Path) -> Any:
    return transformers.M2M100ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()


@torch.no_grad()
def test_logits_equal_hugging_face_at_once_and_step_by_step(folders: tuple[Path, Path]) -> None:
    theirs, ours = their_model(folders[0]), loaded(folders[1])
    reads, writes = ours.tokenizers.source, ours.tokenizers.target
    order = original_ids(writes)  # type: ignore[arg-type]
    source_language, target_language = (order.index(each.start_ids[0]) for each in (reads, writes))
    source, source_mask = pad([[source_language, *each, 2] for each in SOURCES])
    inputs, keep = pad([[2, target_language, *each] for each in TARGETS])
    expected = theirs(
        input_ids=source.masked_fill(~source_mask, 1), attention_mask=source_mask.long(), decoder_input_ids=inputs
    ).logits[keep]
    here, here_mask = pad([[*reads.start_ids, *(order[each] for each in row), EOS] for row in SOURCES])
    targets, _ = pad([[BOS, *writes.start_ids, *(order[each] for each in row)] for row in TARGETS])
    found = ours.model(here, here_mask, targets).logits()[keep]
    assert_close(found[:, order], expected)
    assert float(expected.std()) > 0.5 and len(order) == found.size(1)
    state = ours.model.decoder.start(ours.model.encode(here, here_mask))
    assert_close(logits_of_steps(ours.model.decoder, state, targets)[keep][:, order], expected)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    ("style", "languages", "engine"),
    [("nllb", ("eng_Latn", "zho_Hans"), "native"), ("m2m100", ("sw", "de"), "torch")],
)
@torch.no_grad()
def test_translations_equal_hugging_face(
    tmp_path: Path, style: str, languages: tuple[str, str], engine: str, beam: int
) -> None:
    folder, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs = write_m2m100(folder, style, seed=3, scale_embedding=False)
    import_model(folder, ours, source_language=languages[0], target_language=languages[1], quiet=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang=languages[0], tgt_lang=languages[1])
    translator = Translator.load(ours, "cpu", engine, "float32")
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS["source"].split(), k=1 + number % 6)) for number in range(50)]
    writes = translator.tokenizers.target
    order = original_ids(writes)  # type: ignore[arg-type]
    start = order.index(writes.start_ids[0])
    never = [0, 1, 3, *(order.index(number) for number in writes.tag_ids(writes.tags))]
    longest = 14
    search = {"length_factor": 0.0, "length_margin": longest, "length_penalty": "mean", "beam": beam}
    found = translator.translate_nbest(texts, translator.request(search=search, divide=False))
    outputs = theirs.generate(
        **tokenizer(texts, return_tensors="pt", padding=True),
        num_beams=beam,
        max_length=longest + 1,
        decoder_input_ids=torch.tensor([[2, start]] * len(texts)),
        suppress_tokens=never,
        early_stopping="never" if beam > 1 else False,
    )
    for translations, output in zip(found, outputs.tolist(), strict=True):
        ids = [order.index(number) for number in translations[0].ids]
        assert ids == output[1 : output.index(2, 1) if 2 in output[1:] else None] and ids[0] == start
    assert len({each[0].text for each in found}) > 5


def test_the_round_trip_is_exact(folders: tuple[Path, Path], tmp_path: Path) -> None:
    theirs, ours = folders
    export(ours, tmp_path / "out", "huggingface", quiet=True)
    import_model(tmp_path / "out", tmp_path / "again", quiet=True)
    for path in ours.iterdir():
        if path.name not in ("meta.json", "README.md"):
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    before, after = (load_file(folder / "model.safetensors") for folder in (theirs, tmp_path / "out"))
    assert before.keys() == after.keys()
    for name in before:
        assert torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype, name
    model, report = type(their_model(theirs)).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values())
    original = transformers.M2M100Config.from_pretrained(theirs)
    for name in ("decoder_start_token_id", "activation_function", "scale_embedding", "dropout", "eos_token_id"):
        assert getattr(model.config, name) == getattr(original, name)
    one, other = (transformers.AutoTokenizer.from_pretrained(each) for each in (theirs, tmp_path / "out"))
    texts = list(difficult_lines(200))
    for sides in ({"text": texts}, {"text_target": texts}):
        assert one(**sides)["input_ids"] == other(**sides)["input_ids"]
    assert model.generation_config.forced_bos_token_id == one(text_target="")["input_ids"][0]


@pytest.mark.parametrize("style", ["nllb", "m2m100"])
def test_tokens_equal_hugging_face(tmp_path: Path, style: str) -> None:
    write_m2m100(tmp_path / "theirs", style)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    both, texts = loaded(tmp_path / "ours").tokenizers, [">>de<< the dog", "", *difficult_lines(300)]
    order = original_ids(both.target)  # type: ignore[arg-type]
    space = theirs.convert_tokens_to_ids("▁")
    for tokenizer, side in ((both.source, "text"), (both.target, "text_target")):
        expected = theirs(**{side: texts}, split_special_tokens=True)["input_ids"]
        for text, ids, row in zip(texts, tokenizer.encode_batch(texts), expected, strict=True):
            if style == "nllb" and row[-2] == space:  # the conversion keeps a final space, which SentencePiece removes
                del row[-2]
            assert [*ids, EOS] == [order[each] for each in row], text
            assert len(tokenizer.words(text)[0]) == len(tokenizer.spans(text)) == len(ids)


def test_the_languages_are_those_of_hugging_face() -> None:
    assert {name: list(codes) for name, codes in LANGUAGES.items()} == FAIRSEQ_LANGUAGE_CODES


def test_languages_are_chosen_by_any_code(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    write_m2m100(folder)
    import_model(folder, tmp_path / "a", source_language="en", target_language="zh-TW", quiet=True)
    found = loaded(tmp_path / "a")
    assert (found.meta.source_language, found.meta.target_language) == ("en", "zh-Hant")
    assert found.tokenizers.source.start == ("eng_Latn",) and found.tokenizers.target.start == ("zho_Hant",)
    assert not found.meta.whole_texts
    with pytest.raises(ConfigError, match="--from xx: the model has no such language. It has deu_Latn, eng_Latn"):
        import_model(folder, tmp_path / "b", source_language="xx", target_language="de", quiet=True)
    about = folder / "tokenizer_config.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "tgt_lang": None}))
    with pytest.raises(ConfigError, match="between 5 languages: choose two of them with --from and --to"):
        import_model(folder, tmp_path / "b", target_language="de", quiet=True)
    assert not (tmp_path / "b").exists()


def test_further_training_learns_and_keeps_the_languages(tmp_path: Path) -> None:
    write_m2m100(tmp_path / "theirs", seed=3)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    pairs = {"the dog": "der Hund", "a cat": "ein Mann", "and a man": "Haus"}
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs.items()))
    corpus = {"pairs": str(tmp_path / "pairs.tsv")}
    schedule = {"kind": "constant", "peak": 0.01, "warmup": 1}
    machine = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}}
    recipe = {
        "data": {"train": corpus, "valid": corpus},
        "train": {"start": str(tmp_path / "ours"), "max_steps": 60, "schedule": schedule, **machine},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    assert Translator.load(tmp_path / "run", "cpu").translate(list(pairs)) == list(pairs.values())
    export(tmp_path / "run", tmp_path / "out", "huggingface", quiet=True)
    model, tokenizer = their_model(tmp_path / "out"), transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    outputs = model.generate(**tokenizer(list(pairs), return_tensors="pt", padding=True), max_length=12)
    assert tokenizer.batch_decode(outputs, skip_special_tokens=True) == list(pairs.values())


def _edited(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_damage_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"

    def refused(match: str, style: str = "nllb", **changes: dict[str, Any]) -> None:
        for name, values in changes.items():
            _edited(folder, f"{name}.json", **values)
        with pytest.raises(ModelError, match=match):
            import_model(folder, tmp_path / "out", quiet=True)
        assert not (tmp_path / "out").exists()
        write_m2m100(folder, style)

    write_m2m100(folder)
    refused("tie_word_embeddings", config={"tie_word_embeddings": False})
    refused("decoder_start_token_id is 0", config={"decoder_start_token_id": 0})
    refused("legacy_behaviour is true", tokenizer_config={"legacy_behaviour": True})
    refused("bos_token_id in config.json is 2", config={"bos_token_id": 2})
    refused("does not state the ids of its languages", tokenizer_config={"added_tokens_decoder": {}})
    refused("rows: the files are from different models", config={"vocab_size": 50}, style="m2m100")
    refused("language_codes must be m2m100 or wmt21", tokenizer_config={"language_codes": "x"}, style="m2m100")
    refused("vocab.json must map entries to all integers", vocab={"more": 5})
    (folder / "vocab.json").unlink()
    (folder / MODEL).write_bytes(b"x")
    refused("is damaged: not a SentencePiece model")
    (folder / MODEL).unlink()
    refused("cannot read")


def test_computed_positions_in_a_file_are_checked(tmp_path: Path) -> None:
    model = write_m2m100(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    tensors, table = load_file(path), model.model.encoder.embed_positions.weights
    name = "model.encoder.embed_positions.weights"
    save_file({**tensors, name: table.clone()}, path)
    import_model(tmp_path / "theirs", tmp_path / "ours", quiet=True)
    save_file({**tensors, name: table.roll(1, 0).contiguous()}, path)
    with pytest.raises(ModelError, match="positions that are not the sines and cosines"):
        import_model(tmp_path / "theirs", tmp_path / "again", quiet=True)


def test_the_vocabulary_of_a_fast_tokenizer_is_read(tmp_path: Path) -> None:
    """The folders on the Hub have `tokenizer.json`, whose ids count."""
    folder = tmp_path / "theirs"
    write_m2m100(folder)
    import_model(folder, tmp_path / "ours", quiet=True)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    about = json.loads((folder / "tokenizer_config.json").read_text())
    about.pop("added_tokens_decoder", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    import_model(folder, tmp_path / "again", quiet=True)
    for path in (tmp_path / "ours").glob("tokenizer*"):
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
