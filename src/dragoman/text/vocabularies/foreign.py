"""Recognises the vocabulary files of other tools by their contents, for error messages."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

CODES = "a codes file of subword-nmt"
FASTBPE = "a codes file of fastBPE"
SENTENCEPIECE = "a SentencePiece model"
TOKEN_LIST = "a list of tokens, such as BERT's vocab.txt"
TOKEN_IDS = "a JSON file of token ids, such as Marian's vocab.json"

_MARKS = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive, such as a model of PyTorch"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"version https://git-lfs", "a pointer of Git LFS (`git lfs pull` fetches the file)"),
    (b"<!DOCTYPE html", "a web page"),
    (b"<html", "a web page"),
)
_FEWEST_LINES, _LINES = 3, 1000
"""Numbers of lines that suffice to recognise columns, and that are read at most."""
_BYTES = 1 << 20
_YAML_ID = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s\"'].*?): [0-9]+")
_SCORE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?")
_BYTE_LEVEL_SPACE = "Ġ"


def recognise_vocabulary(path: Path) -> str | None:
    """Return a description of a vocabulary file of a known tool, such as "codes of fastBPE".

    Returns None for a file in no known format. Raises OSError for a file that cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_BYTES)
    for mark, description in _MARKS:
        if data[: len(mark)].lower() == mark.lower():
            return description
    if _is_sentencepiece_model(data):
        return SENTENCEPIECE
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4:  # the last character may be incomplete
            return None
        text = data[: error.start].decode("utf-8")
    if text.lstrip()[:1] == "{":
        return _recognise_json(path)
    lines = text.split("\n")
    if len(data) == _BYTES:
        lines.pop()
    return _recognise_lines([line.rstrip("\r") for line in lines if line.strip()][:_LINES])


def _is_sentencepiece_model(data: bytes) -> bool:
    """Return whether a file starts like the protocol buffer `ModelProto` of SentencePiece.

    It starts with a piece, which consists of its text (field 1) and its score (field 2, a 32-bit float).
    """
    if len(data) < 10 or data[0] != 0x0A or data[2] != 0x0A or data[3] >= 0x80:
        return False
    end = 4 + data[3]
    return end < len(data) and data[end] == 0x15


def _recognise_json(path: Path) -> str | None:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    model = content.get("model")
    if "kind" in content and ("model" in content or "merges" in content or "width" in content):
        return f"a dragoman tokenizer of kind {content['kind']}"
    if isinstance(model, dict) and "vocab" in model:
        return f"a tokenizer.json of Hugging Face with a model of type {model.get('type', 'unknown')}"
    if content and all(type(value) is int for value in content.values()):
        return TOKEN_IDS
    return None


def _recognise_lines(lines: list[str]) -> str | None:
    has_version = bool(lines) and lines[0].startswith("#version:")
    if has_version and any(_BYTE_LEVEL_SPACE in line for line in lines[1:]):
        return "a merges.txt of a byte-level BPE, such as GPT-2's"
    if has_version:
        return CODES
    if len(lines) < _FEWEST_LINES:
        return None
    if all(_YAML_ID.fullmatch(line) for line in lines):
        return "a vocabulary of Marian in YAML"
    columns = [line.split("\t") for line in lines]
    if all(len(each) == 2 and _SCORE.fullmatch(each[1]) for each in columns):
        return "a .vocab file of SentencePiece"
    fields = [line.split(" ") for line in lines]
    widths = {len(each) for each in fields}
    if widths == {3} and all(each[2].isdecimal() for each in fields):
        return FASTBPE
    if widths == {2} and _are_counts([each[1] for each in fields]):
        return "a list of tokens with their frequencies, such as fairseq's dict.txt or subword-nmt's vocabulary"
    if widths == {2}:
        return CODES
    return TOKEN_LIST if widths == {1} else None


def _are_counts(texts: list[str]) -> bool:
    """Return whether texts are numbers in descending order."""
    return all(map(str.isdecimal, texts)) and all(int(one) >= int(two) for one, two in pairwise(texts))
