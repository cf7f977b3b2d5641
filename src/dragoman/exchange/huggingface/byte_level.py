"""Converts the byte-level BPE vocabularies of GPT-2 and BART to dragoman's tokenizers and back.

A folder has `tokenizer.json`, or `vocab.json` and `merges.txt`. Dragoman's ids start with four special symbols and end
with tags. Special symbols that the original vocabulary lacks get new ids, and all other entries keep their order, so
the conversion back is exact.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.files import ADDED, CONFIG, SPECIAL, TOKENIZER, read_bytes, read_json, write_json
from dragoman.exchange.huggingface.weights import original_order
from dragoman.text.normalization import Normalization
from dragoman.text.pieces import byte_values
from dragoman.text.symbols import SPECIAL_SYMBOLS, check_tag, symbol
from dragoman.text.vocabularies.foreign import recognise_vocabulary
from dragoman.text.vocabularies.gpt2 import GPT2Tokenizer, gpt2_tokenizer

VOCABULARY, MERGES, LIBRARY = "vocab.json", "merges.txt", "tokenizer.json"
ROLES = ("pad_token", "bos_token", "eos_token", "unk_token")
"""Hugging Face's keys of dragoman's special symbols, in dragoman's order."""

_OTHER_ROLES = ("cls_token", "sep_token", "mask_token")
_NORMALISERS: Mapping[str | None, Normalization] = {None: "none", "NFC": "nfc", "NFKC": "nfkc"}


@dataclass(frozen=True)
class ByteLevelVocabulary:
    """The vocabulary of a folder.

    ids: ids from 0 to n−1, by symbol. merges: pairs of symbols in order. special: symbols that are never part of a
    text. roles: the symbol of each role, such as `eos_token`, in the files of the tokenizer.
    """

    ids: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    special: frozenset[str]
    roles: Mapping[str, str]
    normalization: Normalization

    def tokenizer(
        self, special: Sequence[str | None], size: int, folder: Path, names: Mapping[str, str] | None = None
    ) -> GPT2Tokenizer:
        """Return dragoman's tokenizer.

        special: the symbols of padding, beginning, end and unknown words, each None if the vocabulary has none. size:
        number of rows of the embeddings; rows without a symbol are unused entries. names: tags of some of the other
        special symbols. Raises ModelError if the vocabulary does not fit.
        """
        if len(self.ids) > size:
            raise ModelError(
                f"{folder}: the vocabulary has {len(self.ids)} entries, but the embeddings in {CONFIG} have {size} "
                "rows: the files are from different models"
            )
        others = [each for each in sorted(self.special, key=self.ids.__getitem__) if each not in special]
        tags: list[str] = []
        for each in others:
            tag = (names or {}).get(each) or _tag(each)
            tags.append(f"special-{self.ids[each]}" if tag is None or tag in tags else tag)
        fixed = {*special, *others}
        entries = [each for each in sorted(self.ids, key=self.ids.__getitem__) if each not in fixed]
        entries += [f"<unused{number}>" for number in range(len(self.ids), size)]
        if missing := [letter for letter in byte_values() if letter not in self.ids]:
            raise ModelError(
                f"{folder}: the vocabulary has no entry for {len(missing)} of the 256 bytes, so some texts cannot be "
                "represented, which is not supported"
            )
        if reserved := [name for name in SPECIAL_SYMBOLS if name in entries]:
            raise ModelError(f"{folder}: the vocabulary contains {reserved[0]} as an ordinary entry: it is reserved")
        symbols = (*special, *others)
        try:
            tokenizer = gpt2_tokenizer(
                [*SPECIAL_SYMBOLS, *entries],
                self.merges,
                [None if each is None else self.ids[each] for each in symbols],
                symbols,
            )
        except ModelError as error:
            raise ModelError(f"{folder}: {error}") from None
        return tokenizer.with_tags(tags).with_normalization(self.normalization)


