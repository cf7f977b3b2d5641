"""Citation networks in the form of Planetoid (Yang et al. 2016) as tables of nodes and edges.

The originals are pickles of arrays. A pickle can name any function, so `_Reader` admits only names that stand for
arrays, and replaces each of them by an inert class of this module.
"""

import io
import pickle
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from dragoman.data.downloads.conversions.conversion import Conversion, Original, write_lines

_VALIDATION = 500


class PlanetoidConversion(Conversion):
    """`nodes.tsv` (id, split, label, indices of the words that occur) and `edges.tsv` (each undirected edge once).

    The split is Planetoid's: its labelled nodes for training, the next 500 for validation, and its test nodes.
    """

    kind: Literal["planetoid"] = "planetoid"
    labels: tuple[str, ...] = Field(description="Names of the classes, in the order of the columns of `y`.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the tables."""
        return ("nodes.tsv.gz", "edges.tsv.gz")

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the tables."""
        files = {original.name.split(".", 2)[2]: original for original in originals}
        tested = [int(line) for line in files["test.index"].read_text().split()]
        graph, first = _read(files["graph"]), files["allx"]
        try:
            words, labels = _rows(_read(first)), _labels(_read(files["ally"]).array, self.labels)
            known, start, rest = len(words), len(_read(files["y"]).array), len(graph) - len(words)
            words, labels = words + [[] for _ in range(rest)], labels + [""] * rest
            rows = zip(tested, _rows(_read(files["tx"])), _labels(_read(files["ty"]).array, self.labels), strict=True)
            for node, indices, label in rows:
                words[node], labels[node] = indices, label
            valid = min(_VALIDATION, known - start)
            splits = ["train"] * start + ["valid"] * valid + ["none"] * (len(graph) - start - valid)
            for node in tested:
                splits[node] = "test"
            edges = {(min(a, b), max(a, b)) for a in graph for b in graph[a] if a != b}
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise first.changed(f"it and the files beside it do not fit together ({error})") from None
        table = ["id\tsplit\tlabel\twords"]
        for node, split in enumerate(splits):
            table.append(f"{node}\t{split}\t{labels[node]}\t{' '.join(map(str, words[node]))}")
        write_lines(table, folder / "nodes.tsv.gz")
        write_lines((f"{a}\t{b}" for a, b in sorted(edges)), folder / "edges.tsv.gz")


class _Dtype:
    """Stands for `numpy.dtype`."""

    def __init__(self, code: str, *_: Any) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


class _Array:
    """Stands for `numpy.ndarray`. array: its numbers."""

    def __init__(self, *_: Any) -> None:
        self.array: Any = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, by_column, content = state
        content = content.encode("latin-1") if isinstance(content, str) else content
        kind = np.dtype(dtype.code).newbyteorder(dtype.order)
        self.array = np.frombuffer(content, kind).reshape(shape, order="F" if by_column else "C")


class _Matrix:
    """Stands for a sparse matrix of SciPy, with its attributes."""

    data: _Array
    indices: _Array
    indptr: _Array


def _instance(kind: Callable[[], Any], *_: Any) -> Any:
    return kind()


_NAMES: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("copy_reg", "_reconstructor"): _instance,
    ("copyreg", "_reconstructor"): _instance,
    ("__builtin__", "object"): object,
    ("builtins", "object"): object,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("_codecs", "encode"): lambda text, _: text.encode("latin-1"),
}


class _Reader(pickle.Unpickler):
    """Reads a pickle that consists of arrays, numbers, lists and dictionaries."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for. Raises UnpicklingError for any other name."""
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _NAMES[module, name]


def _read(original: Original) -> Any:
    try:
        return _Reader(io.BytesIO(original.path.read_bytes()), encoding="latin-1").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise original.changed(f"it is not a pickle of arrays ({error or type(error).__name__})") from None


def _rows(matrix: _Matrix) -> list[list[int]]:
    """Return the columns of the numbers of each row that are not zero, in order."""
    starts: list[int] = matrix.indptr.array.tolist()
    columns: list[int] = matrix.indices.array.tolist()
    values = matrix.data.array.tolist()
    return [
        sorted(column for column, value in zip(columns[start:end], values[start:end], strict=True) if value)
        for start, end in pairwise(starts)
    ]


def _labels(columns: Any, names: Sequence[str]) -> list[str]:
    """Return the names of the classes of rows with a one in a column; without a one, none."""
    return [names[int(row.argmax())] if row.any() else "" for row in columns]
