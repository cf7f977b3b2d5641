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
from dragoman.text.vocabularies.foreign import CODES, FASTBPE, SENTENCEPIECE, recognise_vocabulary

END_OF_WORD = "</w>"
VERSION_0_1, VERSION_0_2 = (0, 1), (0, 2)
"""Versions of codes files. In version 0.1, the end of a word is a separate symbol. In version 0.2, it is part of the
last symbol."""

_LEARN = "Remove text.subword.codes to learn merges from the corpus"
_REMEDIES = {
    FASTBPE: "Convert it with: (echo '#version: 0.2'; cut -d ' ' -f 1,2 {path}) > codes.txt",
    SENTENCEPIECE: "For a vocabulary of this kind, learn one with text.subword.kind=sentencepiece",
}
"""Advice for files of other tools."""

CACHED_LETTERS = 1_500_000
"""Maximum total length of the words in the cache, about 200,000 words of languages that separate words."""


class Piece(NamedTuple):
    """A piece of a word. final: whether it ends the word."""

    text: str
    final: bool


class Codes(NamedTuple):
    """The content of a codes file of subword-nmt. merges: pairs of symbols, in the order in which they are merged."""

    version: tuple[int, ...]
    merges: tuple[tuple[str, str], ...]


class SubwordNMTTokenizer(Tokenizer):
    """Splits words that are separated by one or more spaces. Unknown characters become UNK."""

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
            entries.update(dict.fromkeys(_pieces_of(left + right, codes.version)))
        self._pieces = list(entries)
        self._ids = {piece: number for number, piece in enumerate(self._pieces, start=len(SPECIAL_SYMBOLS))}
        self._segments: dict[str, tuple[Piece, ...]] = {}
        self._cached_letters = 0
        names = [piece.text if piece.final else piece.text + "@@" for piece in self._pieces]
        surfaces = [(piece.text + " " if piece.final else piece.text).encode() for piece in self._pieces]
        super().__init__([*SPECIAL_SYMBOLS, *names], [b""] * len(SPECIAL_SYMBOLS) + surfaces)

    def segment(self, word: str) -> tuple[Piece, ...]:
        """Split a word in the same way as `encode` in subword-nmt's apply_bpe.py. Pieces may be unknown.

        In every step, the pair that was learned first is merged everywhere in the word, from left to right, until the
        word contains no learned pair (Sennrich et al. 2016, section 3.2).
        """
        pieces = self._segments.get(word)
        if pieces is None:
            pieces = self._split_word(word) if len(word) > 1 else (Piece(word, True),)
            if self._cached_letters >= CACHED_LETTERS:
                self._segments.clear()
                self._cached_letters = 0
            self._segments[word] = pieces
            self._cached_letters += len(word)
        return pieces

    def _split_word(self, word: str) -> tuple[Piece, ...]:
        has_end_symbol = self._codes.version == VERSION_0_1
        symbols = [*word, END_OF_WORD] if has_end_symbol else [*word[:-1], word[-1] + END_OF_WORD]
        ranks, never = self._ranks, len(self._codes.merges)
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: ranks.get(pair, never))
            if best not in ranks:
                break
            merged: list[str] = []
            position = 0
            while position < len(symbols):
                is_best = tuple(symbols[position : position + 2]) == best
                merged.append(best[0] + best[1] if is_best else symbols[position])
                position += 1 + is_best
            symbols = merged
        if symbols[-1] == END_OF_WORD:
            symbols.pop()
        else:
            symbols[-1] = symbols[-1].removesuffix(END_OF_WORD)
        *inner, last = symbols
        return (*(Piece(symbol, False) for symbol in inner), Piece(last, True))

    def _split_text(self, text: str) -> Iterator[Piece]:
        """Yield the pieces of a text. Pieces that are not in the vocabulary are split into characters."""
        for word in text.strip("\r\n ").split(" "):
            for piece in self.segment(word) if word else ():
                if piece in self._ids:
                    yield piece
                else:
                    yield from (Piece(letter, False) for letter in piece.text[:-1])
                    yield Piece(piece.text[-1], piece.final)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of normalised texts."""
        check_unicode(texts)
        return [[self._ids.get(piece, UNK) for piece in self._split_text(text)] for text in texts]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces in subword-nmt's notation."""
        return [self._symbols[int(number)] for number in ids]

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the words as in `Tokenizer.words`, where each piece is a word, because only single characters are
        unknown. A piece that ends a word of the text includes the following space.
        """
        pieces = list(self._split_text(text))
        return list(range(len(pieces))), [piece.text + " " if piece.final else piece.text for piece in pieces]

    def whole_words(self) -> list[str | None]:
        """Return the pieces in subword-nmt's notation, as in word vectors that were trained on subword-nmt's output."""
        names = self._symbols[len(SPECIAL_SYMBOLS) : self._first_tag]
        return [*[None] * len(SPECIAL_SYMBOLS), *names, *[None] * len(self.tags)]

    def _document(self) -> str:
        """Return JSON with the codes and the alphabet."""
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
            raise ModelError(f"The tokenizer {path} is damaged ({error!r}). Restore it from a copy.") from error


class SubwordNMTConfig(VocabularyConfig):
    """Byte-pair encoding over characters (Sennrich et al. 2016), for text with space-separated tokens.

    With a `codes` file of subword-nmt, texts are split exactly as by apply-bpe, whose options --vocabulary,
    --glossaries and --dropout are not supported. Texts of known characters with single spaces are encoded without loss.
    """

    tokenizer: ClassVar[type[Tokenizer]] = SubwordNMTTokenizer
    kind: Literal["subword_nmt"] = "subword_nmt"
    codes: Path | None = Field(
        default=None,
        description="Codes file written by subword-nmt's learn-bpe; null: merges are learned from the corpus.",
    )
    merges: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of merges; null: all merges of `codes` if it is set, else the default vocabulary "
        "size of bpe. The vocabulary also contains each character of the corpus twice: as it occurs inside a word and "
        "at the end of a word.",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Minimum number of occurrences in the corpus for a pair to be merged. Source: subword-nmt.",
    )

    @property
    def files(self) -> tuple[Path, ...]:
        """The codes file, if there is one."""
        return () if self.codes is None else (self.codes,)

    def with_size(self, pairs: int) -> "SubwordNMTConfig":
        """Return the settings with a number of merges for `pairs` sentence pairs, unless merges or codes are set."""
        is_set = self.merges is not None or self.codes is not None
        return self if is_set else self.model_copy(update={"merges": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> SubwordNMTTokenizer:
        """Learn merges and alphabet from `texts`. If a codes file is set, only the alphabet is learned."""
        words = count_words(texts, lambda text: text.strip("\r\n ").split(" "))
        alphabet = {letter for word in words for letter in word}
        if self.codes is None:
            codes = Codes(VERSION_0_2, tuple(_learn_merges(words, self.merges or default_size(0), self.min_frequency)))
        else:
            codes = read_codes(self.codes)
            codes = codes._replace(merges=codes.merges[: self.merges])
            alphabet |= {letter for pair in codes.merges for part in pair for letter in part.removesuffix(END_OF_WORD)}
        return SubwordNMTTokenizer(codes, alphabet)


def read_codes(path: Path) -> Codes:
    """Read a codes file of subword-nmt's learn-bpe.

    Raises DataError for a file of another tool, and with the line number if a line is invalid.
    """
    try:
        recognised = recognise_vocabulary(path)
        if recognised not in (None, CODES):
            raise DataError(
                f"{path} is {recognised}, but text.subword.codes must be a codes file of subword-nmt's learn-bpe. "
                f"{_REMEDIES.get(recognised, _LEARN).format(path=path)}"
            )
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Cannot read the codes {path} ({error}). text.subword.codes must be a codes file of learn-bpe."
        ) from error
    version = VERSION_0_1
    first = 1
    if lines[0].startswith("#version:"):
        name = lines.pop(0).split()[-1]
        first = 2
        if name not in ("0.1", "0.2"):
            raise DataError(f"{path}, line 1: unknown version {name}: expected one of 0.1, 0.2")
        version = VERSION_0_2 if name == "0.2" else VERSION_0_1
    merges = []
    for number, line in enumerate(lines, start=first):
        left, blank, right = line.strip("\r\n ").partition(" ")
        if not blank or not left or not right or " " in right:
            raise DataError(f"{path}, line {number}: not two symbols separated by a space: {line[:60]!r}.")
        merges.append((left, right))
    return Codes(version, tuple(merges))


def _pieces_of(symbol: str, version: tuple[int, ...]) -> list[Piece]:
    """Return the pieces that a merged symbol can form."""
    if symbol.endswith(END_OF_WORD) and symbol != END_OF_WORD:
        return [Piece(symbol.removesuffix(END_OF_WORD), True)]
    # In version 0.1, the symbol may be followed by a separate symbol for the end of the word.
    return [Piece(symbol, False), Piece(symbol, True)] if version == VERSION_0_1 else [Piece(symbol, False)]


def _learn_merges(words: Counter[str], merges: int, min_frequency: int) -> list[tuple[str, str]]:
    """Learn merges with the library, whose choice between equally frequent pairs may differ from subword-nmt's."""
    letters = sorted({letter for word in words for letter in word})
    ends = sorted({word[-1] + END_OF_WORD for word in words})
    library = Library(BPE(end_of_word_suffix=END_OF_WORD))
    library.pre_tokenizer = Split(" ", "removed")
    trainer = BpeTrainer(
        vocab_size=len(letters) + len(ends) + merges,
        min_frequency=min_frequency,
        initial_alphabet=letters,
        special_tokens=ends,  # as special tokens, they have deterministic ids, which break ties
        end_of_word_suffix=END_OF_WORD,
        show_progress=False,
    )
    library.train_from_iterator(occurrences(words, " "), trainer)
    learned = json.loads(library.to_str())["model"]["merges"]
    return [(left, right) for left, right in learned[:merges]]
