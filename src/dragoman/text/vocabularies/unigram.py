"""Unigram language model, which splits each word into its most probable segmentation."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import UnigramTrainer

from dragoman.text.pieces import WORDS, divided_words, words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, count_words, default_size, occurrences
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline, train

_BYTES = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
SMALLEST_SIZE = len(SPECIAL_SYMBOLS) + len(_BYTES)
COVERAGE = 0.9995
"""Fraction of the characters in the corpus that are covered by single-character pieces instead of bytes. Source:
SentencePiece's character_coverage."""


class UnigramTokenizer(HuggingFaceTokenizer):
    """Splits words into pieces, with bytes for other characters: `decode(encode(text)) == text` for every text."""

    kind = "unigram"
    lossless = True
    model = "Unigram"
    needs: ClassVar[str] = "a unigram model with all bytes"

    def _surface(self, symbol: str) -> bytes:
        return _BYTES.get(symbol) or symbol.encode()


class UnigramConfig(VocabularyConfig):
    """Unigram language model over pieces (Kudo 2018). Unknown characters are encoded as bytes (SentencePiece's byte
    fallback).
    """

    tokenizer: ClassVar[type[Tokenizer]] = UnigramTokenizer
    kind: Literal["unigram"] = "unigram"
    size: int | None = Field(
        default=None,
        gt=SMALLEST_SIZE + 1,
        description="Vocabulary size, including the 4 special symbols and the 256 bytes; null: the default of bpe. A "
        "small corpus may yield fewer entries.",
    )

    def with_size(self, pairs: int) -> "UnigramConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> UnigramTokenizer:
        """Learn pieces from `texts`. The tokenizer depends only on the texts."""
        splitter = words_splitter(divided_words() if divide_unspaced else WORDS)
        words = count_words(texts, lambda text: (word for word, _ in splitter.pre_tokenize_str(" " + text)))
        size = (self.size or LARGEST_SIZE) - len(_BYTES)
        trainer = UnigramTrainer(
            vocab_size=size,
            special_tokens=list(SPECIAL_SYMBOLS),
            unk_token=SPECIAL_SYMBOLS[UNK],
            show_progress=False,
        )
        library = pipeline(Unigram(), Split("\n", "removed"), add_space=False)
        parts = _split_at_rare_characters(words, (size - len(SPECIAL_SYMBOLS)) // 2)
        library = train(library, trainer, occurrences(parts, "\n"))
        learned = json.loads(library.to_str())["model"]["vocab"][len(SPECIAL_SYMBOLS) :]
        entries = [(symbol, 0.0) for symbol in (*SPECIAL_SYMBOLS, *_BYTES)] + _sort_pieces(learned)
        model = Unigram(entries, unk_id=UNK, byte_fallback=True)
        return UnigramTokenizer(pipeline(model, splitter))


def _split_at_rare_characters(words: Counter[str], limit: int) -> Counter[str]:
    """Split words at the characters that are encoded as bytes.

    These are all characters except the most frequent ones: at most `limit`, and only as many as cover COVERAGE of the
    text.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    frequent = sorted(counts, key=lambda letter: (-counts[letter], letter))[: max(1, limit)]
    covered, alphabet = 0, set()
    for letter in frequent:
        if covered >= COVERAGE * counts.total():
            break
        covered += counts[letter]
        alphabet.add(letter)
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part in "".join(letter if letter in alphabet else "\n" for letter in word).split("\n"):
            if part:
                parts[part] += count
    return parts


def _sort_pieces(learned: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Sort pieces and round log-probabilities, so that the result is deterministic.

    The last digits of the library's log-probabilities vary between runs. Characters that pruning would have removed
    have the lowest values, 1e-4 apart, in an order that varies as well.
    """
    pieces = sorted(((value, piece) for piece, value in learned), key=lambda item: (round(item[0], 6), item[1]))
    end = 0
    while end < len(pieces) and len(pieces[end][1]) == 1 and pieces[end][0] - pieces[max(end - 1, 0)][0] < 1.1e-4:
        end += 1
    pruned = sorted(piece for _, piece in pieces[:end])
    values = [round(value, 4) for value, _ in pieces]
    names = [*pruned, *(piece for _, piece in pieces[end:])]
    return sorted(zip(names, values, strict=True), key=lambda item: (-item[1], item[0]))
