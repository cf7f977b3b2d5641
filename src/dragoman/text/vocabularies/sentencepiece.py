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
"""The character for a space in the name of a piece."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_LONGEST_LINE = 1 << 30  # bytes; by default the library silently drops longer lines
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
)  # spaces that Hugging Face's clean-up removes, in order


class SentencePieceTokenizer(Tokenizer):
    """Normalises and splits texts with a SentencePiece model; pieces that are not in the vocabulary become UNK.

    The entries of the vocabulary may differ from the pieces of the model: two languages can share a vocabulary, each
    with its own model. Decoding does not undo the normalisation (of most whitespace and compatibility characters).

    Unlike with other kinds, a text may start with a language code, `>>de<<`, which is the tag to:de; an unknown code
    becomes UNK.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        model: bytes,
        entries: Sequence[str],
        *,
        joint: bool = False,
        tidy: bool = False,
        places: Sequence[int] | None = None,
    ) -> None:
        """model: SentencePiece's file. entries: the pieces from id 4 on.

        joint: whether the other language's tokenizer has the same entries. tidy: whether decoding removes spaces before
        punctuation. places: ids of the special symbols and first tags in the vocabulary that was imported, in the order
        used here; None if it was learned here. Raises ModelError for an invalid `model`, ConfigError if the library is
        not installed.
        """
        self._model, self._entries = model, list(entries)
        self.joint, self.tidy = joint, tidy
        self.places = None if places is None else tuple(places)
        self._processor = _processor(model)
        self._ids = {entry: number for number, entry in enumerate(entries, start=len(SPECIAL_SYMBOLS))}
        self._codes: dict[str, int] = {}
        super().__init__(
            [*SPECIAL_SYMBOLS, *entries], [b""] * len(SPECIAL_SYMBOLS) + [self._surface(entry) for entry in entries]
        )

    @property
    def model(self) -> bytes:
        """The contents of SentencePiece's own file."""
        return self._model

    @property
    def entries(self) -> list[str]:
        """The names of all pieces except special symbols and tags, in the order of their ids."""
        return list(self._entries)

    def with_tags(self, tags: Sequence[str]) -> Self:
        """Like `Tokenizer.with_tags`; language tags are also recognised by their codes in texts."""
        tagged = super().with_tags(tags)
        numbered = enumerate(tagged.tags, start=tagged._first_tag)
        tagged._codes = {code(tag): number for number, tag in numbered if tag.startswith(TO)}
        return tagged

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts. Raises DataError if one contains lone surrogates."""
        check_unicode(texts)
        begun, rest = zip(*map(split_language_code, texts), strict=True) if texts else ((), ())
        split = self._processor.encode(list(rest), out_type=str, num_threads=1)
        return [
            [*self._code(language), *(self._ids.get(piece, UNK) for piece in pieces)]
            for language, pieces in zip(begun, split, strict=True)
        ]

    def _code(self, language: str) -> list[int]:
        return [self._codes.get(language, self._ids.get(language, UNK))] if language else []

    def words(self, text: str) -> tuple[list[int], list[str]]:
        """Like `Tokenizer.words`, with each piece as a word: an unknown piece consists only of unknown characters."""
        check_unicode([text])
        language, rest = split_language_code(text)
        pieces = self._processor.encode(rest, out_type=str)
        words = [*([language] if language else []), *(piece.replace(BLANK, " ") for piece in pieces)]
        return list(range(len(words))), words

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Like `Tokenizer.spans`, using the offsets of the library's normalisation."""
        check_unicode([text])
        language, rest = split_language_code(text)
        spans = [(0, len(language))] if language else []
        normal, origins = self._processor.normalize(rest, with_offsets=True)
        position, seen = 0, 0  # position in the normalised text; bytes of the next character seen as pieces so far
        for piece in self._processor.encode(rest, out_type=str):
            begin = origins[position]
            if _BYTE.fullmatch(piece) and not normal.startswith(piece, position):
                seen = (seen + 1) % len(normal[position].encode())
                position += not seen
            else:
                position += len(piece)
            part = rest[begin : max(begin + 1, origins[position])] if piece != BLANK else ""
            begin += len(language) + len(part) - len(part.lstrip())
            spans.append((begin, begin + len(part.strip())))
        return spans

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Decode ids with the model, stripped of spaces; special symbols and tags are skipped.

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
        """JSON with the model in base64, the entries, and settings that differ from the defaults."""
        document: dict[str, Any] = {"kind": self.kind, "model": b64encode(self._model).decode()}
        document |= {name: True for name in ("joint", "tidy") if getattr(self, name)}
        if self.places is not None:
            document["places"] = self.places
        return json.dumps({**document, "entries": self._entries}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document without tags. Raises ModelError if it is invalid."""
        entries, places = document.get("entries"), document.get("places")
        switches = {name: document.get(name, False) for name in ("joint", "tidy")}
        entries = entries if isinstance(entries, list) else [None]
        named = all(isinstance(entry, str) for entry in entries)
        switched = all(isinstance(switch, bool) for switch in switches.values())
        if not (named and switched and len({*entries}) == len(entries) and _fit(places, len(entries))):
            raise ModelError(f"The tokenizer {path} is damaged (its entries or places); restore it from a copy.")
        try:
            model = b64decode(document["model"], validate=True)
            return cls(model, entries, places=places, **switches)
        except (KeyError, TypeError, ValueError, ModelError) as error:
            raise ModelError(f"The tokenizer {path} is damaged ({error}); restore it from a copy.") from error


class SentencePieceConfig(VocabularyConfig):
    """SentencePiece's unigram model with its default normalisation (Kudo & Richardson 2018).

    For models that are exported to other toolkits (`dragoman export --to marian`) or imported from them. Unlike
    `unigram`, it normalises texts, so decoding does not restore the exact text. Needs `pip install "dragoman[hf]"`.
    """

    tokenizer: ClassVar[type[Tokenizer]] = SentencePieceTokenizer
    kind: Literal["sentencepiece"] = "sentencepiece"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS) + 1,
        description="Vocabulary size, including the 4 special symbols; null: as for bpe. A small corpus may yield "
        "fewer.",
    )

    def with_size(self, pairs: int) -> "SentencePieceConfig":
        """Set the vocabulary size for a corpus of `pairs` sentence pairs, if none is given."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str]) -> SentencePieceTokenizer:
        """Learn pieces from `texts`. The same texts give the same tokenizer."""
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


def code(tag: str) -> str:
    """The code of a tag in texts and in the vocabularies of OPUS-MT: `>>de<<` for to:de."""
    return f">>{tag.removeprefix(TO)}<<"


def tag_of(symbol: str) -> str | None:
    """The tag of a symbol that is a language code, such as `>>de<<`; None for other symbols."""
    language, rest = split_language_code(symbol)
    try:
        return check_tag(language_tag(language[2:-2])) if language and not rest else None
    except ValueError:
        return None


def split_language_code(text: str) -> tuple[str, str]:
    """Split a text into its initial language code, which may be empty, and the rest."""
    end = text.find("<<") + 2 if text.startswith(">>") else 1
    return ("", text) if end == 1 else (text[:end], text[end:])


def pieces_of(model: bytes) -> Iterator[str]:
    """Yield the ordinary pieces of a SentencePiece model. Raises ModelError if it is invalid."""
    processor = _processor(model)
    for number in range(processor.get_piece_size()):
        if not (processor.is_control(number) or processor.is_unknown(number)):
            yield str(processor.id_to_piece(number))


def _fit(places: Any, entries: int) -> bool:
    """Whether `places` are valid: distinct ids of special symbols and tags in a vocabulary with `entries` pieces.

    PAD and BOS may share an id.
    """
    if places is None:
        return True
    if (
        not isinstance(places, list)
        or len(places) < len(SPECIAL_SYMBOLS)
        or any(type(each) is not int for each in places)
    ):
        return False
    own = places[1:] if places[PAD] == places[BOS] else places
    return len({*own}) == len(own) and min(own) >= 0 and max(own) < len(own) + entries


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
            'a SentencePiece vocabulary requires the package sentencepiece: pip install "dragoman[hf]"'
        ) from error
    return sentencepiece


class _Lines:
    """Texts for the library, which replaces exceptions raised while it reads them; `error` is the original one."""

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
