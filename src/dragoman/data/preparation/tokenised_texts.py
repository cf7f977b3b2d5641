"""Tokenising the cleaned documents of a block, and dividing them into excerpts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.preparation.blocks import block_file, read_block, split_texts, write_block
from dragoman.data.preparation.tokenised import Rows
from dragoman.data.sentences import Sentences
from dragoman.data.shards import id_types
from dragoman.text.symbols import EOS
from dragoman.text.tokenizer import Tokenizer

AT_ONCE = 1 << 18
"""Characters that are tokenised together, one passage more or less."""

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TokeniseTexts:
    """Tokenises the passages of a block that stay.

    A block file holds the `lines` of the passages and whether a document ends with each (`ends`), and as `text` their
    ids, EOS after each document's, with their numbers (`text_lengths`). block: see `rows`.
    """

    source: Path
    folder: Path
    tokenizer: Tokenizer
    block: int

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """task: the block's number and the verdicts on its passages."""
        number, kept = task
        names = ("verdicts", "lines", "begins", "ends", "text", "text_ends")
        verdicts, lines, begins, ends, joined, text_ends = read_block(block_file(self.source, number), *names)
        chosen = np.flatnonzero(kept[verdicts == 0] == 0)
        lines, begins, ends = lines[kept == 0], begins[kept == 0].tolist(), ends[kept == 0]
        texts = split_texts(joined, text_ends, chosen)
        ids = Sentences.of(
            [
                [*each, EOS] if last else each
                for part in _at_once(texts)
                for each, last in zip(self._ids(texts[part], begins[part]), ends[part].tolist(), strict=True)
            ]
        )
        arrays = {"lines": lines, "ends": ends, "text": ids.ids.astype(self.types["text"]), "text_lengths": ids.lengths}
        write_block(block_file(self.folder, number), arrays)

    def _ids(self, texts: Sequence[str], begins: Sequence[bool]) -> Iterator[list[int]]:
        whole = iter(self.tokenizer.encode_batch([text for text, first in zip(texts, begins, strict=True) if first]))
        others = iter(
            self.tokenizer.encode_further([text for text, first in zip(texts, begins, strict=True) if not first])
        )
        return (next(whole if first else others) for first in begins)

    @property
    def types(self) -> dict[str, np.dtype[Any]]:
        """How the ids of the only side are stored."""
        return id_types({"text": self.tokenizer.size})

    def rows(self, blocks: int) -> Iterator[Rows]:
        """The labels of each document in excerpts of `block`, of which the last may have fewer: see `TextDataset`."""
        rest, rest_line = np.zeros(0, self.types["text"]), 0  # of an excerpt that the block did not fill
        for number in range(blocks):
            lines, ends, ids, lengths = read_block(
                block_file(self.folder, number), "lines", "ends", "text", "text_lengths"
            )
            ids, lines = np.concatenate([rest, ids]), np.concatenate([[rest_line], lines])
            after = len(rest) + np.cumsum(lengths)
            starts = np.append(0, after - lengths)
            documents = np.append(0, after[ends])
            full = (len(ids) - documents[-1]) // self.block  # of a document that the next block goes on with
            widths = np.append(excerpt_lengths(np.diff(documents), self.block), np.full(full, self.block))
            firsts = np.append(0, np.cumsum(widths))
            lines = lines[np.searchsorted(starts, firsts, side="right") - 1]
            yield Rows(lines[:-1], (Sentences(ids[: firsts[-1]], widths),), _NONE)
            rest, rest_line = ids[firsts[-1] :], int(lines[-1])


def _at_once(texts: Sequence[str]) -> Iterator[slice]:
    """Parts of a list of texts."""
    start = size = 0
    for place, text in enumerate(texts, start=1):
        size += len(text)
        if size >= AT_ONCE or place == len(texts):
            yield slice(start, place)
            start, size = place, 0


def excerpt_lengths(documents: NDArray[np.int64], block: int) -> NDArray[np.int64]:
    """The labels of each excerpt: of all documents, which have so many labels, as many as go into one of `block`."""
    counts = -(-documents // block)
    lengths = np.full(counts.sum(), block)
    lengths[np.cumsum(counts) - 1] += documents - counts * block
    return lengths
