"""`HuggingFaceTokenizer`: base class of tokenizers that split with Hugging Face's `tokenizers` library."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from tokenizers import Tokenizer as Library
from tokenizers.normalizers import Prepend
from tokenizers.pre_tokenizers import Split

from dragoman.base.errors import DataError, ModelError
from dragoman.text.pieces import WORDS, words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer, check_unicode


class HuggingFaceTokenizer(Tokenizer):
    """Splits texts with the library. Decoding does not use the library, because UNKs may have replacements.

    model: the library's name of the model. needs: required content of a file of this kind, for messages.
    """

    model: ClassVar[str]
    needs: ClassVar[str]

    def __init__(self, library: Library) -> None:
        """library: a tokenizer created by the `learn` method of the settings of this kind."""
        self._library = library
        self._continuation: Library | None = None
        self._words_splitter: Split | None = None
        model: dict[str, Any] = json.loads(library.to_str())["model"]
        if model["type"] != self.model:
            raise KeyError(f"it contains a {model['type']}, not a {self.model}")
        symbols = _symbols(model["vocab"])
        ordinary = [self._surface(symbol) for symbol in symbols[len(SPECIAL_SYMBOLS) :]]
        super().__init__(symbols, [b""] * len(SPECIAL_SYMBOLS) + ordinary)

    def _surface(self, symbol: str) -> bytes:
        """Return the UTF-8 bytes of a symbol."""
        return symbol.encode()

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of normalised texts, on all cores."""
        return _encode(self._library, texts)

    def _encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode normalised texts that continue other texts, without adding a space before them."""
        if self._continuation is None:
            document = {**json.loads(self._library.to_str()), "normalizer": None}
            self._continuation = Library.from_str(json.dumps(document, ensure_ascii=False))
        return _encode(self._continuation, texts)

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the word index of each id, and the words."""
        check_unicode([text])
        indices = self._library.encode(text, add_special_tokens=False).word_ids
        return [index for index in indices if index is not None], [
            word for word, _ in self._splitter().pre_tokenize_str(self._add_space(text))
        ]

    def _splitter(self) -> Split:
        """Return the library's splitter into words, or that of `pieces.WORDS` if it has none."""
        if self._words_splitter is None:
            splitter = json.loads(self._library.to_str())["pre_tokenizer"]
            if splitter["type"] == "Sequence":
                splitter = splitter["pretokenizers"][0]
            pattern = splitter["pattern"]["Regex"] if "pattern" in splitter else WORDS
            self._words_splitter = words_splitter(pattern)
        return self._words_splitter

    def _add_space(self, text: str) -> str:
        """Return the text with the space that the library adds, if any."""
        return " " + text if text else text

    def _document(self) -> str:
        """Return the library's JSON document, with the kind as its first key."""
        document = {"kind": self.kind, **json.loads(self._library.to_str())}
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        inner = {key: value for key, value in document.items() if key != "kind"}
        try:
            tokenizer = cls(Library.from_str(json.dumps(inner, ensure_ascii=False)))
        except Exception as error:  # the library raises a bare Exception; KeyError indicates another kind of file
            raise ModelError(f"The tokenizer {path} is damaged ({error}). Restore it from a copy.") from error
        tokenizer._check(path, cls.needs)
        return tokenizer


def pipeline(model: Any, splitter: Any, add_space: bool = True) -> Library:
    """Return a tokenizer of the library that adds a space before a text and splits it, without normalisation."""
    library = Library(model)
    if add_space:
        library.normalizer = Prepend(" ")
    library.pre_tokenizer = splitter
    return library


def train(library: Library, trainer: Any, texts: Iterable[str]) -> Library:
    """Return a trained copy of a tokenizer. The vocabulary depends only on the texts and their order."""
    try:
        library.train_from_iterator(texts, trainer)
    except UnicodeEncodeError as error:
        raise DataError(f"A training text is not valid Unicode ({error.reason}). Clean the corpus.") from error
    document = json.loads(library.to_str())
    document["added_tokens"] = []  # added tokens such as `</s>` would be recognised inside the user's text
    return Library.from_str(json.dumps(document, ensure_ascii=False))


def _encode(library: Library, texts: Sequence[str]) -> list[list[int]]:
    try:
        encodings = library.encode_batch_fast(list(texts), add_special_tokens=False)
    except TypeError as error:
        check_unicode(texts)
        raise DataError("A text to tokenise is not a string.") from error
    return [encoding.ids for encoding in encodings]


def _symbols(vocabulary: Any) -> list[str]:
    """Return the symbols in the order of their ids. Raises KeyError if ids are missing."""
    if isinstance(vocabulary, list):  # unigram model: (symbol, log-probability) in order
        return [symbol for symbol, _ in vocabulary]
    ordered = sorted(vocabulary.items(), key=lambda item: int(item[1]))
    if [number for _, number in ordered] != list(range(len(ordered))):
        raise KeyError("its ids have gaps")
    return [symbol for symbol, _ in ordered]
