"""Converts Marian's vocabularies (`vocab.json` and SentencePiece models) to dragoman's tokenizers and back.

Dragoman's ids start with four special symbols and end with tags. Marian's ids have no such order, and its decoders
start with `<pad>`. The row of `<pad>` therefore becomes dragoman's beginning of sentence, and dragoman's padding is a
new row that is never an input or output. A tokenizer stores Marian's ids of special symbols and tags as its `places`,
and all other entries keep their order, so the conversion back is exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.checkpoint.meta import Meta
from dragoman.exchange.huggingface.files import ADDED, CONFIG, SPECIAL, TOKENIZER, read_bytes, read_json
from dragoman.exchange.huggingface.marian.architecture import MarianSettings
from dragoman.exchange.huggingface.unused_rows import with_unused_rows
from dragoman.exchange.huggingface.weights import original_order
from dragoman.text.symbols import BOS, PAD, SPECIAL_SYMBOLS
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.foreign import SENTENCEPIECE, TOKEN_IDS, recognise_vocabulary
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer, language_code, tag_of

VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE_MODEL, TARGET_MODEL = "source.spm", "target.spm"
BEGIN = "<s>"
_NAMES = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


@dataclass(frozen=True)
class MarianVocabulary:
    """The vocabulary of one language. ids: ids from 0 to n−1, by symbol. begin: the first input id of decoders."""

    ids: Mapping[str, int]
    begin: int

    @property
    def symbols(self) -> list[str]:
        """The symbols in the order of their ids."""
        return sorted(self.ids, key=self.ids.__getitem__)

    @property
    def special(self) -> tuple[int, int, int, int]:
        """Marian's ids of dragoman's special symbols, in dragoman's order."""
        return self.ids["<pad>"], self.begin, self.ids["</s>"], self.ids["<unk>"]

    def tokenizer(self, model: bytes, joint: bool, tidy: bool) -> SentencePieceTokenizer:
        """Return dragoman's tokenizer. model: a SentencePiece model as bytes. Raises ModelError if it is invalid."""
        special = self.special
        ordinary = [symbol for symbol in self.symbols if self.ids[symbol] not in special]
        codes = {symbol: tag for symbol in ordinary if (tag := tag_of(symbol)) is not None}
        tags = codes if len(codes) > 1 else {}  # a single language needs no tag
        entries = [symbol for symbol in ordinary if symbol not in tags]
        places = (*special, *(self.ids[symbol] for symbol in tags))
        first = len(SPECIAL_SYMBOLS)
        default_places = (*range(first), *range(first + len(entries), first + len(ordinary)))
        return SentencePieceTokenizer(
            model, entries, joint=joint, tidy=tidy, original_ids=None if places == default_places else places
        ).with_tags(list(tags.values()))


def read_vocabularies(folder: Path, settings: MarianSettings) -> tuple[Tokenizers, Mapping[str, Any]]:
    """Return the tokenizers and the content of `tokenizer_config.json`.

    Raises ModelError for a file that is damaged, does not match the other files, or has unsupported settings.
    """
    about = read_json(folder / TOKENIZER, optional=True)
    separate = about.get("separate_vocabs", False)
    if not isinstance(separate, bool):
        raise ModelError(f"{folder / TOKENIZER}: separate_vocabs must be true or false, not {separate!r}")
    if separate and settings.share_encoder_decoder_embeddings:
        raise ModelError(
            f"{folder} has two vocabularies ({TOKENIZER}), which cannot share an embedding table ({CONFIG}: "
            "share_encoder_decoder_embeddings)"
        )
    if not separate and settings.target_size != settings.vocab_size:
        raise ModelError(
            f"{folder / CONFIG} has two vocabularies with {settings.vocab_size} and {settings.target_size} entries, "
            f"but separate_vocabs in {TOKENIZER} is false"
        )
    target_path = folder / (TARGET_VOCABULARY if separate else VOCABULARY)
    target = _target(target_path, settings, folder)
    source = target
    if separate:
        ids = _ids(folder / VOCABULARY, settings.vocab_size, folder)
        has_begin_symbol = target.begin != target.ids["<pad>"]
        source = MarianVocabulary(ids, ids.get(BEGIN, ids["<pad>"]) if has_begin_symbol else ids["<pad>"])
    _check_special(folder, about, {**source.ids, **target.ids})
    tidy = about.get("clean_up_tokenization_spaces", False) is True
    models = read_bytes(folder / SOURCE_MODEL), read_bytes(folder / TARGET_MODEL)
    converted = []
    for vocabulary, model, name in zip((source, target), models, (SOURCE_MODEL, TARGET_MODEL), strict=True):
        try:
            converted.append(vocabulary.tokenizer(model, joint=not separate and models[0] != models[1], tidy=tidy))
        except ModelError as error:
            recognised = recognise_vocabulary(folder / name)
            if recognised not in (None, SENTENCEPIECE):
                raise ModelError(f"{folder / name} is {recognised}, but must be {SENTENCEPIECE}") from None
            raise ModelError(f"{folder / name} is damaged: {error}") from None
    same = not separate and models[0] == models[1]
    return Tokenizers(converted[0], converted[0] if same else converted[1]), about


