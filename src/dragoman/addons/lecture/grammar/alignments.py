"""Gold word alignments of the embedded corpus, derived from the syntax trees of its sentences."""

from collections import defaultdict
from typing import NamedTuple

from dragoman.addons.lecture.grammar.languages import english, german
from dragoman.addons.lecture.grammar.origins import origins_of, single_words
from dragoman.addons.lecture.grammar.tree import Utterance

Links = frozenset[tuple[int, int]]


class GoldAlignment(NamedTuple):
    """The links between the words of a sentence and of its translation, which are separated by spaces.

    sure: links that an alignment must contain. possible: links that it may contain, including the sure ones.
    """

    sure: Links
    possible: Links

    def reversed(self) -> "GoldAlignment":
        """Return the alignment of the translation with the sentence."""
        sure, possible = (frozenset((j, i) for i, j in links) for links in self)
        return GoldAlignment(sure, possible)

    def pharaoh(self) -> str:
        """Return the links in the Pharaoh format, with a question mark in possible links that are not sure."""
        return " ".join(f"{i}{'-' if (i, j) in self.sure else '?'}{j}" for i, j in sorted(self.possible))


def align_english_german(utterance: Utterance) -> GoldAlignment:
    """Return the alignment of an English sentence with its German translation.

    Words that express the same part of the tree are linked, such as the heads of a noun phrase. These links are sure,
    except between two expressions of several words that differ in length or order, such as `at the moment` and
    `im Moment`. A word that expresses a part which the other language does not express, such as `is` in `is sleeping`
    or `to` before a receiver, has possible links to the words of the whole constituent.
    """
    sides = [_words_of_parts(module.utterance_words(utterance)) for module in (english, german)]
    (source, source_siblings), (target, target_siblings) = sides
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for part in source.keys() & target.keys():
        first, second = source[part], target[part]
        if min(len(first), len(second)) == 1:
            sure |= {(i, j) for i in first for j in second}
        elif len(first) == len(second) and not part.endswith("date"):
            sure |= set(zip(first, second, strict=True))
        else:
            possible |= {(i, j) for i in first for j in second}
    for part in source.keys() - target.keys():
        possible |= {(i, j) for i in source[part] for j in target_siblings[_parent(part)]}
    for part in target.keys() - source.keys():
        possible |= {(i, j) for i in source_siblings[_parent(part)] for j in target[part]}
    return GoldAlignment(frozenset(sure), frozenset(sure | possible))


def _words_of_parts(words: list[str]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the positions of the words of each part, and of the words of the parts of each constituent."""
    parts: dict[str, list[int]] = defaultdict(list)
    siblings: dict[str, list[int]] = defaultdict(list)
    for position, word in enumerate(each for each in single_words(words) if each != ","):
        for part in origins_of(word):
            parts[part].append(position)
            siblings[_parent(part)].append(position)
    return parts, siblings


def _parent(part: str) -> str:
    return part.rpartition(".")[0]
