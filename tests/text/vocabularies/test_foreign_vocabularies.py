"""Vocabulary files of other tools are recognised and named in error messages."""

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Library
from tokenizers.models import BPE, WordPiece

from dragoman.base.errors import DataError, ModelError
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.vocabularies.foreign import CODES, recognise_vocabulary
from dragoman.text.vocabularies.sentencepiece import SentencePieceConfig
from dragoman.text.vocabularies.subword_nmt import SubwordNMTConfig
from dragoman.text.vocabularies.union import load_tokenizer
from dragoman.text.vocabularies.word import WordConfig

TEXT = ["the dogs sleep in the green grass", "the cats sleep"] * 3
MERGES = [("t", "h"), ("th", "e</w>"), ("s", "l"), ("sl", "e"), ("i", "n</w>")]


def piece(text: str, score: float) -> bytes:
    body = b"\n" + bytes([len(text.encode())]) + text.encode() + b"\x15" + struct.pack("<f", score)
    return b"\n" + bytes([len(body)]) + body


FILES: dict[str, tuple[bytes, str | None]] = {
    "codes 0.2": (b"#version: 0.2\n" + b"".join(f"{a} {b}\n".encode() for a, b in MERGES), CODES),
    "codes 0.1": (b"".join(f"{a} {b}\n".encode() for a, b in MERGES), CODES),
    "fastBPE": (
        b"".join(f"{a} {b} {90 - n}\n".encode() for n, (a, b) in enumerate(MERGES)),
        "codes file of fastBPE",
    ),
    "frequencies": (b"the 120\ndog@@ 31\ngrass 31\nin 7\n", "tokens with their frequencies"),
    "spm.vocab": ("<unk>\t0\n<s>\t0\n</s>\t0\n▁the\t-2.34\n▁\t-3\n".encode(), ".vocab file of SentencePiece"),
    "spm.model": (piece("<unk>", 0.0) + piece("▁the", -2.5) + piece("s", -3.0), "SentencePiece model"),
    "vocab.txt": (b"[PAD]\n[UNK]\n[CLS]\nthe\n##s\n", "BERT's vocab.txt"),
    "vocab.txt, Windows": (b"[PAD]\r\n[UNK]\r\n[CLS]\r\nthe\r\n", "BERT's vocab.txt"),
    "vocab.json": (b'{"</s>": 0, "<unk>": 1, "the": 2}', "JSON file of token ids"),
    "vocab.yml": (b'"</s>": 0\n"<unk>": 1\n"the": 2\nDogs: 3\n"\\"": 4\n', "vocabulary of Marian in YAML"),
    "merges.txt": ("#version: 0.2\nĠ t\nh e\nĠt he\n".encode(), "merges.txt of a byte-level BPE"),
    "tokenizer.json": (
        Library(WordPiece({"[UNK]": 0, "a": 1})).to_str().encode(),
        "with a model of type WordPiece",
    ),
    "gzip": (b"\x1f\x8b\x08\0" + bytes(20), "gzip archive"),
    "zip": (b"PK\x03\x04" + bytes(20), "zip archive"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "pointer of Git LFS"),
    "HTML": (b"<!doctype html>\n<html><body>404</body></html>", "web page"),
    "prose": (b"This is a text.\nIt has lines of several words each.\n", None),
    "empty": (b"", None),
    "bytes": (bytes(range(128, 256)), None),
}


@pytest.mark.parametrize("name", FILES)
def test_each_format_is_recognised(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    (tmp_path / "file").write_bytes(content)
    found = recognise_vocabulary(tmp_path / "file")
    assert found == expected if expected is None else expected in (found or "")


def test_files_that_the_tools_write_are_recognised(tmp_path: Path) -> None:
    sentencepiece = SentencePieceConfig(size=60).learn(TEXT)
    (tmp_path / "spm").write_bytes(sentencepiece.model)
    assert recognise_vocabulary(tmp_path / "spm") == "a SentencePiece model"
    for name, config in (("word", WordConfig(min_frequency=1)), ("bpe", BPEConfig(size=300))):
        tokenizer = config.learn(TEXT)
        Tokenizers(tokenizer, tokenizer).save(tmp_path / name) if (tmp_path / name).mkdir() is None else None
        assert load_tokenizer(tmp_path / name / "tokenizer.json").symbols == tokenizer.symbols
    assert recognise_vocabulary(tmp_path / "word" / "tokenizer.json") == "a dragoman tokenizer of kind word"


@pytest.mark.parametrize("name", [name for name, (_, found) in FILES.items() if found not in (None, CODES)])
def test_a_foreign_file_in_place_of_codes_is_named(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    assert expected is not None
    path = tmp_path / "codes"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"codes is .*{re.escape(expected)}.*must be a codes file of subword-nmt"):
        SubwordNMTConfig(codes=path).learn(TEXT)


def test_the_remedy_for_codes_of_fastbpe_works(tmp_path: Path) -> None:
    path = tmp_path / "fast.codes"
    path.write_bytes(FILES["fastBPE"][0])
    with pytest.raises(DataError) as caught:
        SubwordNMTConfig(codes=path).learn(TEXT)
    command = str(caught.value).split("Convert it with: ")[1]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    tokenizer = SubwordNMTConfig(codes=tmp_path / "codes.txt").learn(TEXT)
    assert tokenizer.pieces(tokenizer.encode("the sleep in")) == ["the", "sle@@", "e@@", "p", "in"]


FOREIGN = ["spm.model", "vocab.txt", "vocab.yml", "vocab.json", "tokenizer.json", "codes 0.2", "HTML"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_in_place_of_a_tokenizer_is_named(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match=rf"tokenizer.json is .*{re.escape(expected or '')}.*not a dragoman tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_a_byte_level_bpe_of_hugging_face_is_no_dragoman_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(Library(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).to_str())
    with pytest.raises(ModelError, match="Hugging Face with a model of type BPE, not a dragoman tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_a_damaged_tokenizer_is_not_taken_for_a_foreign_one(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"kind": "word", "model": {}})[:-3])
    with pytest.raises(ModelError, match="is damaged"):
        load_tokenizer(path)
