"""SentencePiece: vocabularies of imported models, such as those of OPUS-MT, and learned vocabularies."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dragoman.base.errors import ConfigError, DataError, DragomanError, ModelError
from dragoman.text.symbols import BOS, PAD, SPECIAL_SYMBOLS, TO, UNK, check_tag, language_tag
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, default_size

BLANK = "▁"
"""The character that represents a space in the names of pieces."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_LONGEST_LINE = 1 << 30  # in bytes; the library silently drops longer lines, and its default is shorter
_SPACED = (
    " .",
    " ?",
    " !",
    " ,",
    " ' ",
    " n't",
    " 'm",
    " 's",
    " 've",
    " 're",
)
"""Strings whose spaces Hugging Face's clean-up of decoded text removes, in order."""


class SentencePieceTokenizer(Tokenizer):
    """Normalises and splits texts with a SentencePiece model. Pieces that are not in the vocabulary become UNK.

    The entries of the vocabulary may differ from the pieces of the model, so that two languages can share a vocabulary
    although each has a separate model. Decoding does not undo the normalisation (of most whitespace and compatibility
    characters).

    In contrast to other kinds, a text may start with a language code, such as `>>de<<` for the tag to:de. An unknown
    code becomes UNK. If tags precede every text, as in M2M-100, texts have no codes.
    """

    kind = "sentencepiece"
    normalises = True

    def __init__(
        self,
        model: bytes,
        entries: Sequence[str],
        *,
        joint: bool = False,
        tidy: bool = False,
        original_ids: Sequence[int] | None = None,
    ) -> None:
        """model: content of the SentencePiece file. entries: the pieces from id 4 on.

        joint: whether the tokenizer of the other language has the same entries. tidy: whether decoding removes spaces
        before punctuation. original_ids: for an imported vocabulary, the original ids of the special symbols and the
        first tags, in the order of their ids in this tokenizer; None if the vocabulary was not imported. Raises
        ModelError for an invalid `model`, and ConfigError if the library is not installed.
        """
        self._model, self._entries = model, list(entries)
        self.joint, self.tidy = joint, tidy
        self.original_ids = None if original_ids is None else tuple(original_ids)
        self._processor = _processor(model)
        self._ids = {entry: number for number, entry in enumerate(entries, start=len(SPECIAL_SYMBOLS))}
        self._codes: dict[str, int] = {}
        super().__init__(
            [*SPECIAL_SYMBOLS, *entries], [b""] * len(SPECIAL_SYMBOLS) + [self._surface(entry) for entry in entries]
        )

    @property
    def model(self) -> bytes:
        """The content of the SentencePiece file."""
        return self._model

    @property
    def entries(self) -> list[str]:
        """The names of all pieces except special symbols and tags, in the order of their ids."""
        return list(self._entries)

    def with_tags(self, tags: Sequence[str]) -> Self:
        """Return a copy with these tags, as `Tokenizer.with_tags` does. Texts may then start with their codes."""
        tagged = super().with_tags(tags)
        numbered = enumerate(tagged.tags, start=tagged._first_tag)
        tagged._codes = {language_code(tag): number for number, tag in numbered if tag.startswith(TO)}
        return tagged

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts. Raises DataError if one contains lone surrogates."""
        check_unicode(texts)
        codes, rests = zip(*map(self._split_code, texts), strict=True) if texts else ((), ())
        split = self._processor.encode(list(rests), out_type=str, num_threads=1)
        return [
            [*self._encode_code(code), *(self._ids.get(piece, UNK) for piece in pieces)]
            for code, pieces in zip(codes, split, strict=True)
        ]

    def _split_code(self, text: str) -> tuple[str, str]:
        """Split a text into its language code and the rest. If tags precede every text, no text has a code."""
        return ("", text) if self.start else split_language_code(text)

    def _encode_code(self, code: str) -> list[int]:
        return [self._codes.get(code, self._ids.get(code, UNK))] if code else []

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the words as in `Tokenizer.words`, where each piece is a word.

        An unknown piece consists only of unknown characters.
        """
        check_unicode([text])
        code, rest = self._split_code(text)
        pieces = self._processor.encode(rest, out_type=str)
        words = [*([code] if code else []), *(piece.replace(BLANK, " ") for piece in pieces)]
        return list(range(len(words))), words

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans as in `Tokenizer._spans`, from the offsets of the library's normalisation."""
        check_unicode([text])
        code, rest = self._split_code(text)
        spans = [(0, len(code))] if code else []
        normalised, offsets = self._processor.normalize(rest, with_offsets=True)
        position = 0  # in the normalised text
        bytes_read = 0  # number of preceding byte pieces of the character at `position`
        for piece in self._processor.encode(rest, out_type=str):
            start = offsets[position]
            if _BYTE.fullmatch(piece) and not normalised.startswith(piece, position):
                bytes_read = (bytes_read + 1) % len(normalised[position].encode())
                position += not bytes_read
            else:
                position += len(piece)
            part = rest[start : max(start + 1, offsets[position])] if piece != BLANK else ""
            start += len(code) + len(part) - len(part.lstrip())
            spans.append((start, start + len(part.strip())))
        return spans

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Decode ids with the model and strip surrounding spaces. Special symbols and tags are skipped.

        unknown: as in `Tokenizer.decode`.
        """
        replacements = iter(unknown)
        pieces = [
            next(replacements, "").replace(" ", BLANK) if number == UNK else self._symbols[number]
            for number in map(int, ids)
            if number == UNK or len(SPECIAL_SYMBOLS) <= number < self._first_tag
        ]
        text = str(self._processor.decode_pieces(pieces)) if pieces else ""
        text = text.replace(BLANK, " ").strip()
        for spaced in _SPACED if self.tidy else ():
            text = text.replace(spaced, spaced.strip())
        return text

    def _surface(self, entry: str) -> bytes:
        if (byte := _BYTE.fullmatch(entry)) and self._processor.is_byte(self._processor.piece_to_id(entry)):
            return bytes([int(byte[1], 16)])
        return entry.replace(BLANK, " ").encode()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_processor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._processor = _processor(self._model)

    def _document(self) -> str:
        """Return JSON with the model in base64, the entries, and settings that differ from the defaults."""
        document: dict[str, Any] = {"kind": self.kind, "model": b64encode(self._model).decode()}
        document |= {name: True for name in ("joint", "tidy") if getattr(self, name)}
        if self.original_ids is not None:
            document["original_ids"] = self.original_ids
        return json.dumps({**document, "entries": self._entries}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document without tags. Raises ModelError if it is invalid."""
        entries, original_ids = document.get("entries"), document.get("original_ids")
        flags = {name: document.get(name, False) for name in ("joint", "tidy")}
        entries = entries if isinstance(entries, list) else [None]
        valid = all(isinstance(entry, str) for entry in entries) and len({*entries}) == len(entries)
        valid = valid and all(isinstance(flag, bool) for flag in flags.values())
        if not (valid and _are_valid_ids(original_ids, len(entries))):
            raise ModelError(f"The tokenizer {path} is damaged (its entries or original ids). Restore it from a copy.")
        try:
            model = b64decode(document["model"], validate=True)
            return cls(model, entries, original_ids=original_ids, **flags)
        except (KeyError, TypeError, ValueError, ModelError) as error:
            raise ModelError(f"The tokenizer {path} is damaged ({error}). Restore it from a copy.") from error


