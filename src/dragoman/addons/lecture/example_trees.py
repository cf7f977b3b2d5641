"""`EXAMPLE_TREES`: the search trees of the lecture, as decoders."""

from typing import NamedTuple

from dragoman.addons.lecture.probability_tree import END, ProbabilityTree


class ExampleTree(NamedTuple):
    """A tree of probabilities with its title."""

    title: str
    tree: ProbabilityTree


EXAMPLE_TREES = {
    "deck-004": ExampleTree(
        "Deck 004's tree of “ok” and “yes”",
        ProbabilityTree(  # from Jurafsky and Martin; after two words, the sentence ends
            {
                (): {"ok": 0.4, "yes": 0.5, END: 0.1},
                ("ok",): {"ok": 0.7, "yes": 0.2, END: 0.1},
                ("yes",): {"ok": 0.3, "yes": 0.4, END: 0.3},
            }
        ),
    ),
    "hidden": ExampleTree(
        "A tree whose best sentence begins with an improbable word",
        ProbabilityTree(
            {
                (): {"ok": 0.45, "yes": 0.35, "well": 0.2},
                ("ok",): {"ok": 0.3, "yes": 0.3, "well": 0.4},
                ("yes",): {"ok": 0.3, "yes": 0.4, "well": 0.3},
                ("well",): {"yes": 1.0},
            }
        ),
    ),
}
"""The trees by their names in addresses: that of deck 004, which a beam of 2 searches without error, and one that needs
a beam of 3 (docs/lecture/search.md)."""
