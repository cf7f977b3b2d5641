"""`TreeFile`: writes search trees as JSON, one object per line."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragoman.base.companion import Compress, compressor_for
from dragoman.base.files import atomic_file
from dragoman.decode.search_tree import Fate
from dragoman.inference.translation.result import Translation

_BUFFER_SIZE = 1 << 20
"""Number of characters that are compressed together."""

_DIGITS = 6


class TreeFile:
    """Writes one JSON object per text, in the order of the texts."""

    def __init__(self, file: IO[bytes], compress: Compress) -> None:
        self._file, self._compress = file, compress
        self._buffer: list[str] = []
        self._count = 0

    def write(self, line: int, source: str, translations: Sequence[Translation]) -> None:
        """Write the search tree of one text. Arguments are as in `tree_of`."""
        text = json.dumps(tree_of(line, source, translations), ensure_ascii=False) + "\n"
        self._buffer.append(text)
        self._count += len(text)
        if self._count >= _BUFFER_SIZE:
            self.flush()

    def flush(self) -> None:
        """Write the buffered text to the file."""
        self._file.write(self._compress("".join(self._buffer).encode()))
        self._buffer, self._count = [], 0


@contextmanager
def tree_file(path: Path | None) -> Iterator[TreeFile | None]:
    """Open a file for writing (plain, .gz, .bz2, .xz or .zst). The file gets its name only after success.

    Yields None if path is None. Raises ResourceError if the file cannot be written.
    """
    if path is None:
        yield None
        return
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        trees = TreeFile(file, compressor_for(path))
        yield trees
        trees.flush()


def tree_of(line: int, source: str, translations: Sequence[Translation]) -> dict[str, Any]:
    """Return the search tree of one text as JSON values, as described in docs/reference/search-tree.md.

    line: the line number, from 1. translations: all requested translations, with `Translation.tree`; a blank text is
    not searched and has no tree.
    """
    best = translations[0]
    tree, pieces = best.tree, best.tokenizer.pieces
    numbers: dict[tuple[tuple[int, ...], bool], int] = {}
    if tree is not None:
        for number in tree.ends():
            finished, path = tree[number].fate is Fate.FINISHED, tree.path(number)
            numbers.setdefault((path[:-1] if finished else path, finished), number)
    return {
        "line": line,
        "source": source,
        "translations": [
            {
                "node": numbers.get((each.ids, each.finished)),
                "text": each.text,
                "score": round(each.score, _DIGITS),
                "log_probability": round(each.log_probability, _DIGITS),
                "finished": each.finished,
            }
            for each in translations
        ],
        "prefix": [] if tree is None else pieces(tree.prefix),
        "nodes": [
            {
                "node": number,
                "parent": node.parent,
                "step": node.step,
                "token": node.token,
                "piece": None if node.token is None else pieces((node.token,))[0],
                "log_probability": round(node.log_probability, _DIGITS),
                "total": round(node.total, _DIGITS),
                "score": round(node.score, _DIGITS),
                "rank": node.rank,
                "group": node.group,
                "fate": str(node.fate),
            }
            for number, node in enumerate(() if tree is None else tree)
        ],
    }
