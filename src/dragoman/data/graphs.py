"""Graphs whose nodes have features and labels, read from two tab-separated files: nodes and edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.data.labelled.rows import read_lines

Split = Literal["train", "valid", "test", "none"]
SPLITS: tuple[Split, ...] = get_args(Split)
_ID, _SPLIT, _LABEL, _WORDS = "id", "split", "label", "words"
"""The columns of the file of nodes."""
_LARGEST_FEATURE = 1 << 24


class GraphConfig(Config):
    """A graph in two tab-separated files; plain, .gz, .bz2, .xz or .zst."""

    nodes: Path = Field(
        description="File of the nodes. Its first line contains the names of the columns: id; words, the features, "
        "which are numbers from 0, separated by spaces, each with an optional value, as in `3 17:0.5`; and, for "
        "training and evaluation, label and split (train, valid, test or none)."
    )
    edges: Path = Field(
        description="File of the edges: two ids per line, without a header. Edges have no direction, and each is "
        "listed once."
    )

    def __str__(self) -> str:
        return str(self.nodes)


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph with N nodes.

    ids: names of the nodes. labels: None for nodes without a label. splits: the set that each node belongs to. columns,
    values, starts: the features as a sparse matrix (N, F); `starts` is the index of the first value of each row. pairs:
    (M, 2) int64, the edges, without self-loops and repetitions.
    """

    ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    splits: tuple[Split, ...]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    starts: NDArray[np.int64]
    pairs: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def features(self) -> int:
        """The largest index of a feature, plus 1."""
        return int(self.columns.max(initial=0)) + 1

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The edges (2, 2M) in both directions, sorted by the first node and then by the second."""
        both = np.concatenate([self.pairs, self.pairs[:, ::-1]])
        return np.ascontiguousarray(both[np.lexsort((both[:, 1], both[:, 0]))].T)

    def members(self, split: Split) -> NDArray[np.int64]:
        """Return the numbers of the nodes of a set."""
        return np.flatnonzero(np.array(self.splits) == split)

    def number(self, node: str) -> int:
        """Return the number of a node, counted from 0. Raises DataError for an unknown id."""
        if node not in self._numbers:
            raise DataError(f"the graph has no node {node!r}: its ids are {', '.join(self.ids[:3])} …")
        return self._numbers[node]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {node: number for number, node in enumerate(self.ids)}


def read_graph(config: GraphConfig, labelled: bool = True) -> Graph:
    """Read a graph. labelled: whether the columns `label` and `split` are needed.

    Raises DataError, with file and line, if a file cannot be read or is not valid.
    """
    ids, labels, splits, rows = _read_nodes(config.nodes, labelled)
    pairs = _read_edges(config.edges, {node: number for number, node in enumerate(ids)}, config.nodes)
    return Graph(tuple(ids), tuple(labels), tuple(splits), *_matrix(rows), pairs)


def build_graph(nodes: Sequence[tuple[str, str]], edges: Sequence[tuple[str, str]]) -> Graph:
    """Return a graph without labels.

    nodes: the id and the features of each node, as in the column `words` of a file. edges: pairs of ids, without
    direction. Raises DataError for ids that are repeated or unknown, and for invalid features.
    """
    numbers = {node: number for number, (node, _) in enumerate(nodes)}
    if not nodes or len(numbers) < len(nodes):
        raise DataError("the graph has no nodes" if not nodes else "the ids of the graph's nodes are not distinct")
    rows = [_features(words, f"node {node!r:.80}") for node, words in nodes]
    pairs: dict[tuple[int, int], None] = {}
    for edge in edges:
        for node in edge:
            if node not in numbers:
                raise DataError(f"an edge of the graph names the node {node!r:.80}, which is not among its nodes")
        first, second = sorted((numbers[edge[0]], numbers[edge[1]]))
        if first != second:
            pairs[first, second] = None
    unlabelled: tuple[None, ...] = (None,) * len(nodes)
    none: Split = "none"
    edge_array = np.array(list(pairs), np.int64).reshape(-1, 2)
    return Graph(tuple(numbers), unlabelled, (none,) * len(nodes), *_matrix(rows), edge_array)


def _matrix(
    rows: Sequence[Sequence[tuple[int, float]]],
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return columns, values and starts of the features of all nodes, as in `Graph`."""
    starts = np.cumsum([0, *(len(row) for row in rows)])[:-1]
    flat = [each for row in rows for each in row]
    columns = np.array([column for column, _ in flat], np.int64)
    return columns, np.array([value for _, value in flat], np.float32), starts


