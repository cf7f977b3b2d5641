"""Reads n-gram models in ARPA format, as written by KenLM, SRILM, IRSTLM, the CMU toolkit and dragoman."""

import math
import re
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.data.files.lines import has_broken_utf8, open_lines
from dragoman.models.kinds.ngram import LOG_ZERO, MAX_ORDER, NgramModel, NgramTable
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS, UNK

NO_UNKNOWN = -100.0
"""log₁₀ p of unknown words if a file does not contain `<unk>`, as in KenLM."""

_SPECIAL = {"<s>": BOS, "</s>": EOS, "<unk>": UNK, "<UNK>": UNK}
_COUNT = re.compile(r"ngram[ \t]+(\d+)[ \t]*=[ \t]*(\d+)")
_FIELDS = re.compile(r"[^ \t]+")
_ROUNDING = 1e-4
"""Largest log₁₀ p above 0 that is treated as a rounding error of 0."""


class ArpaModel(NamedTuple):
    """The content of an ARPA file. words: the words with the ids from 4, in the order of the file."""

    words: tuple[str, ...]
    tables: list[NgramTable]


def read_arpa(path: Path, ids: Mapping[str, int] | None = None, size: int = 0) -> ArpaModel:
    r"""Read an ARPA file, plain or compressed.

    ids: the id of each word of an existing vocabulary; None: words are numbered from 4 in the order of the file. size:
    number of entries of the existing vocabulary. An entry that the file does not contain has the probability of unknown
    words.

    Text before `\data\`, spaces or tabs between fields, missing back-off weights, and n-grams whose first words are not
    stored are accepted. Raises DataError, with the line, for a file that is truncated, whose sections are in the wrong
    order or contain another number of n-grams than the header states, and for invalid or duplicate n-grams.
    """
    return _Reader(Path(path), ids, size).read()


class _Section(NamedTuple):
    """The n-grams of one order. tokens: (N, k). lines: (N,), their lines in the file."""

    tokens: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    backoffs: NDArray[np.float64]
    lines: NDArray[np.int64]


