"""Linearised trees: sequences of brackets and words, which a decoder generates (Vinyals et al. 2015, section 2.2).

(S (NP (DT The) (NN end)) (. .)) becomes `(S (NP DT NN )NP . )S`. The words themselves are not part of the sequence: the
parser inserts those of the sentence. With `tags=False`, all words are represented by the same symbol.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.trees.tree import Constituent, Tree, Word

ANY_WORD = "XX"
"""The symbol and the tag of every word of a tree without tags."""


def opening(label: str) -> str:
    """Return the symbol that opens a constituent."""
    return f"({label}"


def closing(label: str) -> str:
    """Return the symbol that closes a constituent."""
    return f"){label}"


def linearise(tree: Tree, tags: bool = True) -> list[str]:
    """Return the symbols of a tree. tags: represent words by their tags; if False, by `ANY_WORD`."""
    symbols: list[str] = []
    labels: list[str] = []
    for event in tree.events():
        if event is None:
            symbols.append(closing(labels.pop()))
        elif isinstance(event, Constituent):
            labels.append(event.label)
            symbols.append(opening(event.label))
        else:
            symbols.append(tree.words[event].tag if tags else ANY_WORD)
    return symbols


@dataclass(frozen=True)
class ReadTree:
    """A tree that was read from a sequence of symbols. repairs: number of symbols that were left out or added."""

    tree: Tree
    repairs: int


def read_linearised(symbols: Sequence[str], words: Sequence[str]) -> ReadTree:
    """Return the tree of a sentence, given the symbols that a model has generated for it.

    Any sequence of symbols becomes a tree with exactly these words. A closing bracket closes the innermost constituent
    with its label and, before that, those inside of it; it is left out if no such constituent is open, as is one that
    would leave a constituent without words. Words beyond the end of the sentence are left out, missing words are added
    with the tag `ANY_WORD` to the constituents that are still open, and open brackets are closed at the end. Each
    symbol that is left out or added is one repair.
    """
    tags: list[str] = []
    constituents: list[Constituent] = []
    stack: list[int] = []
    repairs = 0

    def close(number: int) -> None:
        constituents[number] = constituents[number]._replace(end=len(tags))

    for symbol in symbols:
        if symbol.startswith("(") and len(symbol) > 1:
            stack.append(len(constituents))
            constituents.append(Constituent(symbol[1:], len(tags), -1))
        elif symbol.startswith(")") and len(symbol) > 1:
            depth = next(
                (depth for depth, n in enumerate(reversed(stack)) if constituents[n].label == symbol[1:]), None
            )
            if depth is None:
                repairs += 1
                continue
            repairs += depth
            for _ in range(depth + 1):
                close(stack.pop())
        elif len(tags) < len(words):
            tags.append(symbol)
        else:
            repairs += 1
    repairs += len(words) - len(tags) + len(stack)
    tags += [ANY_WORD] * (len(words) - len(tags))
    while stack:
        close(stack.pop())
    filled = tuple(each for each in constituents if each.start < each.end)
    repairs += 2 * (len(constituents) - len(filled))
    return ReadTree(Tree(tuple(map(Word, tags, words)), filled), repairs)