class SentencePieceConfig(VocabularyConfig):
    """SentencePiece's unigram model with its default normalisation (Kudo & Richardson 2018).

    This kind is meant for models that are exported to other toolkits (`dragoman export --to marian`) or imported from
    them. Unlike `unigram`, it normalises texts, so decoding does not restore the exact text. Requires
    `pip install "dragoman[hf]"`.
    """

    tokenizer: ClassVar[type[Tokenizer]] = SentencePieceTokenizer
    kind: Literal["sentencepiece"] = "sentencepiece"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS) + 1,
        description="Vocabulary size, including the 4 special symbols; null: the default of bpe. A small corpus may "
        "yield fewer entries.",
    )

    def with_size(self, pairs: int) -> "SentencePieceConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> SentencePieceTokenizer:
        """Learn pieces from `texts`. The tokenizer depends only on the texts."""
        size, file, lines = self.size or LARGEST_SIZE, BytesIO(), _Lines(texts)
        try:
            _library().SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=file,
                vocab_size=size - len(SPECIAL_SYMBOLS) + 1,  # the library's size includes its own unknown symbol
                hard_vocab_limit=False,
                max_sentence_length=_LONGEST_LINE,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = ConfigError(f"SentencePiece cannot learn {size:,} entries from this text: {error}")
            raise lines.error or reason from error
        return SentencePieceTokenizer(file.getvalue(), list(pieces_of(file.getvalue())))


def language_code(tag: str) -> str:
    """Return the code of a language tag in texts and in OPUS-MT vocabularies: `>>de<<` for to:de."""
    return f">>{tag.removeprefix(TO)}<<"


def tag_of(symbol: str) -> str | None:
    """Return the tag of a symbol that is a language code, such as `>>de<<`; None for other symbols."""
    code, rest = split_language_code(symbol)
    try:
        return check_tag(language_tag(code[2:-2])) if code and not rest else None
    except ValueError:
        return None


def split_language_code(text: str) -> tuple[str, str]:
    """Split a text into its initial language code, empty if there is none, and the rest."""
    end = text.find("<<") + 2 if text.startswith(">>") else 1
    return ("", text) if end == 1 else (text[:end], text[end:])


def pieces_of(model: bytes) -> Iterator[str]:
    """Yield the ordinary pieces of a SentencePiece model. Raises ModelError if it is invalid."""
    processor = _processor(model)
    for number in range(processor.get_piece_size()):
        if not (processor.is_control(number) or processor.is_unknown(number)):
            yield str(processor.id_to_piece(number))


def _are_valid_ids(original_ids: Any, entries: int) -> bool:
    """Return whether `original_ids` are None or distinct ids of a vocabulary with `entries` pieces.

    PAD and BOS may share an id.
    """
    if original_ids is None:
        return True
    if (
        not isinstance(original_ids, list)
        or len(original_ids) < len(SPECIAL_SYMBOLS)
        or any(type(each) is not int for each in original_ids)
    ):
        return False
    ids = original_ids[1:] if original_ids[PAD] == original_ids[BOS] else original_ids
    return len({*ids}) == len(ids) and min(ids) >= 0 and max(ids) < len(ids) + entries


def _processor(model: bytes) -> Any:
    processor = _library().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise ModelError(f"not a SentencePiece model: {error}") from error
    return processor


def _library() -> ModuleType:
    try:
        import sentencepiece  # an optional dependency
    except ImportError as error:
        raise ConfigError(
            'a SentencePiece vocabulary requires the sentencepiece package: pip install "dragoman[hf]"'
        ) from error
    return sentencepiece


class _Lines:
    """Texts for the library, which replaces exceptions that are raised during iteration. error: the exception."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self.error: DragomanError | None = None

    def __iter__(self) -> Iterator[str]:
        empty = True
        try:
            for text in self._texts:
                check_unicode([text])
                empty &= not text.strip()
                yield text
            if empty:
                raise DataError("There is no text to learn a SentencePiece vocabulary from.")
        except DragomanError as error:
            self.error = error
            raise
