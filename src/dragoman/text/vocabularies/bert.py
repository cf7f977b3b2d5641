"""BERT's vocabulary: WordPiece on normalised words, as in BERT's own tokenizer, for imported and for new models."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field
from tokenizers import Tokenizer as Library
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from dragoman.base.errors import ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, count_words, default_size
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer
from dragoman.text.vocabularies.wordpiece import CONTINUES, learn_pieces, piece_model


class BertTokenizer(HuggingFaceTokenizer):
    """Normalises a text, splits it at spaces and punctuation marks, and splits the words into pieces.

    Decoding does not undo the normalisation, and separates words and punctuation marks by spaces. A word with an
    unknown character, or with over 100 characters, becomes one UNK.
    """

    kind = "bert"
    normalises = True
    model = "WordPiece"
    needs: ClassVar[str] = "a WordPiece model"

    def __init__(self, library: Library, original_ids: Sequence[int] | None = None) -> None:
        """original_ids: for an imported vocabulary, the original ids of the special symbols and the first tags, in the
        order of their ids in this tokenizer; None if the vocabulary was not imported.
        """
        super().__init__(library)
        self.original_ids = None if original_ids is None else tuple(original_ids)

    @property
    def normaliser(self) -> dict[str, Any]:
        """The settings of the normalisation, with the names of the library: lowercase, strip_accents and others."""
        return dict(json.loads(self._library.to_str())["normalizer"])

    def _surface(self, symbol: str) -> bytes:
        return (symbol.removeprefix(CONTINUES) if symbol.startswith(CONTINUES) else " " + symbol).encode()

    def _encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts that continue other texts, as any other text, because spaces have no tokens."""
        return self._encode(texts)

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the words as in `Tokenizer.words`. A word starts after the end of the previous word."""
        indices, spans = self._word_spans(text)
        ends = [end for _, end in spans]
        ends[-1:] = [len(text)]  # characters that the normalisation removes belong to a word as well
        starts = [0, *ends[:-1]]
        return indices, [text[start:end] for start, end in zip(starts, ends, strict=True) if end > start or indices]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans as in `Tokenizer._spans`, from the offsets of the library's normalisation."""
        indices, spans = self._word_spans(text)
        return [spans[index] for index in indices]

    def _word_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the word index of each id, and the (start, end) of each word in characters of the text."""
        check_unicode([text])
        encoding = self._library.encode(text, add_special_tokens=False)
        indices = [index for index in encoding.word_ids if index is not None]
        spans: dict[int, tuple[int, int]] = {}
        for index, (start, end) in zip(indices, encoding.offsets, strict=True):
            first, last = spans.get(index, (start, end))
            spans[index] = min(first, start), max(last, end)
        return indices, [spans[index] for index in sorted(spans)]

    def whole_words(self) -> list[str | None]:
        """Return the whole words as `Tokenizer.whole_words` does, but None for pieces that continue a word."""
        words = super().whole_words()
        return [
            None if symbol.startswith(CONTINUES) else word for symbol, word in zip(self._symbols, words, strict=True)
        ]

    def _document(self) -> str:
        document = json.loads(super()._document())
        kind = document.pop("kind")
        return json.dumps({"kind": kind, "original_ids": self.original_ids, **document}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        document = dict(document)
        original_ids = document.pop("original_ids", None)
        tokenizer = super().read(document, path)
        if (document.get("normalizer") or {}).get("type") != "BertNormalizer":
            raise ModelError(f"The tokenizer {path} is damaged (no normaliser of BERT). Restore it from a copy.")
        if original_ids is not None:
            is_valid = (
                isinstance(original_ids, list)
                and all(type(number) is int and number >= 0 for number in original_ids)
                and len(set(original_ids)) == len(original_ids) >= len(SPECIAL_SYMBOLS)
            )
            if not is_valid:
                raise ModelError(f"The tokenizer {path} is damaged (original_ids). Restore it from a copy.")
            tokenizer.original_ids = tuple(original_ids)
        return tokenizer


class BertWordPieceConfig(VocabularyConfig):
    """WordPiece with BERT's normalisation (Devlin et al. 2019): control characters are removed, and words are split at
    spaces, punctuation marks and Chinese characters. Imported BERT models have such a vocabulary.
    """

    tokenizer: ClassVar[type[Tokenizer]] = BertTokenizer
    kind: Literal["bert"] = "bert"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS),
        description="Vocabulary size, including the 4 special symbols; null: the default of bpe. Every character of "
        "the corpus is always included twice, so the vocabulary may be larger.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Minimum number of occurrences in the corpus for a pair to be merged."
    )
    lowercase: bool = Field(True, description="Convert texts to lower case, as in BERT's uncased models.")
    strip_accents: bool | None = Field(
        None, description="Remove accents, such as that of é. null: as `lowercase`, as in BERT."
    )
    split_chinese: bool = Field(True, description="Make every Chinese character a separate word.")

    def with_size(self, pairs: int) -> "BertWordPieceConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> BertTokenizer:
        """Learn pieces from `texts`. The tokenizer depends only on the texts."""
        normaliser, splitter = self._normaliser(), BertPreTokenizer()
        words = count_words(
            texts, lambda text: (word for word, _ in splitter.pre_tokenize_str(normaliser.normalize_str(text)))
        )
        return self.tokenizer_of(learn_pieces(words, self.size or LARGEST_SIZE, self.min_frequency))

    def tokenizer_of(self, vocabulary: dict[str, int], original_ids: Sequence[int] | None = None) -> BertTokenizer:
        """Return the tokenizer with these settings. vocabulary: ids of the special symbols and of the pieces."""
        library = Library(piece_model(vocabulary))
        library.normalizer = self._normaliser()
        library.pre_tokenizer = BertPreTokenizer()
        return BertTokenizer(library, original_ids)

    def _normaliser(self) -> BertNormalizer:
        return BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
