"""Unigram language model: of all ways to cut a word, the most probable."""

import json
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers import Tokenizer as Library
from tokenizers.models import Unigram
from tokenizers.trainers import UnigramTrainer

from dragoman.base.errors import ConfigError
from dragoman.text.boundaries import words_splitter
from dragoman.text.library import LibraryTokenizer, pipeline, trained
from dragoman.text.special import SPECIAL_SYMBOLS, UNK
from dragoman.text.subword import LARGEST_SIZE, SubwordModel, usual_size
from dragoman.text.tokenizer import Tokenizer

_BYTES = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
SMALLEST_SIZE = len(SPECIAL_SYMBOLS) + len(_BYTES)


class UnigramTokenizer(LibraryTokenizer):
    """Pieces of words, and bytes for what no piece can write: `decode(encode(text)) == text` for every Unicode text."""

    kind = "unigram"
    lossless = True
    model = "Unigram"
    needs: ClassVar[str] = "a unigram model with all bytes"

    def _surface(self, symbol: str) -> bytes:
        return _BYTES.get(symbol) or symbol.encode()


class UnigramConfig(SubwordModel):
    """A unigram language model over pieces (Kudo 2018), unknown characters as bytes (SentencePiece's byte fallback)."""

    tokenizer: ClassVar[type[Tokenizer]] = UnigramTokenizer
    kind: Literal["unigram"] = "unigram"
    size: int | None = Field(
        default=None,
        gt=SMALLEST_SIZE,
        description="Symbols in a vocabulary, the 4 special ones and the 256 bytes included; null: as many as for bpe. "
        "A small corpus may yield fewer.",
    )

    def sized(self, pairs: int) -> "UnigramConfig":
        """The config with a size, chosen for a corpus of so many sentence pairs where none was given."""
        return self if self.size is not None else self.model_copy(update={"size": usual_size(pairs)})

    def learn(self, texts: Iterable[str]) -> UnigramTokenizer:
        """Learn pieces from `texts`. The same texts give the same tokenizer."""
        trainer = UnigramTrainer(
            vocab_size=(self.size or LARGEST_SIZE) - len(_BYTES),
            special_tokens=list(SPECIAL_SYMBOLS),
            unk_token=SPECIAL_SYMBOLS[UNK],
            show_progress=False,
        )
        try:
            library = trained(pipeline(Unigram(), words_splitter()), trainer, texts)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"text.subword: cannot learn a unigram model ({error}): set a larger size") from error
        learned = json.loads(library.to_str())["model"]["vocab"][len(SPECIAL_SYMBOLS) :]
        entries = [(symbol, 0.0) for symbol in (*SPECIAL_SYMBOLS, *_BYTES)] + _in_order(learned)
        model = Unigram(entries, unk_id=UNK, byte_fallback=True)
        return UnigramTokenizer(_with_model(library, model))


def _with_model(library: Library, model: Unigram) -> Library:
    return pipeline(model, library.pre_tokenizer)


def _in_order(learned: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces and their log-probabilities, freed of what differs between two runs of the library.

    Its sums differ in the last digits, and the characters that pruning would have lost get the lowest values, a
    ten-thousandth apart, in no fixed order.
    """
    pieces = sorted(((value, piece) for piece, value in learned), key=lambda item: (round(item[0], 6), item[1]))
    end = 0
    while end < len(pieces) and len(pieces[end][1]) == 1 and pieces[end][0] - pieces[max(end - 1, 0)][0] < 1.1e-4:
        end += 1
    lost = sorted(piece for _, piece in pieces[:end])
    values = [round(value, 4) for value, _ in pieces]
    names = [*lost, *(piece for _, piece in pieces[end:])]
    return sorted(zip(names, values, strict=True), key=lambda item: (-item[1], item[0]))
