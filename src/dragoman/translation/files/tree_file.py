"""`TreeFile`: the trees of searches as JSON Lines."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.base.companion import Compress, member_writer
from dragoman.base.files import atomic_file
from dragoman.translation.result import Translation
from dragoman.translation.tree import tree_of

_TOGETHER = 1 << 20
"""Characters that are compressed as one part."""


class TreeFile:
    """An object a text, in the order of the texts; of a single text the file is that object."""

    def __init__(self, file: IO[bytes], compress: Compress) -> None:
        self._file, self._compress = file, compress
        self._waiting: list[str] = []
        self._count = 0

    def write(self, line: int, source: str, translations: Sequence[Translation]) -> None:
        """The tree of one text; arguments as of `tree_of`."""
        text = json.dumps(tree_of(line, source, translations), ensure_ascii=False) + "\n"
        self._waiting.append(text)
        self._count += len(text)
        if self._count >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        self._file.write(self._compress("".join(self._waiting).encode()))
        self._waiting, self._count = [], 0


@contextmanager
def tree_file(path: Path | None) -> Iterator[TreeFile | None]:
    """The file to write, .gz, .xz and .zst too; it has its name when all went well. None: none is wanted.

    Raises ResourceError where it cannot be written.
    """
    if path is None:
        yield None
        return
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        trees = TreeFile(file, member_writer(path))
        yield trees
        trees.flush()
