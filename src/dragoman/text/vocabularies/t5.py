"""T5's vocabulary: SentencePiece's unigram model as Hugging Face computes it, for imported and for new models."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from tokenizers import Tokenizer as Library
from tokenizers import decoders, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Split

from dragoman.base.errors import ConfigError, ModelError
from dragoman.text.pieces import words_splitter
from dragoman.text.symbols import BOS, PAD, SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import VocabularyConfig
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer
from dragoman.text.vocabularies.sentencepiece import BLANK

_MARK = re.compile(r"<(extra_id_[0-9]+)>")
UNUSED = re.compile(r" <unused[0-9]+>")
"""Names of rows that an imported model does not use. The space in them never occurs in a word."""


class T5Tokenizer(HuggingFaceTokenizer):
    """Normalises a text, splits it at whitespace, and splits words into pieces. Unknown characters become UNK.

    Decoding does not undo the normalisation, and separates words by single spaces. Pieces of an imported vocabulary
    that mark gaps, such as <extra_id_0>, are ordinary pieces, which texts can contain; see `marks`.
    """

    kind = "t5"
    normalises = True
    model = "Unigram"
    needs: ClassVar[str] = "a unigram model"

    def __init__(self, library: Library, original_ids: Sequence[int] | None = None) -> None:
        """original_ids: for an imported vocabulary, the original ids of the special symbols; None if the vocabulary was
        not imported.
        """
        super().__init__(library)
        self._symbols[: len(SPECIAL_SYMBOLS)] = SPECIAL_SYMBOLS
        self.original_ids = None if original_ids is None else tuple(original_ids)

    @property
    def library_document(self) -> dict[str, Any]:
        """The library's JSON document, with the names and scores of all pieces."""
        return dict(json.loads(self._library.to_str()))

    @property
    def marks(self) -> Mapping[str, int]:
        """The ids of the pieces <extra_id_0>, <extra_id_1>, … See `Tokenizer.marks`."""
        numbered = ((number, _MARK.fullmatch(name)) for number, name in enumerate(self.symbols[: self._first_tag]))
        return {match[1]: number for number, match in numbered if match is not None}

    def _surface(self, symbol: str) -> bytes:
        return b"" if UNUSED.fullmatch(symbol) else symbol.replace(BLANK, " ").encode()

    def _encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts that continue other texts, as any other text, because every word starts with a space."""
        return self._encode(texts)

    def _splitter(self) -> Split:
        return words_splitter()

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the words as in `Tokenizer.words`, where each piece is a word."""
        ends = [end for _, end in self._offsets(text)]
        if ends:  # characters that the normalisation removes belong to a piece as well
            ends[-1] = len(text)
        starts = [0, *ends][: len(ends)]
        return list(range(len(ends))), [text[start:end] for start, end in zip(starts, ends, strict=True)]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans as in `Tokenizer._spans`, from the offsets of the library."""
        spans = []
        for start, end in self._offsets(text):
            part = text[start:end]
            start += len(part) - len(part.lstrip())
            spans.append((start, start + len(part.strip())))
        return spans

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        check_unicode([text])
        encoding = self._library.encode(text, add_special_tokens=False)
        return [(start, end) for start, end in encoding.offsets]

    def _document(self) -> str:
        document = {"kind": self.kind, "original_ids": self.original_ids, **self.library_document}
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        document = dict(document)
        original_ids = document.pop("original_ids", None)
        tokenizer = super().read(document, path)
        if original_ids is not None:
            is_valid = (
                isinstance(original_ids, list)
                and len(original_ids) == len(SPECIAL_SYMBOLS)
                and all(type(number) is int and number >= 0 for number in original_ids)
                and original_ids[PAD] == original_ids[BOS]
                and len({*original_ids}) == len(SPECIAL_SYMBOLS) - 1
            )
            if not is_valid:
                raise ModelError(f"The tokenizer {path} is damaged (original_ids). Restore it from a copy.")
            tokenizer.original_ids = tuple(original_ids)
        return tokenizer


class T5UnigramConfig(VocabularyConfig):
    """SentencePiece's unigram model on words between spaces, as Hugging Face computes it (Raffel et al. 2020, section
    2.2.1; Kudo & Richardson 2018). Only imported models have such a vocabulary; the kind `sentencepiece` is learned.
    """

    tokenizer: ClassVar[type[Tokenizer]] = T5Tokenizer
    kind: Literal["t5"] = "t5"

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> T5Tokenizer:
        """Raise ConfigError, because vocabularies of this kind are imported."""
        raise ConfigError(
            "text.subword.kind=t5 is the vocabulary of imported models: start from one with train.start, or choose "
            "text.subword.kind=sentencepiece"
        )


def t5_tokenizer(
    pieces: Sequence[tuple[str, float]],
    normalizer: dict[str, Any] | None,
    splitter: dict[str, Any] | None,
    original_ids: Sequence[int] | None,
) -> T5Tokenizer:
    """Return a tokenizer with these pieces and log-probabilities, in the order of their ids after the special symbols.

    normalizer, splitter: in the library's JSON; the default of the latter splits at whitespace. Raises ModelError for
    settings that the library does not support.
    """
    lowest = min((score for _, score in pieces), default=0.0)
    special = [(f" {name}", lowest) for name in SPECIAL_SYMBOLS]  # no word contains a space
    library = Library(Unigram([*special, *pieces], unk_id=UNK, byte_fallback=False))
    metaspace = pre_tokenizers.Metaspace(BLANK, "always", True)
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    library.decoder = decoders.Metaspace(BLANK, "always", True)
    document = {**json.loads(library.to_str()), "normalizer": normalizer}
    if splitter is not None:
        document["pre_tokenizer"] = splitter
    try:
        return T5Tokenizer(Library.from_str(json.dumps(document, ensure_ascii=False)), original_ids)
    except Exception as error:  # the library raises a bare Exception
        raise ModelError(f"the tokenizer is not supported: {error}") from None