class _Reader:
    def __init__(self, path: Path, ids: Mapping[str, int] | None, size: int) -> None:
        self.path, self.size = path, size
        self.is_open = ids is None
        self.ids = {**(ids or {}), **_SPECIAL}
        self.words: list[str] = []
        self.number, self.line = 0, ""
        self._lines = self._numbered()

    def read(self) -> ArpaModel:
        counts = self._header()
        sections = [self._section(order, count) for order, count in enumerate(counts, start=1)]
        if self.line.strip() != "\\end\\":
            self._fail(f"expected \\end\\, but found {self.line.strip()[:40]!r}")
        size = self.size or len(SPECIAL_SYMBOLS) + len(self.words)
        return ArpaModel(tuple(self.words), self._tables(sections, size))

    def _numbered(self) -> Iterator[str]:
        for line in open_lines(self.path, "any", check_encoding=False):
            self.number += 1
            if has_broken_utf8(line):
                self._fail("broken UTF-8. Convert the file (for example with iconv)")
            yield line

    def _next(self, expected: str) -> str:
        """Return the next line that is not blank. Raises DataError at the end of the file."""
        for line in self._lines:
            if line.strip(" \t"):
                self.line = line
                return line
        raise DataError(f"{self.path} is truncated: it ends after line {self.number}, before {expected}. Copy it again")

    def _header(self) -> list[int]:
        """Return the number of n-grams of each order, and read the line after them."""
        for line in self._lines:
            if line.strip() == "\\data\\":
                break
        else:
            raise DataError(f"{self.path} is not an ARPA file: it has no line \\data\\")
        counts: list[int] = []
        while not (line := self._next("\\1-grams:").strip()).startswith("\\"):
            match = _COUNT.fullmatch(line)
            if match is None or int(match[1]) != len(counts) + 1:
                self._fail(f"expected 'ngram {len(counts) + 1}=COUNT', but found {line[:40]!r}")
            counts.append(int(match[2]))
        if not counts:
            self._fail("expected 'ngram 1=COUNT'")
        if len(counts) > MAX_ORDER:
            self._fail(f"the model has order {len(counts)}, more than {MAX_ORDER}")
        return counts

    def _section(self, order: int, count: int) -> _Section:
        """Read a section, whose header is the current line, and the line after it."""
        if self.line.strip() != f"\\{order}-grams:":
            self._fail(f"expected \\{order}-grams:, but found {self.line.strip()[:40]!r}")
        start, unigrams = self.number, dict[int, int]()
        tokens, lines, probabilities, backoffs = array("q"), array("q"), array("d"), array("d")
        while not (line := self._next("\\end\\")).startswith("\\"):
            fields = _FIELDS.findall(line)
            if len(fields) not in (order + 1, order + 2):
                self._fail(
                    f"an n-gram of order {order} needs a probability, {order} words and at most one back-off weight"
                )
            probability = self._number(fields[0], "probability")
            if probability > _ROUNDING:
                self._fail(f"the log-probability {fields[0]} is above 0")
            backoffs.append(self._number(fields[-1], "back-off weight") if len(fields) == order + 2 else 0.0)
            tokens.extend(self._id(word, order) for word in fields[1 : order + 1])
            if order == 1 and (earlier := unigrams.setdefault(tokens[-1], self.number)) != self.number:
                self._fail(f"this n-gram is already in line {earlier}")
            probabilities.append(min(probability, 0.0))
            lines.append(self.number)
        if len(lines) != count:
            self._fail(
                f"the section \\{order}-grams: from line {start} contains {len(lines):,} n-grams, but the header "
                f"states {count:,}. The file is truncated or damaged"
            )
        ids, numbers = np.array(tokens, np.int64).reshape(-1, order), np.array(lines, np.int64)
        return _Section(ids, np.array(probabilities), np.array(backoffs), numbers)

    def _number(self, field: str, name: str) -> float:
        try:
            value = float(field)
        except ValueError:
            self._fail(f"the {name} {field[:40]!r} is not a number")
        if math.isnan(value) or value == math.inf:
            self._fail(f"the {name} {field} is not a finite number")
        return max(value, NO_UNKNOWN)

    def _id(self, word: str, order: int) -> int:
        """Return the id of a word. Raises DataError for a word that is not a unigram or not in the vocabulary."""
        number = self.ids.get(word)
        if number is not None:
            return number
        if order > 1:
            self._fail(f"the word {word!r} is not in the section \\1-grams:")
        if not self.is_open:
            self._fail(f"the vocabulary has no entry {word!r}")
        self.words.append(word)
        self.ids[word] = number = len(SPECIAL_SYMBOLS) + len(self.words) - 1
        return number

    def _fail(self, reason: str) -> NoReturn:
        raise DataError(f"{self.path}, line {self.number}: {reason}")

    def _tables(self, sections: list[_Section], size: int) -> list[NgramTable]:
        tables = [self._unigrams(sections[0], size)]
        for order, section in enumerate(sections[1:], start=2):
            keys = section.tokens[:, 0]
            for index in range(1, order):
                keys = keys * size + section.tokens[:, index]
                if index < order - 1:
                    stored, wanted = tables[index].keys.numpy(), keys
                    keys = np.searchsorted(stored, wanted)
                    if len(wanted) and (not len(stored) or (stored[np.minimum(keys, len(stored) - 1)] != wanted).any()):
                        return self._tables(self._with_contexts(sections), size)
            rank = np.argsort(keys, kind="stable")
            self._check_distinct(keys, section.lines, rank)
            probabilities = np.where(np.isnan(section.probabilities), 0.0, section.probabilities)
            if (derived := np.flatnonzero(np.isnan(section.probabilities))).size:
                probabilities[derived] = _back_off(tables, section.tokens[derived])
            backoff = torch.from_numpy(section.backoffs[rank]) if order < len(sections) else None
            tables.append(NgramTable(torch.from_numpy(keys[rank]), torch.from_numpy(probabilities[rank]), backoff))
        return tables

    def _unigrams(self, section: _Section, size: int) -> NgramTable:
        found = dict(zip(section.tokens[:, 0].tolist(), section.probabilities.tolist(), strict=True))
        unknown = found.get(UNK, NO_UNKNOWN)
        probabilities = np.full(size, LOG_ZERO)
        probabilities[[number for number in self.ids.values() if number >= len(SPECIAL_SYMBOLS)]] = unknown
        backoffs = np.zeros(size)
        probabilities[section.tokens[:, 0]], backoffs[section.tokens[:, 0]] = section.probabilities, section.backoffs
        probabilities[BOS], probabilities[UNK] = LOG_ZERO, unknown  # KenLM writes 0 for <s>, which never follows
        return NgramTable(torch.arange(size), torch.from_numpy(probabilities), torch.from_numpy(backoffs))

    def _with_contexts(self, sections: list[_Section]) -> list[_Section]:
        """Add the contexts of n-grams that are not stored, with the probability NaN and no back-off weight."""
        complete = list(sections)
        for order in range(len(sections), 2, -1):
            longer, shorter = complete[order - 1], complete[order - 2]
            if not len(longer.tokens):
                continue
            contexts = np.unique(longer.tokens[:, :-1], axis=0)
            both = np.concatenate([shorter.tokens, contexts])
            _, first = np.unique(both, axis=0, return_index=True)
            missing = both[first[first >= len(shorter.tokens)]]
            if len(missing):
                complete[order - 2] = _Section(
                    np.concatenate([shorter.tokens, missing]),
                    np.append(shorter.probabilities, np.full(len(missing), np.nan)),
                    np.append(shorter.backoffs, np.zeros(len(missing))),
                    np.append(shorter.lines, np.zeros(len(missing), np.int64)),
                )
        return complete

    def _check_distinct(self, keys: NDArray[np.int64], lines: NDArray[np.int64], rank: NDArray[np.int64]) -> None:
        same = np.flatnonzero(keys[rank][1:] == keys[rank][:-1])
        if len(same):
            first, second = sorted((int(lines[rank[same[0]]]), int(lines[rank[same[0] + 1]])))
            raise DataError(f"{self.path}, line {second}: this n-gram is already in line {first}")


def _back_off(tables: list[NgramTable], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log₁₀ p of n-grams (N, k) that are not stored, from the tables of the lower orders."""
    last = torch.from_numpy(tokens[:, -1:])
    model = NgramModel.of([*tables, NgramTable(torch.zeros(0, dtype=torch.int64), torch.zeros(0), None)])
    contexts = model.contexts(torch.from_numpy(tokens[:, :-1]), None)[:, -1]
    scores: NDArray[np.float64] = model.score(contexts, last[:, 0]).double().numpy()
    return scores
