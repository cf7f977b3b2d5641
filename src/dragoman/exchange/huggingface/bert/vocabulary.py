"""Converts BERT's vocabularies (`tokenizer.json`, `vocab.txt`) to dragoman's tokenizers and back.

Dragoman's ids start with four special symbols and end with tags. [CLS] becomes the beginning and [SEP] the end of a
text, and [MASK] becomes the tag `mask`. A tokenizer stores the original ids of these symbols, and all other entries
keep their order, so the conversion back is exact.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Library
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from dragoman.base.errors import ModelError
from dragoman.data.batches.masking import MASK
from dragoman.exchange.huggingface.bert.architecture import BertSettings
from dragoman.exchange.huggingface.files import CONFIG, SPECIAL, TOKENIZER, read_bytes, read_json, write_json
from dragoman.exchange.huggingface.unused_rows import with_unused_rows
from dragoman.exchange.huggingface.weights import original_order
from dragoman.text.symbols import SPECIAL_SYMBOLS, symbol
from dragoman.text.vocabularies.bert import BertTokenizer, BertWordPieceConfig
from dragoman.text.vocabularies.foreign import TOKEN_LIST, recognise_vocabulary
from dragoman.text.vocabularies.wordpiece import CONTINUES, LONGEST_WORD, piece_model

VOCABULARY, LIBRARY = "vocab.txt", "tokenizer.json"
_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
"""BERT's names of dragoman's special symbols, in dragoman's order."""

