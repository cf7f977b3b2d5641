"""The tree of a search as JSON has it."""

from collections.abc import Sequence
from typing import Any

from dragoman.decode.search_tree import Fate
from dragoman.translation.result import Translation

_DIGITS = 6


def tree_of(line: int, source: str, translations: Sequence[Translation]) -> dict[str, Any]:
    """The tree of one text in plain types; docs/searching-rules.md describes them.

    line: the text's number, from 1. translations: all that were asked for, with `Translation.tree`; of a blank text,
    which is not searched, there is none.
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