_Nodes = tuple[list[str], list[str | None], list[Split], list[list[tuple[int, float]]]]


def _read_nodes(path: Path, labelled: bool) -> _Nodes:
    """Return the ids, labels, sets and features of all nodes."""
    lines = read_lines(path, "utf-8")
    _, header = next(lines, (0, ""))
    names = header.split("\t")
    required = (_ID, _WORDS, _LABEL, _SPLIT) if labelled else (_ID, _WORDS)
    if missing := [name for name in required if name not in names]:
        raise DataError(
            f"{path}, line 1: there is no column {missing[0]}. The first line must contain the names of the columns, "
            f"separated by tabs: {', '.join(required)}"
        )
    ids: list[str] = []
    labels: list[str | None] = []
    splits: list[Split] = []
    rows: list[list[tuple[int, float]]] = []
    seen: dict[str, int] = {}
    for number, line in lines:
        location = f"{path}, line {number}"
        cells = line.split("\t")
        if len(cells) != len(names):
            raise DataError(
                f"{location}: the number of columns is {len(cells)}, but should be {len(names)}: fix the line"
            )
        cell = dict(zip(names, cells, strict=True))
        if cell[_ID] in seen:
            raise DataError(f"{location}: the id {cell[_ID]!r} is also that of line {seen[cell[_ID]]}: rename a node")
        seen[cell[_ID]] = number
        split = _split(cell.get(_SPLIT, "none") or "none", location)
        label = cell.get(_LABEL) or None
        if labelled and split != "none" and label is None:
            raise DataError(f"{location}: a node of the set {split} has no label: add it, or set its split to none")
        ids.append(cell[_ID])
        labels.append(label)
        splits.append(split)
        rows.append(_features(cell[_WORDS], location))
    if not ids:
        raise DataError(f"{path} contains no nodes")
    return ids, labels, splits, rows


def _split(name: str, location: str) -> Split:
    for split in SPLITS:
        if name == split:
            return split
    raise DataError(f"{location}: unknown split {name!r}: expected one of {', '.join(SPLITS)}")


def _features(cell: str, location: str) -> list[tuple[int, float]]:
    """Return the features of a node with their values, sorted by number."""
    found: dict[int, float] = {}
    for item in cell.split():
        name, separator, text = item.partition(":")
        try:
            value = float(text) if separator else 1.0
        except ValueError:
            value = float("nan")
        if not (name.isascii() and name.isdecimal()) or not isfinite(value):
            raise DataError(f"{location}: {item!r} is not a feature: write a number from 0, or number:value")
        if int(name) >= _LARGEST_FEATURE:
            raise DataError(f"{location}: the feature {name} is too large: number the features from 0 consecutively")
        if int(name) in found:
            raise DataError(f"{location}: the feature {name} occurs twice: write it once, with its value")
        found[int(name)] = value
    return sorted(found.items())


def _read_edges(path: Path, numbers: dict[str, int], nodes: Path) -> NDArray[np.int64]:
    """Return the edges (M, 2) without self-loops and repetitions, which are counted in a warning."""
    pairs: dict[tuple[int, int], None] = {}
    lines = loops = 0
    for number, line in read_lines(path, "utf-8"):
        cells = line.split("\t")
        if len(cells) != 2:
            raise DataError(f"{path}, line {number}: expected two ids separated by a tab, not {line!r:.80}")
        for cell in cells:
            if cell not in numbers:
                raise DataError(
                    f"{path}, line {number}: the node {cell!r} is not in {nodes}: add it, or remove the edge"
                )
        first, second = sorted((numbers[cells[0]], numbers[cells[1]]))
        lines, loops = lines + 1, loops + (first == second)
        if first != second:
            pairs[first, second] = None
    if loops:
        warn(f"{path}: {loops:,} edges connect a node with itself and are ignored; see model.self_loops")
    if repeated := lines - loops - len(pairs):
        warn(f"{path}: {repeated:,} edges are listed more than once and count once")
    return np.array(list(pairs), np.int64).reshape(-1, 2)


def sorted_classes(labels: Sequence[str | None]) -> tuple[str, ...]:
    """Return the distinct labels, sorted by name."""
    return tuple(sorted({label for label in labels if label is not None}))