_MASK = "[MASK]"
_NAMES = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "mask_token": _MASK}
_SETTINGS = {"do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "split_chinese"}
"""Our setting for each key of `tokenizer_config.json`."""

_NORMALISER = {"lowercase": "lowercase", "strip_accents": "strip_accents", "handle_chinese_chars": "split_chinese"}
"""Our setting for each key of the normaliser in `tokenizer.json`."""


def read_vocabulary(folder: Path, settings: BertSettings) -> tuple[BertTokenizer, BertWordPieceConfig]:
    """Return the tokenizer and the `text.subword` section of a folder.

    Raises ModelError for a file that is damaged, disagrees with another file, or has unsupported settings.
    """
    about = read_json(folder / TOKENIZER, optional=True)
    ids, config = _read_library(folder), _config(about)
    if (folder / LIBRARY).is_file():
        config = _normaliser_config(folder, about)
    if (folder / VOCABULARY).is_file():
        listed = _read_list(folder / VOCABULARY)
        if ids is not None and ids != listed:
            different = next(iter(sorted(ids.items() ^ listed.items(), key=lambda each: each[1])))
            raise ModelError(
                f"{folder}: {LIBRARY} and {VOCABULARY} contain different vocabularies, for example the entry "
                f"{different[0]!r} with the id {different[1]}: keep only the file that belongs to the model"
            )
        ids = listed
    if ids is None:
        raise ModelError(f"{folder} is not a complete BERT folder: {LIBRARY} and {VOCABULARY} are missing")
    _check_ids(ids, settings, folder)
    ids = with_unused_rows(ids, settings.vocab_size, folder)
    _check_special(folder, about)
    symbols = sorted(ids, key=ids.__getitem__)
    tags = {_MASK: MASK} if _MASK in ids else {}
    ordinary = [each for each in symbols if each not in _SPECIAL and each not in tags]
    places = tuple(ids[each] for each in (*_SPECIAL, *tags))
    numbered = {each: number for number, each in enumerate((*SPECIAL_SYMBOLS, *ordinary))}
    if len(numbered) < len(SPECIAL_SYMBOLS) + len(ordinary):
        raise ModelError(f"{folder}: the vocabulary contains a name that is reserved: {', '.join(SPECIAL_SYMBOLS)}")
    tokenizer = config.tokenizer_of(numbered, places).with_tags(list(tags.values()))
    return tokenizer, config


def _read_library(folder: Path) -> dict[str, int] | None:
    """Return the ids in `tokenizer.json`; None if the file is missing. Raises ModelError unless it is a BERT's."""
    path = folder / LIBRARY
    if not path.is_file():
        return None
    content = read_json(path)
    model = content.get("model")
    model = model if isinstance(model, dict) else {}
    required = {
        "model.type": (model.get("type", "WordPiece"), "WordPiece"),
        "model.unk_token": (model.get("unk_token"), "[UNK]"),
        "model.continuing_subword_prefix": (model.get("continuing_subword_prefix"), CONTINUES),
        "model.max_input_chars_per_word": (model.get("max_input_chars_per_word"), LONGEST_WORD),
        "normalizer.type": ((content.get("normalizer") or {}).get("type"), "BertNormalizer"),
        "normalizer.clean_text": ((content.get("normalizer") or {}).get("clean_text"), True),
        "pre_tokenizer.type": ((content.get("pre_tokenizer") or {}).get("type"), "BertPreTokenizer"),
    }
    for name, (value, expected) in required.items():
        if value != expected:
            raise ModelError(f"{path}: {name} must be {expected}, not {value!r}: other tokenizers are not supported")
    ids = model.get("vocab")
    if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
        raise ModelError(f"{path}: model.vocab must map each entry to an integer")
    for token in content.get("added_tokens") or []:
        if ids.get(token.get("content")) != token.get("id"):
            raise ModelError(
                f"{path}: the token {token.get('content')!r} was added to the vocabulary, which is not supported"
            )
    return ids


def _read_list(path: Path) -> dict[str, int]:
    """Return the ids in `vocab.txt`, which has one entry per line. Raises ModelError if it cannot be read."""
    content = read_bytes(path)
    recognised = recognise_vocabulary(path)
    if recognised not in (None, TOKEN_LIST):
        raise ModelError(f"{path} is {recognised}, but must have one entry per line, as BERT's vocab.txt does")
    try:
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not valid UTF-8: {error}") from None
    ids: dict[str, int] = {}
    for number, line in enumerate(lines):
        if ids.setdefault(line.removesuffix("\r"), number) != number:
            raise ModelError(f"{path}, line {number + 1}: the entry {line!r} occurs twice")
    return ids


def _config(about: Mapping[str, Any]) -> BertWordPieceConfig:
    """Return the settings in `tokenizer_config.json`, with Hugging Face's defaults."""
    return BertWordPieceConfig(**{ours: about[name] for name, ours in _SETTINGS.items() if about.get(name) is not None})


def _normaliser_config(folder: Path, about: Mapping[str, Any]) -> BertWordPieceConfig:
    """Return the settings in `tokenizer.json`. Raises ModelError if those in `tokenizer_config.json` disagree."""
    normaliser = read_json(folder / LIBRARY)["normalizer"]
    config = BertWordPieceConfig(**{ours: normaliser.get(name) for name, ours in _NORMALISER.items()})
    for name, ours in _SETTINGS.items():
        if about.get(name) is not None and about[name] != getattr(config, ours):
            raise ModelError(
                f"{folder}: {name} is {about[name]} in {TOKENIZER}, but {LIBRARY} has {getattr(config, ours)}: correct "
                "the file that does not belong to the model"
            )
    return config


def _check_ids(ids: Mapping[str, int], settings: BertSettings, folder: Path) -> None:
    """Raise ModelError unless the ids fit the embeddings and include the special symbols."""
    if sorted(ids.values()) != list(range(len(ids))):
        raise ModelError(f"{folder}: the ids of the vocabulary must be 0 to {len(ids) - 1} without gaps")
    if missing := [name for name in _SPECIAL if name not in ids]:
        raise ModelError(f"{folder}: the vocabulary has no {' and no '.join(missing)}")
    if settings.pad_token_id not in (None, ids["[PAD]"]):
        raise ModelError(
            f"{folder}: [PAD] has the id {ids['[PAD]']}, but pad_token_id in {CONFIG} is {settings.pad_token_id}: the "
            "files are from different models"
        )


def _check_special(folder: Path, about: Mapping[str, Any]) -> None:
    """Raise ModelError for special symbols with unexpected names and for unsupported settings of the tokenizer."""
    for path, content in ((TOKENIZER, about), (SPECIAL, read_json(folder / SPECIAL, optional=True))):
        for name, expected in _NAMES.items():
            given = content.get(name) or expected
            given = given.get("content") if isinstance(given, dict) else given
            if given != expected:
                raise ModelError(f"{folder / path}: {name} must be {expected}, not {given!r}")
    if about.get("do_basic_tokenize") is False or about.get("never_split"):
        raise ModelError(f"{folder / TOKENIZER}: do_basic_tokenize=false and never_split are not supported")


def write_vocabulary(folder: Path, tokenizer: BertTokenizer, longest: int) -> None:
    """Write `vocab.txt`, `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json`.

    longest: maximum number of tokens of a text.
    """
    symbols = bert_symbols(tokenizer)
    ids = {each: number for number, each in enumerate(symbols)}
    normaliser = tokenizer.normaliser
    library = Library(piece_model(ids, "[UNK]"))
    library.normalizer = BertNormalizer(
        **{name: normaliser[name] for name in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")}
    )
    library.pre_tokenizer = BertPreTokenizer()
    library.decoder = WordPieceDecoder(CONTINUES)
    library.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = {name: each for name, each in _NAMES.items() if each in ids}
    library.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in names.values()])
    (folder / LIBRARY).write_text(json.dumps(json.loads(library.to_str()), ensure_ascii=False, indent=1) + "\n")
    (folder / VOCABULARY).write_text("".join(f"{each}\n" for each in symbols), encoding="utf-8", newline="\n")
    settings = {theirs: normaliser[name] for name, theirs in zip(_NORMALISER, _SETTINGS, strict=True)}
    about = {"tokenizer_class": "BertTokenizer", **settings, "model_max_length": longest, **names}
    write_json(folder / TOKENIZER, about)
    write_json(folder / SPECIAL, names)


def bert_symbols(tokenizer: BertTokenizer) -> list[str]:
    """Return the names of the entries of BERT's vocabulary, in the order of their ids."""
    tags = [_MASK if tag == MASK else symbol(tag) for tag in tokenizer.tags]
    ours = [*_SPECIAL, *tokenizer.symbols[len(_SPECIAL) : tokenizer.size - len(tags)], *tags]
    return [ours[number] for number in bert_order(tokenizer)]


def bert_order(tokenizer: BertTokenizer) -> list[int]:
    """Return dragoman's id for each of BERT's ids."""
    return original_order(tokenizer, tokenizer.original_ids)
