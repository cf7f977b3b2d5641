"""`HuggingFaceTokenizer`: base class of tokenizers that split with Hugging Face's `tokenizers` library."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from tokenizers import Tokenizer as Library
from tokenizers.normalizers import Prepend
from tokenizers.pre_tokenizers import Split

from dragoman.base.errors import DataError, ModelError
from dragoman.text.pieces import words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer, check_unicode


class HuggingFaceTokenizer(Tokenizer):
    """Splits texts with the library. Decoding is implemented here, because UNKs may have replacements.

    model: the library's name for the model. needs: required contents of a file of this kind, for messages.
    """

    model: ClassVar[str]
    needs: ClassVar[str]

    def __init__(self, library: Library) -> None:
        """library: a tokenizer as created by `learn` of this kind's settings."""
        self._library = library
        self._further: Library | None = None
        model: dict[str, Any] = json.loads(library.to_str())["model"]
        if model["type"] != self.model:
            raise KeyError(f"it contains a {model['type']}, not a {self.model}")
        symbols = _symbols(model["vocab"])
        ordinary = [self._surface(symbol) for symbol in symbols[len(SPECIAL_SYMBOLS) :]]
        super().__init__(symbols, [b""] * len(SPECIAL_SYMBOLS) + ordinary)

    def _surface(self, symbol: str) -> bytes:
        """The UTF-8 of a symbol."""
        return symbol.encode()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts, on all cores."""
        return _encoded(self._library, texts)

    def encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts that continue other texts: no space is added before them."""
        if self._further is None:
            document = {**json.loads(self._library.to_str()), "normalizer": None}
            self._further = Library.from_str(json.dumps(document, ensure_ascii=False))
        return _encoded(self._further, texts)

    def words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the index of the word for each id, and the words."""
        check_unicode([text])
        places = self._library.encode(text, add_special_tokens=False).word_ids
        return [place for place in places if place is not None], [
            word for word, _ in self._splitter().pre_tokenize_str(self._prepared(text))
        ]

    def _splitter(self) -> Split:
        return words_splitter()

    def _prepared(self, text: str) -> str:
        """The text with the space that the library adds."""
        return " " + text if text else text

    def _document(self) -> str:
        """The library's JSON, with the kind as its first key."""
        document = {"kind": self.kind, **json.loads(self._library.to_str())}
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        inner = {key: value for key, value in document.items() if key != "kind"}
        try:
            tokenizer = cls(Library.from_str(json.dumps(inner, ensure_ascii=False)))
        except Exception as error:  # the library raises a bare Exception; KeyError indicates another kind of file
            raise ModelError(f"The tokenizer {path} is damaged ({error}); restore it from a copy.") from error
        tokenizer._check(path, cls.needs)
        return tokenizer


def pipeline(model: Any, splitter: Any, add_space: bool = True) -> Library:
    """Return a library tokenizer that adds a space before texts, splits them by `splitter`, and does not normalise."""
    library = Library(model)
    if add_space:
        library.normalizer = Prepend(" ")
    library.pre_tokenizer = splitter
    return library


def trained(library: Library, trainer: Any, texts: Iterable[str]) -> Library:
    """Train a tokenizer. The same texts in the same order give the same vocabulary."""
    try:
        library.train_from_iterator(texts, trainer)
    except UnicodeEncodeError as error:
        raise DataError(f"A training text is not valid Unicode ({error.reason}); clean the corpus.") from error
    document = json.loads(library.to_str())
    document["added_tokens"] = []  # otherwise the library would find `</s>` inside the user's text
    return Library.from_str(json.dumps(document, ensure_ascii=False))


def _encoded(library: Library, texts: Sequence[str]) -> list[list[int]]:
    try:
        encodings = library.encode_batch_fast(list(texts), add_special_tokens=False)
    except TypeError as error:
        check_unicode(texts)
        raise DataError("A text to tokenise is not a string.") from error
    return [encoding.ids for encoding in encodings]


def _symbols(vocabulary: Any) -> list[str]:
    """The symbols in the order of their ids. Raises KeyError if ids are missing."""
    if isinstance(vocabulary, list):  # unigram model: (symbol, log-probability) in order
        return [symbol for symbol, _ in vocabulary]
    ordered = sorted(vocabulary.items(), key=lambda item: int(item[1]))
    if [number for _, number in ordered] != list(range(len(ordered))):
        raise KeyError("its ids have gaps")
    return [symbol for symbol, _ in ordered]