def _target(path: Path, settings: MarianSettings, folder: Path) -> MarianVocabulary:
    ids = _ids(path, settings.target_size, folder)
    for name, symbol in (("pad_token_id", "<pad>"), ("eos_token_id", "</s>")):
        if getattr(settings, name) != ids[symbol]:
            raise ModelError(
                f"{path} has {symbol} at {ids[symbol]}, but {folder / CONFIG} has {name} {getattr(settings, name)}: "
                "the files are from different models"
            )
    begin = settings.decoder_start_token_id
    if begin != ids["<pad>"] and begin != ids.get(BEGIN):
        raise ModelError(
            f"{folder / CONFIG}: decoder_start_token_id {begin} is neither <pad> nor {BEGIN} in {path.name}, and other "
            "start symbols are not supported"
        )
    return MarianVocabulary(ids, begin)


def _ids(path: Path, size: int, folder: Path) -> dict[str, int]:
    """Return the ids of a vocabulary by symbol.

    size: number of rows of the embeddings. Raises ModelError if there are more entries, or no special symbols.
    """
    ids = read_json(path)
    recognised = recognise_vocabulary(path)
    if recognised not in (None, TOKEN_IDS):
        raise ModelError(f"{path} is {recognised}, but must map each entry to an integer, as Marian's vocab.json does")
    if not all(type(number) is int for number in ids.values()):
        raise ModelError(f"{path} must map each entry to an integer")
    if sorted(ids.values()) != list(range(len(ids))):
        raise ModelError(f"{path} must number its entries from 0 to {len(ids) - 1} without gaps")
    if missing := [symbol for symbol in _NAMES.values() if symbol not in ids]:
        raise ModelError(f"{path} has no {' and no '.join(missing)}, which every Marian vocabulary has")
    return with_unused_rows(ids, size, folder)


def _check_special(folder: Path, about: Mapping[str, Any], ids: Mapping[str, int]) -> None:
    """Raise ModelError for special symbols with unexpected names and for entries added to the vocabulary."""
    mapped = read_json(folder / SPECIAL, optional=True)
    for path, content in ((TOKENIZER, about), (SPECIAL, mapped)):
        for name, symbol in _NAMES.items():
            if (given := _content(content.get(name, symbol))) != symbol:
                raise ModelError(f"{folder / path}: {name} must be {symbol}, not {given!r}")
    if about.get("sp_model_kwargs"):
        raise ModelError(f"{folder / TOKENIZER}: sp_model_kwargs (sampling) are not supported: remove them")
    added = [_content(each) for each in (about.get("added_tokens_decoder") or {}).values()]
    added += list(read_json(folder / ADDED, optional=True))
    for content in (about, mapped):
        for name in ("additional_special_tokens", "extra_special_tokens"):
            extra = content.get(name) or []
            added += [_content(each) for each in (extra.values() if isinstance(extra, dict) else extra)]
    known = {*_NAMES.values(), *(symbol for symbol in ids if tag_of(symbol) is not None)}
    if unknown := [str(symbol) for symbol in dict.fromkeys(added) if symbol not in known]:
        raise ModelError(
            f"{folder}: special tokens were added to the tokenizer ({', '.join(unknown[:5])}), which is not supported"
        )


def _content(token: Any) -> Any:
    """Return the symbol of a token, which some files wrap in an object."""
    return token.get("content") if isinstance(token, dict) else token


def ids_in_marian_order(tokenizer: SentencePieceTokenizer) -> list[int]:
    """Return dragoman's id for each Marian id.

    If decoders start with padding, the id of padding is mapped to dragoman's beginning of sentence.
    """
    return original_order(tokenizer, tokenizer.original_ids)


def symbols(tokenizer: SentencePieceTokenizer) -> dict[str, int]:
    """Return the content of `vocab.json`, which maps symbols to Marian's ids."""
    tags = [language_code(tag) for tag in tokenizer.tags]
    our_symbols = ["<pad>", BEGIN, "</s>", "<unk>", *tokenizer.entries, *tags]
    names = (
        {BOS: "<pad>"}
        if tokenizer.original_ids is not None and tokenizer.original_ids[PAD] == tokenizer.original_ids[BOS]
        else {}
    )
    return {
        names.get(number, our_symbols[number]): marian_id
        for marian_id, number in enumerate(ids_in_marian_order(tokenizer))
    }


def tokenizer_json(tokenizers: Tokenizers, meta: Meta) -> dict[str, Any]:
    """Return the content of `tokenizer_config.json`."""
    source = tokenizers.source
    assert isinstance(source, SentencePieceTokenizer)
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": meta.source_language,
        "target_lang": meta.target_language,
        "separate_vocabs": not tokenizers.shared,
        "clean_up_tokenization_spaces": source.tidy,
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