def read_byte_level(folder: Path) -> ByteLevelVocabulary:
    """Read the vocabulary of a folder.

    Raises ModelError for a file that is damaged, disagrees with another file, or has unsupported settings.
    """
    about = read_json(folder / TOKENIZER, optional=True)
    library = read_json(folder / LIBRARY) if (folder / LIBRARY).is_file() else {}
    roles, added = _roles(folder, about), _added_tokens(folder, library, about)
    ids, merges, normalization = _read_library(library, folder / LIBRARY) if library else ({}, [], _NORMALISERS[None])
    if (folder / VOCABULARY).is_file() and (folder / MERGES).is_file():
        listed, listed_merges = _read_ids(read_json(folder / VOCABULARY), folder / VOCABULARY), _read_merges(folder)
        names = {_content(token) for _, token in added}
        different = [each for each in ids.items() ^ listed.items() if library and each[0] not in names]
        if different:
            raise ModelError(
                f"{folder}: {LIBRARY} and {VOCABULARY} contain different vocabularies, for example the entry "
                f"{min(different)[0]!r} with the id {min(different)[1]}: keep only the files that belong to the model"
            )
        if library and merges != listed_merges:
            raise ModelError(
                f"{folder}: {LIBRARY} and {MERGES} contain different merges: keep only the files that belong to the "
                "model"
            )
        ids, merges = ids | listed, listed_merges
    if not ids:
        raise ModelError(f"{folder} has no vocabulary: {LIBRARY}, or {VOCABULARY} and {MERGES}, is missing")
    special = set(roles.values())
    for number, token in added:
        name = _content(token)
        if isinstance(token, dict) and not token.get("special", False) and name not in roles.values():
            raise ModelError(
                f"{folder}: the token {name!r} was added to the vocabulary as ordinary text, which is not supported"
            )
        if ids.setdefault(name, number) != number:
            raise ModelError(f"{folder}: the token {name!r} has the ids {ids[name]} and {number}")
        special.add(name)
    if sorted(ids.values()) != list(range(len(ids))):
        raise ModelError(f"{folder}: the ids of the vocabulary must be 0 to {len(ids) - 1} without gaps")
    return ByteLevelVocabulary(ids, merges, frozenset(special & ids.keys()), roles, normalization)


