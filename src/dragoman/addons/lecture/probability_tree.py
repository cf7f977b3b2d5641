"""`ProbabilityTree`: a decoder with given probabilities, for searches that can be checked by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.decode.search_tree import Fate, SearchTree
from dragoman.figures.search_tree import Outcome, SearchTreeFigure, TreeNode
from dragoman.models.interface import Memory, Output, State
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS

END = SPECIAL_SYMBOLS[EOS]

Successors = Mapping[tuple[str, ...], Mapping[str, float]]


class ProbabilityTree:
    """A `Decoder` without parameters: the probabilities of the next word depend on the words before it.

    successors: the probabilities of the next word after each sequence of words; `END` is the end of the sentence. Any
    other sequence is followed by the end.
    """

    def __init__(self, successors: Successors) -> None:
        self.successors = successors
        words = dict.fromkeys(word for each in successors.values() for word in each if word != END)
        self.vocabulary = (*SPECIAL_SYMBOLS, *words)

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """See `Decoder.start`. The source has no influence on the probabilities."""
        rows = 1 if memory is None else len(memory.mask)
        return State(torch.zeros(rows, 1), torch.zeros(rows, 0, dtype=torch.int64), left_padding=left_padding)

    def step(self, tokens: Tensor, state: State) -> tuple[Output, State]:
        """See `Decoder.step`. The cache contains the words (R, T) so far."""
        written = torch.cat((state.cache, tokens), 1)
        count = tokens.size(1)
        logits = torch.full((len(tokens), count, len(self.vocabulary)), float("-inf"))
        for row, ids in enumerate(written.tolist()):
            for position in range(count):
                before = self.words(ids[: len(ids) - count + position + 1])
                for word, probability in self.successors.get(before, {END: 1.0}).items():
                    logits[row, position, self.vocabulary.index(word)] = torch.tensor(probability).log()
        return GivenLogits(logits), state.after(count, written)

    def words(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the words of token ids, without the start and the end of the sentence."""
        return tuple(self.vocabulary[each] for each in ids if each not in (BOS, EOS))

    def search(self, **settings: Any) -> list[Hypothesis]:
        """Search for the best sentences, best first. settings: those of `SearchConfig`, such as `beam`."""
        memory = Memory(torch.zeros(1, 3, 1), torch.ones(1, 3, dtype=torch.bool))
        config = SearchConfig(**settings)
        return search(self, Prompts.of(self, memory, config), config)[0]

    def text(self, hypothesis: Hypothesis) -> str:
        """Return the sentence of a hypothesis."""
        return " ".join(self.words(hypothesis.tokens))

    def figure(self, title: str, hypotheses: Sequence[Hypothesis]) -> SearchTreeFigure:
        """Return the picture of a search. hypotheses: its result, with `SearchConfig.tree`."""
        tree = hypotheses[0].tree
        assert tree is not None
        return SearchTreeFigure(
            title=title,
            caption="All hypotheses of the search, by step (left to right) and rank (top to bottom). The blue path is "
            "the best sentence, and the orange path is what greedy search chooses.",
            slide="deck 004, Problems of Greedy Decoding",
            source=title,
            nodes=tuple(
                TreeNode._make(
                    (self.vocabulary[node.token] if node.token is not None else "")
                    if name == "piece"
                    else getattr(node, name)
                    for name in TreeNode._fields
                )
                for node in map(tree.__getitem__, range(len(tree)))
            ),
            outcomes=tuple(
                Outcome(self._end(tree, each), self.text(each), each.score, each.log_probability) for each in hypotheses
            ),
        )

    @staticmethod
    def _end(tree: SearchTree, hypothesis: Hypothesis) -> int | None:
        """Return the number of the node with which a hypothesis ended."""
        for number in tree.ends():
            path = tree.path(number)
            if (path[:-1] if tree[number].fate is Fate.FINISHED else path) == hypothesis.tokens:
                return number
        return None


@dataclass(frozen=True)
class GivenLogits:
    """An `Output` whose logits are given. all: logits (R, T, V). attention: (R, T, S) or None."""

    all: Tensor
    attention: Tensor | None = None

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output.logits`."""
        return self.all if positions is None else self.all.flatten(0, 1)[positions.flatten()]

    def last_logits(self) -> Tensor:
        """See `Output.last_logits`."""
        return self.all[:, -1].clone()
