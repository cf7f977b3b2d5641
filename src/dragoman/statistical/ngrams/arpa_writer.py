"""Writes n-gram models in ARPA format, in the dialects of KenLM, SRILM, IRSTLM and the CMU toolkit."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.companion import compressor_for
from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_file
from dragoman.models.kinds.ngram import NgramModel
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer

_SPACE = "▁"
_LINES = 100_000
"""Number of lines that are compressed at once."""


_PREAMBLE = "This file is in ARPA format. Probabilities and back-off weights are base-10 logarithms."


class Dialect(NamedTuple):
    """The details in which programs differ.

    begin: log₁₀ p of <s>. preamble: lines before the header. size: format of a line of the header. separator: between
    the probability, the words and the back-off weight. unknown: the name of unknown words. all_backoffs: whether
    back-off weights of 0 are written for n-grams that no longer n-gram extends.
    """

    begin: str
    preamble: tuple[str, ...]
    size: str
    separator: str
    unknown: str
    all_backoffs: bool


DIALECTS = {
    "kenlm": Dialect("0", (), "ngram {}={}", "\t", "<unk>", True),
    "srilm": Dialect("-99", ("",), "ngram {}={}", "\t", "<unk>", False),
    "irstlm": Dialect("-99", ("",), "ngram {:2}={:10}", "\t", "<unk>", True),
    "cmu": Dialect("-99", (_PREAMBLE, ""), "ngram {}={}", " ", "<UNK>", False),
}
"""The dialects by name."""


def write_arpa(path: Path, model: NgramModel, tokenizer: Tokenizer, dialect: str = "kenlm") -> None:
    """Write a model as an ARPA file, compressed if the path ends with .gz, .bz2, .xz or .zst.

    All digits of the 32-bit values are written, so `read_arpa` returns the same values. Raises ConfigError for an
    unknown dialect, ModelError if two entries of the vocabulary have the same name.
    """
    if dialect not in DIALECTS:
        raise ConfigError(f"unknown ARPA dialect {dialect!r}: expected one of {', '.join(DIALECTS)}")
    lines = _lines(model, arpa_words(tokenizer), len(tokenizer.tags), DIALECTS[dialect])
    compress = compressor_for(Path(path))
    with atomic_file(Path(path)) as temporary, temporary.open("wb") as file:
        while part := list(islice(lines, _LINES)):
            file.write(compress("".join(f"{line}\n" for line in part).encode()))


def arpa_words(tokenizer: Tokenizer) -> list[str]:
    """Return the name of each entry of a vocabulary in an ARPA file.

    A space is written as ▁, and other white space as its code in hexadecimal. Raises ModelError if two names are equal.
    """
    words = ["".join(map(_readable, symbol)) for symbol in tokenizer.symbols]
    seen: dict[str, int] = {}
    for number, word in enumerate(words):
        if seen.setdefault(word, number) != number:
            raise ModelError(
                f"the entries {seen[word]} and {number} of the vocabulary have the same ARPA name {word!r}"
            )
    return words


def _readable(character: str) -> str:
    if character == " ":
        return _SPACE
    return f"<0x{ord(character):02X}>" if character in "\t\n\r\f\v" else character


def _lines(model: NgramModel, words: list[str], tags: int, dialect: Dialect) -> Iterator[str]:
    tables = model.tables
    unigrams = [UNK, BOS, EOS, *range(len(SPECIAL_SYMBOLS), len(words) - tags)]
    names = [*words]
    names[UNK] = dialect.unknown
    yield from dialect.preamble
    yield "\\data\\"
    for order, table in enumerate(tables, start=1):
        yield dialect.size.format(order, len(table.keys) if order > 1 else len(unigrams))
    texts: list[str] = []
    for order, table in enumerate(tables, start=1):
        yield ""
        yield f"\\{order}-grams:"
        keys = table.keys.numpy()
        if order == 1:
            texts = names
        else:
            texts = [f"{texts[key // model.vocabulary]} {names[key % model.vocabulary]}" for key in keys.tolist()]
        probabilities = _digits(table.log10_probabilities.numpy())
        backoffs = _backoffs(model, order, dialect)
        rows: Sequence[int] = range(len(keys))
        if order == 1:
            probabilities[BOS] = dialect.begin
            rows = unigrams
        for row in rows:
            fields = (
                (probabilities[row], texts[row], backoffs[row]) if backoffs[row] else (probabilities[row], texts[row])
            )
            yield dialect.separator.join(fields)
    yield ""
    yield "\\end\\"


def _digits(values: NDArray[np.float32]) -> list[str]:
    """Return the shortest decimal numbers that are read as the same 32-bit values."""
    parts = (values[start : start + _LINES].astype(str).tolist() for start in range(0, len(values), _LINES))
    return [text for part in parts for text in part]


def _backoffs(model: NgramModel, order: int, dialect: Dialect) -> list[str]:
    """Return the back-off weights of the n-grams of an order; empty texts for those that are not written."""
    tables = model.tables
    weights = tables[order - 1].log10_backoffs
    if weights is None:
        return [""] * len(tables[order - 1].keys)
    values = weights.numpy()
    texts = _digits(values)
    if dialect.all_backoffs:
        return texts
    needed = values != 0
    needed[tables[order].keys.numpy() // model.vocabulary] = True
    return [text if each else "" for text, each in zip(texts, needed.tolist(), strict=True)]