def _added_tokens(folder: Path, library: Mapping[str, Any], about: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """Return the ids and the descriptions of the tokens that were added to the vocabulary."""
    listed, numbered = library.get("added_tokens") or [], about.get("added_tokens_decoder") or {}
    if not (
        isinstance(listed, list)
        and all(isinstance(each, dict) and type(each.get("id")) is int for each in listed)
        and isinstance(numbered, dict)
        and all(number.isdecimal() for number in numbered)
    ):
        raise ModelError(f"{folder}: the added tokens of {LIBRARY} or {TOKENIZER} are damaged: each needs an id")
    tokens = [(each["id"], each) for each in listed] + [(int(number), each) for number, each in numbered.items()]
    tokens += [(number, name) for name, number in read_json(folder / ADDED, optional=True).items()]
    if not all(isinstance(_content(token), str) for _, token in tokens):
        raise ModelError(f"{folder}: an added token of {LIBRARY}, {TOKENIZER} or {ADDED} has no text")
    return tokens


def _read_library(
    content: Mapping[str, Any], path: Path
) -> tuple[dict[str, int], list[tuple[str, str]], Normalization]:
    """Return ids, merges and normalisation of `tokenizer.json`. Raises ModelError unless it is a byte-level BPE."""
    model, normalizer, splitter = (
        part if isinstance(part := content.get(name), dict) else {} for name in ("model", "normalizer", "pre_tokenizer")
    )
    required = {
        "model.type": (model.get("type", "BPE"), "BPE"),
        "model.continuing_subword_prefix": (model.get("continuing_subword_prefix") or "", ""),
        "model.end_of_word_suffix": (model.get("end_of_word_suffix") or "", ""),
        "model.byte_fallback": (model.get("byte_fallback", False), False),
        "model.dropout": (model.get("dropout") or None, None),
        "model.ignore_merges": (model.get("ignore_merges", False), False),
        "pre_tokenizer.type": (splitter.get("type"), "ByteLevel"),
        "pre_tokenizer.add_prefix_space": (splitter.get("add_prefix_space", True), False),
        "pre_tokenizer.use_regex": (splitter.get("use_regex", True), True),
    }
    for name, (value, expected) in required.items():
        if value != expected:
            raise ModelError(f"{path}: {name} must be {expected!r}, not {value!r}: other tokenizers are not supported")
    if normalizer.get("type") not in _NORMALISERS:
        raise ModelError(f"{path}: normalizer.type must be NFC, NFKC or missing, not {normalizer.get('type')!r}")
    pairs = [each.split(" ") if isinstance(each, str) else each for each in model.get("merges") or []]
    if not all(
        isinstance(each, list) and len(each) == 2 and all(isinstance(part, str) for part in each) for each in pairs
    ):
        raise ModelError(f"{path}: model.merges must be pairs of symbols")
    merges = [(left, right) for left, right in pairs]
    return _read_ids(model.get("vocab"), path), merges, _NORMALISERS[normalizer.get("type")]


def _read_ids(content: Any, path: Path) -> dict[str, int]:
    if not isinstance(content, dict) or not all(type(number) is int for number in content.values()):
        raise ModelError(f"{path} must map each entry of the vocabulary to an integer")
    return dict(content)


def _read_merges(folder: Path) -> list[tuple[str, str]]:
    path = folder / MERGES
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not valid UTF-8: {error}") from None
    first = 1 if lines[0].startswith("#version") else 0
    merges = []
    for number, line in enumerate(lines[first:], start=first + 1):
        parts = line.removesuffix("\r").split(" ")
        if len(parts) != 2 and line.strip():
            recognised = recognise_vocabulary(path)
            file_type = f": the file is {recognised}" if recognised else ""
            raise ModelError(f"{path}, line {number}: expected two symbols{file_type}")
        if line.strip():
            merges.append((parts[0], parts[1]))
    return merges


def _roles(folder: Path, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the symbols of the roles that the files name. Raises ModelError if they disagree."""
    roles: dict[str, str] = {}
    for path, content in ((TOKENIZER, about), (SPECIAL, read_json(folder / SPECIAL, optional=True))):
        for role in (*ROLES, *_OTHER_ROLES):
            name = _content(content.get(role))
            if isinstance(name, str) and roles.setdefault(role, name) != name:
                raise ModelError(f"{folder / path}: {role} is {name!r}, but {TOKENIZER} has {roles[role]!r}")
    if about.get("add_prefix_space"):
        raise ModelError(f"{folder / TOKENIZER}: add_prefix_space=true is not supported")
    return roles


def _content(token: Any) -> Any:
    """Return the symbol of a token, which some files wrap in an object."""
    return token.get("content") if isinstance(token, dict) else token


def _tag(name: str) -> str | None:
    """Return the tag for a special symbol of another program, such as `im_start` for <|im_start|>; None if it has no
    word.
    """
    try:
        return check_tag(name.strip("<>|[]"))
    except ValueError:
        return None


def byte_level_order(tokenizer: GPT2Tokenizer) -> list[int]:
    """Return dragoman's id for each original id."""
    return original_order(tokenizer, tokenizer.original_ids)


def byte_level_symbols(tokenizer: GPT2Tokenizer) -> list[str]:
    """Return the original symbols in the order of their ids."""
    first_tag = tokenizer.size - len(tokenizer.tags)
    names = [*tokenizer.symbols[:first_tag], *map(symbol, tokenizer.tags)]
    for position, name in enumerate(tokenizer.original_symbols):
        if name is not None:
            names[position if position < len(SPECIAL_SYMBOLS) else first_tag + position - len(SPECIAL_SYMBOLS)] = name
    return [names[number] for number in byte_level_order(tokenizer)]


def write_byte_level(
    folder: Path, tokenizer: GPT2Tokenizer, about: Mapping[str, Any], post_processor: Any = None
) -> None:
    """Write `tokenizer.json`, `vocab.json`, `merges.txt`, `tokenizer_config.json` and `special_tokens_map.json`.

    about: the class, the maximum length and the symbols of the roles. post_processor: adds symbols to a text.
    """
    order, first_tag = byte_level_order(tokenizer), tokenizer.size - len(tokenizer.tags)
    symbols = byte_level_symbols(tokenizer)
    ids = {
        name: number
        for number, name in enumerate(symbols)
        if order[number] < len(SPECIAL_SYMBOLS) or order[number] >= first_tag or tokenizer.surface(order[number])
    }
    library = Library(BPE(ids, tokenizer.merges))
    if tokenizer.normalization != "none":
        library.normalizer = {"nfc": normalizers.NFC, "nfkc": normalizers.NFKC}[tokenizer.normalization]()
    library.pre_tokenizer = ByteLevel(add_prefix_space=False)
    library.decoder = ByteLevelDecoder()
    if post_processor is not None:
        library.post_processor = post_processor
    special = [name for name, number in ids.items() if not len(SPECIAL_SYMBOLS) <= order[number] < first_tag]
    library.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in special])
    pretty = json.dumps(json.loads(library.to_str()), ensure_ascii=False, indent=1) + "\n"
    (folder / LIBRARY).write_text(pretty, encoding="utf-8")
    write_json(folder / VOCABULARY, ids)
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in tokenizer.merges)]
    (folder / MERGES).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    roles = {name: value for name, value in about.items() if name in (*ROLES, *_OTHER_ROLES)}
    write_json(folder / TOKENIZER, {"add_prefix_space": False, **about})
    write_json(folder / SPECIAL, roles)
