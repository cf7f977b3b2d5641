"""Byte-pair encoding over characters, with exactly the same splits as subword-nmt."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field
from tokenizers import Tokenizer as Library
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import BpeTrainer

from dragoman.base.errors import DataError, ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import VocabularyConfig, count_words, default_size, occurrences

END_OF_WORD = "</w>"
OLDEST, USUAL = (0, 1), (0, 2)
"""Versions of the codes: in the first, the end of a word is a separate symbol; in the second, it is part of the last
symbol."""

CACHED_WORDS = 200_000


class Piece(NamedTuple):
    """A piece of a word. final: whether it ends the word."""

    text: str
    final: bool


class Codes(NamedTuple):
    """The codes of subword-nmt: pairs of symbols in the order of the merges."""

    version: tuple[int, ...]
    merges: tuple[tuple[str, str], ...]


class SubwordNMTTokenizer(Tokenizer):
    """Splits words that are separated by spaces; several spaces count as one. Unknown characters become UNK."""

    kind = "subword_nmt"
    added_space = "last"

    def __init__(self, codes: Codes, alphabet: Iterable[str]) -> None:
        """alphabet: the known characters."""
        self._codes, self._alphabet = codes, sorted(set(alphabet))
        self._ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(codes.merges):
            self._ranks.setdefault(pair, rank)
        entries = dict.fromkeys(Piece(letter, final) for letter in self._alphabet for final in (False, True))
        for left, right in codes.merges:
            entries.update(dict.fromkeys(_products(left + right, codes.version)))
        self._pieces = list(entries)
        self._ids = {piece: number for number, piece in enumerate(self._pieces, start=len(SPECIAL_SYMBOLS))}
        self._words: dict[str, tuple[Piece, ...]] = {}
        names = [piece.text if piece.final else piece.text + "@@" for piece in self._pieces]
        surfaces = [(piece.text + " " if piece.final else piece.text).encode() for piece in self._pieces]
        super().__init__([*SPECIAL_SYMBOLS, *names], [b""] * len(SPECIAL_SYMBOLS) + surfaces)

    def segment(self, word: str) -> tuple[Piece, ...]:
        """Split a word like `encode` in subword-nmt's apply_bpe.py; pieces may be unknown.

        Among the pairs of the word, the one that was learned first is merged everywhere in the word, from left to
        right, until no learned pair is left (Sennrich et al. 2016, section 3.2).
        """
        pieces = self._words.get(word)
        if pieces is None:
            pieces = self._merged(word) if len(word) > 1 else (Piece(word, True),)
            if len(self._words) >= CACHED_WORDS:
                self._words.clear()
            self._words[word] = pieces
        return pieces

    def _merged(self, word: str) -> tuple[Piece, ...]:
        oldest = self._codes.version == OLDEST
        symbols = [*word, END_OF_WORD] if oldest else [*word[:-1], word[-1] + END_OF_WORD]
        ranks, never = self._ranks, len(self._codes.merges)
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: ranks.get(pair, never))
            if best not in ranks:
                break
            merged: list[str] = []
            place = 0
            while place < len(symbols):
                found = tuple(symbols[place : place + 2]) == best
                merged.append(best[0] + best[1] if found else symbols[place])
                place += 1 + found
            symbols = merged
        if symbols[-1] == END_OF_WORD:
            symbols.pop()
        else:
            symbols[-1] = symbols[-1].removesuffix(END_OF_WORD)
        *inner, last = symbols
        return (*(Piece(symbol, False) for symbol in inner), Piece(last, True))

    def _known(self, text: str) -> Iterator[Piece]:
        """Yield the pieces of a text; pieces that are not in the vocabulary are split into characters."""
        for word in text.strip("\r\n ").split(" "):
            for piece in self.segment(word) if word else ():
                if piece in self._ids:
                    yield piece
                else:
                    yield from (Piece(letter, False) for letter in piece.text[:-1])
                    yield Piece(piece.text[-1], piece.final)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts."""
        check_unicode(texts)
        return [[self._ids.get(piece, UNK) for piece in self._known(text)] for text in texts]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces in subword-nmt's notation."""
        return [self._symbols[int(number)] for number in ids]

    def words(self, text: str) -> tuple[list[int], list[str]]:
        """Like `Tokenizer.words`; each piece is a word, because only single characters are unknown, and has a space
        after it if it ends a word of the text.
        """
        pieces = list(self._known(text))
        return list(range(len(pieces))), [piece.text + " " if piece.final else piece.text for piece in pieces]

    def whole_words(self) -> list[str | None]:
        """Return the pieces in subword-nmt's notation, as found in word vectors trained on its output."""
        names = self._symbols[len(SPECIAL_SYMBOLS) : self._first_tag]
        return [*[None] * len(SPECIAL_SYMBOLS), *names, *[None] * len(self.tags)]

    def _document(self) -> str:
        """JSON with the codes and the alphabet."""
        content = {
            "kind": self.kind,
            "version": list(self._codes.version),
            "alphabet": self._alphabet,
            "merges": [list(pair) for pair in self._codes.merges],
        }
        return json.dumps(content, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        try:
            merges = tuple((str(left), str(right)) for left, right in document["merges"])
            version = tuple(int(number) for number in document["version"])
            return cls(Codes(version, merges), [str(letter) for letter in document["alphabet"]])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"The tokenizer {path} is damaged ({error!r}); restore it from a copy.") from error


