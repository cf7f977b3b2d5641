"""Converts the vocabularies of M2M-100 and NLLB to dragoman's tokenizers and back.

Both are a SentencePiece model and one symbol per language, which precedes texts of this language, on either side. The
ids of M2M-100's pieces are in `vocab.json`, and those of its languages follow in a fixed order. NLLB numbers the pieces
of the SentencePiece model from 4 on, and states the ids of its languages. In dragoman, the languages are tags.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.files import ADDED, CONFIG, TOKENIZER, read_bytes, read_json
from dragoman.exchange.huggingface.m2m100.architecture import M2M100Settings
from dragoman.exchange.huggingface.unused_rows import with_unused_rows
from dragoman.exchange.huggingface.weights import original_order
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer, pieces_of

MODEL, VOCABULARY, FAST = "sentencepiece.bpe.model", "vocab.json", "tokenizer.json"
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_MASK = "<mask>"

_M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "m2m100": tuple(_M2M100.split()),
    "wmt21": ("en", "ha", "is", "ja", "cs", "ru", "zh", "de"),
}
"""The languages of M2M-100's vocabularies in the order of their ids, by `language_codes` in the tokenizer's settings,
because their files do not state them.
"""


@dataclass(frozen=True)
class MultilingualVocabulary:
    """The vocabulary of a folder. ids: ids from 0 to n−1, by symbol. languages: symbols of languages, by code."""

    ids: Mapping[str, int]
    languages: Mapping[str, str]

    def tokenizer(self, model: bytes) -> SentencePieceTokenizer:
        """Return dragoman's tokenizer. model: a SentencePiece model as bytes. Raises ModelError if it is invalid."""
        special = [self.ids[symbol] for symbol in SPECIAL_SYMBOLS]
        tags = {self.ids[symbol]: code for code, symbol in self.languages.items()}
        entries = [symbol for symbol in sorted(self.ids, key=self.ids.__getitem__) if self.ids[symbol] not in tags]
        return SentencePieceTokenizer(
            model, [each for each in entries if each not in SPECIAL_SYMBOLS], joint=True, original_ids=[*special, *tags]
        ).with_tags(list(tags.values()))


def read_vocabulary(folder: Path, settings: M2M100Settings) -> SentencePieceTokenizer:
    """Return the tokenizer, with the languages as its tags.

    Raises ModelError for a file that is missing, is damaged or does not match the other files.
    """
    about = read_json(folder / TOKENIZER, optional=True)
    if about.get("legacy_behaviour"):
        raise ModelError(
            f"{folder / TOKENIZER}: legacy_behaviour is true, so that the language follows the text, but only texts "
            "that follow their language are supported"
        )
    model = read_bytes(folder / MODEL)
    if (folder / VOCABULARY).is_file():
        ids, languages = _ids_of_file(folder, about)
    else:
        ids, languages = _ids_of_model(folder, model)
    for name, symbol in (("pad_token_id", "<pad>"), ("bos_token_id", "<s>"), ("eos_token_id", "</s>")):
        if ids.get(symbol) != getattr(settings, name):
            raise ModelError(
                f"{folder}: {symbol} has the id {ids.get(symbol)}, but {name} in {CONFIG} is "
                f"{getattr(settings, name)}: the files are from different models"
            )
    vocabulary = MultilingualVocabulary(with_unused_rows(ids, settings.vocab_size, folder), languages)
    return vocabulary.tokenizer(model)


def _ids_of_file(folder: Path, about: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the ids and languages of M2M-100."""
    path = folder / VOCABULARY
    ids, codes = read_json(path), about.get("language_codes", "m2m100")
    if codes not in LANGUAGES:
        raise ModelError(f"{folder / TOKENIZER}: language_codes must be {' or '.join(LANGUAGES)}, not {codes!r}")
    numbers = ids.values()
    if not all(type(number) is int for number in numbers) or sorted(numbers) != list(range(len(ids))):
        raise ModelError(f"{path} must map entries to all integers from 0 to {len(ids) - 1}")
    if missing := [symbol for symbol in _SPECIAL if symbol not in ids]:
        raise ModelError(f"{path} has no {' and no '.join(missing)}, which every M2M-100 vocabulary has")
    languages = {code: f"__{code}__" for code in LANGUAGES[codes]}
    return {**ids, **{symbol: len(ids) + index for index, symbol in enumerate(languages.values())}}, languages


def _ids_of_model(folder: Path, model: bytes) -> tuple[dict[str, int], dict[str, str]]:
    """Return the ids and languages of NLLB."""
    ids = {symbol: number for number, symbol in enumerate(_SPECIAL)}
    try:
        ids |= {piece: number for number, piece in enumerate(pieces_of(model), start=len(ids))}
    except ModelError as error:
        raise ModelError(f"{folder / MODEL} is damaged: {error}") from None
    added = {symbol: number for symbol, number in _added(folder).items() if symbol not in ids}
    if not added:
        raise ModelError(
            f"{folder} does not state the ids of its languages: neither {FAST}, {TOKENIZER} nor {ADDED} lists added "
            "tokens. Save the tokenizer with Hugging Face's `save_pretrained`"
        )
    if sorted(added.values()) != list(range(len(ids), len(ids) + len(added))):
        raise ModelError(f"{folder}: the ids of the added tokens do not follow the {len(ids)} entries of {MODEL}")
    return ids | added, {symbol: symbol for symbol in sorted(added, key=added.__getitem__) if symbol != _MASK}


def _added(folder: Path) -> dict[str, int]:
    """Return the ids of added tokens, from the first file that states them."""
    listed = read_json(folder / FAST, optional=True).get("added_tokens") or []
    decoder = read_json(folder / TOKENIZER, optional=True).get("added_tokens_decoder") or {}
    listed = listed or [{**token, "id": int(number)} for number, token in decoder.items()]
    return {each["content"]: each["id"] for each in listed} or read_json(folder / ADDED, optional=True)


def original_ids(tokenizer: SentencePieceTokenizer) -> list[int]:
    """Return dragoman's id for each id of the imported vocabulary."""
    return original_order(tokenizer, tokenizer.original_ids)


def vocabulary_files(tokenizer: SentencePieceTokenizer, languages: tuple[str, str]) -> dict[str, dict[str, Any]]:
    """Return the contents of the JSON files of the vocabulary by name. languages: tags of source and target."""
    order = original_ids(tokenizer)
    codes = {tokenizer.tag_ids([tag])[0]: tag for tag in tokenizer.tags}
    symbols = [codes.get(number, tokenizer.symbols[number]) for number in order]
    first = min(order.index(number) for number in codes)
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "model_max_length": 1024, **names}
    kinds = [name for name, known in LANGUAGES.items() if known == tokenizer.tags]
    if kinds:
        return {
            VOCABULARY: {symbol: number for number, symbol in enumerate(symbols[:first])},
            TOKENIZER: {"tokenizer_class": "M2M100Tokenizer", "language_codes": kinds[0], **about},
        }
    added = [number for number, symbol in enumerate(symbols) if symbol in (*_SPECIAL, *tokenizer.tags, _MASK)]
    return {
        TOKENIZER: {
            "tokenizer_class": "NllbTokenizer",
            "extra_special_tokens": list(tokenizer.tags),
            "added_tokens_decoder": {str(number): _token(symbols[number]) for number in added},
            **about,
        }
    }


def _token(symbol: str) -> dict[str, Any]:
    is_mask = symbol == _MASK
    flags = {"lstrip": is_mask, "normalized": is_mask, "rstrip": False, "single_word": False, "special": True}
    return {"content": symbol, **flags}
