"""Converts T5's vocabularies (`tokenizer.json`) to dragoman's tokenizers and back.

T5's decoders start with padding, whose row becomes dragoman's beginning. Dragoman's padding is a new row that is never
an input or output. All pieces keep their order, among them those that mark gaps, such as <extra_id_0>.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Library
from tokenizers.processors import TemplateProcessing

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.files import CONFIG, SPECIAL, TOKENIZER, read_json, write_json
from dragoman.exchange.huggingface.t5.architecture import T5Settings
from dragoman.exchange.huggingface.weights import original_order
from dragoman.text.symbols import EOS, PAD, SPECIAL_SYMBOLS, UNK, symbol
from dragoman.text.vocabularies.t5 import UNUSED, T5Tokenizer, t5_tokenizer

LIBRARY = "tokenizer.json"
_NAMES = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def read_vocabulary(folder: Path, settings: T5Settings) -> T5Tokenizer:
    """Return the tokenizer of a folder.

    Raises ModelError for a file that is damaged, disagrees with another file, or has unsupported settings.
    """
    path = folder / LIBRARY
    if not path.is_file():
        raise ModelError(
            f"{folder} has no {LIBRARY}: load its tokenizer with Hugging Face's AutoTokenizer, and save it with "
            "`save_pretrained`"
        )
    content, about = read_json(path), read_json(folder / TOKENIZER, optional=True)
    for name, expected in _NAMES.items():
        given = about.get(name) or expected
        given = given.get("content") if isinstance(given, dict) else given
        if given != expected:
            raise ModelError(f"{folder / TOKENIZER}: {name} must be {expected}, not {given!r}")
    pieces = _pieces(content, path)
    names = {name: number for number, (name, _) in enumerate(pieces)}
    if missing := [name for name in _NAMES.values() if name not in names]:
        raise ModelError(f"{path}: the vocabulary has no {' and no '.join(missing)}")
    for key, name in (("pad_token_id", "<pad>"), ("eos_token_id", "</s>")):
        if names[name] != getattr(settings, key):
            raise ModelError(
                f"{path} has {name} at {names[name]}, but {key} in {CONFIG} is {getattr(settings, key)}: the files are "
                "from different models"
            )
    if len(pieces) > settings.vocab_size:
        raise ModelError(
            f"{folder}: the vocabulary has {len(pieces)} entries, but the embeddings in {CONFIG} have "
            f"{settings.vocab_size} rows: the files are from different models"
        )
    lowest = min(score for _, score in pieces)
    ordinary = [piece for piece in pieces if piece[0] not in _NAMES.values()]
    if reserved := [name for name, _ in ordinary if name in SPECIAL_SYMBOLS]:
        raise ModelError(f"{path}: the vocabulary contains {reserved[0]} as an ordinary entry: it is reserved")
    ordinary += [(f" <unused{number}>", lowest) for number in range(len(pieces), settings.vocab_size)]
    pad = names["<pad>"]
    try:
        return t5_tokenizer(
            ordinary, content.get("normalizer"), content.get("pre_tokenizer"), (pad, pad, names["</s>"], names["<unk>"])
        )
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _pieces(content: dict[str, Any], path: Path) -> list[tuple[str, float]]:
    """Return the pieces with their scores, including tokens that were added after them.

    Raises ModelError unless the file is a unigram model.
    """
    model = content.get("model")
    model = model if isinstance(model, dict) else {}
    if model.get("type") != "Unigram" or model.get("byte_fallback"):
        raise ModelError(
            f"{path}: model.type must be Unigram, without byte_fallback: other tokenizers are not supported"
        )
    entries = model.get("vocab")
    if not isinstance(entries, list) or not all(isinstance(each, list) and len(each) == 2 for each in entries):
        raise ModelError(f"{path}: model.vocab must be a list of pieces and scores")
    pieces = [(str(name), float(score)) for name, score in entries]
    if model.get("unk_id") != next((number for number, (name, _) in enumerate(pieces) if name == "<unk>"), None):
        raise ModelError(f"{path}: model.unk_id must be the id of <unk>")
    for token in sorted(content.get("added_tokens") or [], key=lambda each: each.get("id", 0)):
        name, number = token.get("content"), token.get("id")
        if number == len(pieces):
            pieces.append((name, 0.0))
        elif not (isinstance(number, int) and number < len(pieces) and pieces[number][0] == name):
            raise ModelError(f"{path}: the added token {name!r} has the id {number}, which belongs to another piece")
    if len({name for name, _ in pieces}) < len(pieces):
        raise ModelError(f"{path}: the vocabulary contains an entry twice")
    return pieces


def t5_order(tokenizer: T5Tokenizer) -> list[int]:
    """Return dragoman's id for each of T5's ids."""
    return original_order(tokenizer, tokenizer.original_ids)


def write_vocabulary(folder: Path, tokenizer: T5Tokenizer) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json`.

    Tags that were added after the import, such as <bt>, follow all other pieces.
    """
    document, order = tokenizer.library_document, t5_order(tokenizer)
    tags = [symbol(tag) for tag in tokenizer.tags]
    own = [(name, score) for name, score in document["model"]["vocab"]] + [(tag, 0.0) for tag in tags]
    named = {PAD: ("<pad>", 0.0), 1: ("<pad>", 0.0), EOS: ("</s>", 0.0), UNK: ("<unk>", 0.0)}
    pieces = [named.get(number) or own[number] for number in order]
    while UNUSED.fullmatch(pieces[-1][0]):
        pieces.pop()
    names = [name for name, _ in pieces]
    document["model"] |= {"vocab": pieces, "unk_id": names.index("<unk>")}
    library = Library.from_str(json.dumps(document, ensure_ascii=False))
    end = names.index("</s>")
    library.post_processor = TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", end)]
    )
    gaps = [name for name in names if name.startswith("<extra_id_")]
    special = (*_NAMES.values(), *gaps, *tags)
    library.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    pretty = json.dumps(json.loads(library.to_str()), ensure_ascii=False, indent=1) + "\n"
    (folder / LIBRARY).write_text(pretty, encoding="utf-8")
    about = {"tokenizer_class": "T5Tokenizer", "extra_ids": len(gaps), **_NAMES}
    others = [*gaps, *tags]
    write_json(folder / TOKENIZER, {**about, **({"additional_special_tokens": others} if others else {})})
    write_json(folder / SPECIAL, _NAMES)