class SubwordNMTConfig(VocabularyConfig):
    """Byte-pair encoding over characters (Sennrich et al. 2016), for text with space-separated tokens.

    With a `codes` file of subword-nmt, the pieces are those of its apply-bpe. Its options --vocabulary, --glossaries
    and --dropout are not supported. Texts of known characters with single spaces are encoded without loss.
    """

    tokenizer: ClassVar[type[Tokenizer]] = SubwordNMTTokenizer
    kind: Literal["subword_nmt"] = "subword_nmt"
    codes: Path | None = Field(
        default=None,
        description="Codes file written by learn-bpe of subword-nmt; null: merges are learned from the corpus.",
    )
    merges: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of merges; null: all merges of `codes`, or otherwise the vocabulary size of bpe. "
        "The vocabulary also contains each character of the corpus twice, inside a word and at its end.",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Minimum number of occurrences in the corpus for a pair to be merged. Source: subword-nmt.",
    )

    @property
    def files(self) -> tuple[Path, ...]:
        """The codes."""
        return () if self.codes is None else (self.codes,)

    def with_size(self, pairs: int) -> "SubwordNMTConfig":
        """Set the number of merges for a corpus of `pairs` sentence pairs, unless merges or codes are given."""
        given = self.merges is not None or self.codes is not None
        return self if given else self.model_copy(update={"merges": default_size(pairs)})

    def learn(self, texts: Iterable[str]) -> SubwordNMTTokenizer:
        """Learn merges and alphabet from `texts`; with a codes file, the alphabet only."""
        words = count_words(texts, lambda text: text.strip("\r\n ").split(" "))
        alphabet = {letter for word in words for letter in word}
        if self.codes is None:
            codes = Codes(USUAL, tuple(_learned(words, self.merges or default_size(0), self.min_frequency)))
        else:
            codes = read_codes(self.codes)
            codes = codes._replace(merges=codes.merges[: self.merges])
            alphabet |= {letter for pair in codes.merges for part in pair for letter in part.removesuffix(END_OF_WORD)}
        return SubwordNMTTokenizer(codes, alphabet)


def read_codes(path: Path) -> Codes:
    """Read a file of subword-nmt's learn-bpe. Raises DataError with the number of an invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Cannot read the codes {path} ({error}); text.subword.codes must be a file of learn-bpe."
        ) from error
    version = OLDEST
    first = 1
    if lines[0].startswith("#version:"):
        name = lines.pop(0).split()[-1]
        first = 2
        if name not in ("0.1", "0.2"):
            raise DataError(f"{path}, line 1: codes of version {name}; only versions 0.1 and 0.2 are supported.")
        version = USUAL if name == "0.2" else OLDEST
    merges = []
    for number, line in enumerate(lines, start=first):
        left, blank, right = line.strip("\r\n ").partition(" ")
        if not blank or not left or not right or " " in right:
            raise DataError(f"{path}, line {number}: not two symbols separated by a space: {line[:60]!r}.")
        merges.append((left, right))
    return Codes(version, tuple(merges))


def _products(product: str, version: tuple[int, ...]) -> list[Piece]:
    """The pieces that a merged symbol can become."""
    if product.endswith(END_OF_WORD) and product != END_OF_WORD:
        return [Piece(product.removesuffix(END_OF_WORD), True)]
    # The end of a word may remain as a separate symbol.
    return [Piece(product, False), Piece(product, True)] if version == OLDEST else [Piece(product, False)]


def _learned(words: Counter[str], merges: int, min_frequency: int) -> list[tuple[str, str]]:
    """Learn merges with the library; for equally frequent pairs, subword-nmt may choose differently."""
    letters = sorted({letter for word in words for letter in word})
    ends = sorted({word[-1] + END_OF_WORD for word in words})
    library = Library(BPE(end_of_word_suffix=END_OF_WORD))
    library.pre_tokenizer = Split(" ", "removed")
    trainer = BpeTrainer(
        vocab_size=len(letters) + len(ends) + merges,
        min_frequency=min_frequency,
        initial_alphabet=letters,
        special_tokens=ends,  # otherwise their numbering, which breaks ties, would not be deterministic
        end_of_word_suffix=END_OF_WORD,
        show_progress=False,
    )
    library.train_from_iterator(occurrences(words, " "), trainer)
    found = json.loads(library.to_str())["model"]["merges"]
    return [(left, right) for left, right in found[:merges]]
