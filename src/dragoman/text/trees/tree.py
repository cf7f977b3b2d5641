"""`Tree`: a constituency tree as the words of a sentence and the spans of its constituents."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

TRACE = "-NONE-"
"""The tag of empty elements, such as traces, in the Penn Treebank."""
ROOTS = frozenset({"", "TOP", "ROOT", "S1"})
"""Labels of a constituent that only wraps a whole sentence."""

_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class Word(NamedTuple):
    """A word with its part of speech."""

    tag: str
    text: str


class Constituent(NamedTuple):
    """A constituent. start, end: its words, counted from 0, `end` exclusive."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """A constituency tree, or several trees side by side.

    constituents: in the order in which their brackets open, so that a constituent follows those that contain it. Each
    has at least one word, so that the spans and their order determine the tree. No method is recursive, so a tree may
    have any depth.
    """

    words: tuple[Word, ...]
    constituents: tuple[Constituent, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The words without their tags."""
        return tuple(word.text for word in self.words)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the words."""
        return tuple(word.tag for word in self.words)

    def with_tags(self, tags: Iterable[str]) -> "Tree":
        """Return the tree with other tags, one for each word."""
        pairs = zip(tags, self.texts, strict=True)
        return replace(self, words=tuple(Word(tag, text) for tag, text in pairs))

    def without_words(self, removed: Callable[[Word], bool]) -> "Tree":
        """Return the tree without some words, and without the constituents of which no word remains."""
        kept = [not removed(word) for word in self.words]
        before = [0, *accumulate(kept)]
        moved = (Constituent(label, before[start], before[end]) for label, start, end in self.constituents)
        return Tree(
            tuple(word for word, is_kept in zip(self.words, kept, strict=True) if is_kept),
            tuple(each for each in moved if each.start < each.end),
        )

    def without_traces(self) -> "Tree":
        """Return the tree without empty elements."""
        return self.without_words(lambda word: word.tag == TRACE)

    def without_functions(self) -> "Tree":
        """Return the tree with labels such as NP instead of NP-SBJ-1 or NP=2."""
        return replace(
            self, constituents=tuple(each._replace(label=category(each.label)) for each in self.constituents)
        )

    def without_root(self) -> "Tree":
        """Return the tree without wrappers of the whole sentence, such as TOP, and without constituents without label.

        A label such as TOP elsewhere in the tree is kept.
        """
        whole = (0, len(self.words))
        first = next(
            (
                number
                for number, (label, *span) in enumerate(self.constituents)
                if label not in ROOTS or (*span,) != whole
            ),
            len(self.constituents),
        )
        return replace(self, constituents=tuple(each for each in self.constituents[first:] if each.label))

    def reduced(self) -> "Tree":
        """Return the tree that parsers predict: without empty elements, functions and wrappers."""
        return self.without_traces().without_functions().without_root()

    def rooted(self) -> "Tree":
        """Return the tree, or several trees side by side below a constituent TOP, which `without_root` removes."""
        size = len(self.words)
        if size < 2 or any(each.start == 0 and each.end == size for each in self.constituents):
            return self
        return replace(self, constituents=(Constituent("TOP", 0, size), *self.constituents))

    def depths(self) -> list[int]:
        """Return the number of constituents that contain each constituent."""
        open_ends: list[int] = []
        depths = []
        for _, start, end in self.constituents:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            depths.append(len(open_ends))
            open_ends.append(end)
        return depths

    def events(self) -> Iterator[Constituent | int | None]:
        """Yield the parts of the bracketed tree from left to right.

        A constituent: its opening bracket. A number: the word with this index. None: a closing bracket.
        """
        open_ends: list[int] = []
        following = iter((*self.constituents, None))
        constituent = next(following)
        for number in range(len(self.words)):
            while constituent is not None and constituent.start == number:
                yield constituent
                open_ends.append(constituent.end)
                constituent = next(following)
            yield number
            while open_ends and open_ends[-1] == number + 1:
                open_ends.pop()
                yield None

    def __str__(self) -> str:
        """Return the tree in brackets on one line, as in (S (NP (DT The) (NN end)))."""
        parts: list[str] = []
        for event in self.events():
            if event is None:
                parts.append(")")
            elif isinstance(event, Constituent):
                parts.append(f" ({event.label}")
            else:
                tag, text = self.words[event]
                parts.append(f" ({tag} {escape_brackets(text)})")
        return "".join(parts)[1:]


def category(label: str) -> str:
    """Return a label without functions and indices, as EVALB removes them: everything from the first - or =.

    A label such as -NONE- or -LRB-, which begins with -, is kept.
    """
    if label.startswith("-"):
        return label
    return label.split("-", 1)[0].split("=", 1)[0]


def escape_brackets(text: str) -> str:
    """Return a word as it is written in a tree: brackets as -LRB- and -RRB-, also within a word."""
    for bracket, escaped in _ESCAPES.items():
        text = text.replace(bracket, escaped)
    return text


def draw_tree(tree: Tree) -> str:
    r"""Return a drawing of a tree, without a final newline. The parts of a constituent are indented.

    (S (NP (DT The) (NN end))) becomes "S\n└─ NP\n   ├─ DT The\n   └─ NN end".
    """
    nodes: list[tuple[int, str]] = []
    depth = 0
    for event in tree.events():
        if event is None:
            depth -= 1
        elif isinstance(event, Constituent):
            nodes.append((depth, event.label))
            depth += 1
        else:
            nodes.append((depth, " ".join(tree.words[event])))
    lines: list[str] = []
    continued: list[bool] = []
    """For each depth from 1, whether a part at this depth follows below."""
    for depth, text in reversed(nodes):
        continued += [False] * (depth - len(continued))
        if depth == 0:
            lines.append(text)
        else:
            stems = "".join("│  " if each else "   " for each in continued[: depth - 1])
            lines.append(f"{stems}{'├─ ' if continued[depth - 1] else '└─ '}{text}")
            continued[depth - 1] = True
        del continued[depth:]
    return "\n".join(reversed(lines))
