"""The restriction of a search to linearised trees with exactly the words of a sentence."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.models.interface import TensorTree
from dragoman.text.symbols import EOS
from dragoman.text.trees.symbols import TreeSymbols


class _State(NamedTuple):
    """The partial tree of each of R hypotheses.

    labels: (R, D) int64, the labels of the open constituents, the outermost first. starts: (R, D) int64, the number
    of words before each of them. depth: (R,) int64, number of open constituents. words: (R,) int64, number of words so
    far. run: (R,) int64, number of brackets that have opened since the last word or closing bracket. length: (R,)
    int64, number of symbols so far.
    """

    labels: Tensor
    starts: Tensor
    depth: Tensor
    words: Tensor
    run: Tensor
    length: Tensor


class TreeRestriction(Restriction):
    """Allows only symbols that continue a linearised tree with the words of the sentence.

    The states of a pushdown automaton are the open constituents and the number of words. A bracket opens only if words
    remain, at most `openings` times in a row, and closes only the innermost constituent, which must contain a word. One
    constituent contains all words: it opens first, and closes after the last word, which ends the output. Any other
    bracket opens only if the tree can be completed within the maximum length, which must be at least the number of
    words plus 3.
    """

    def __init__(
        self,
        symbols: TreeSymbols,
        words: Sequence[int],
        allowed: Tensor,
        *,
        limits: Sequence[int],
        openings: int,
        device: torch.device,
    ) -> None:
        """words: number of words of each of B sentences. allowed: (B, W, T) bool, whether each symbol of words may
        stand for each word. limits: maximum number of symbols of each output, with EOS.
        """
        self._symbols, self._openings = symbols, openings
        self._words = torch.tensor(words, dtype=torch.int64, device=device)
        self._limits = torch.tensor(limits, dtype=torch.int64, device=device)
        self._allowed = allowed.to(device)

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the states of B empty trees."""
        empty = torch.zeros(len(self._words), 1, dtype=torch.int64, device=self._words.device)
        return _State(empty, empty, *[empty[:, 0]] * 4)

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return the states after the input tokens of a step. BOS and EOS do not change them."""
        for token, is_read in zip(step.tokens.unbind(1), step.read.unbind(1), strict=True):
            state = self._advance(_State(*state), token.masked_fill(~is_read, EOS))
        return state

    def _advance(self, state: _State, token: Tensor) -> _State:
        symbols = self._symbols
        opens = (token >= symbols.first_opening) & (token < symbols.first_closing)
        closes = token >= symbols.first_closing
        is_word = (token >= symbols.first_word) & (token < symbols.first_opening)
        labels, starts = state.labels, state.starts
        if bool((opens & (state.depth == labels.size(1))).any()):
            labels, starts = (torch.cat([each, torch.zeros_like(each)], 1) for each in (labels, starts))
        slot = torch.arange(labels.size(1), device=token.device) == state.depth.unsqueeze(1)
        slot &= opens.unsqueeze(1)
        return _State(
            torch.where(slot, (token - symbols.first_opening).unsqueeze(1), labels),
            torch.where(slot, state.words.unsqueeze(1), starts),
            state.depth + opens.long() - closes.long(),
            state.words + is_word,
            torch.where(opens, state.run + 1, torch.where(closes | is_word, 0, state.run)),
            state.length + (opens | closes | is_word),
        )

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Forbid all symbols that do not continue a tree."""
        symbols, tree = self._symbols, _State(*state)
        total, limits = step.of_hypotheses(self._words), step.of_hypotheses(self._limits)
        remaining = total - tree.words
        # an opening bracket, its closing bracket, those of the open constituents, the remaining words, and EOS
        fits = tree.length + 2 + tree.depth + remaining + 1 <= limits
        is_start = tree.length == 0
        may_open = (remaining > 0) & (tree.run < self._openings) & (tree.depth > 0) & fits | is_start
        top = (tree.depth - 1).clamp_min(0).unsqueeze(1)
        filled = tree.words > tree.starts.gather(1, top).squeeze(1)
        allowed = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
        inside = (remaining > 0) & (tree.depth > 0)
        allowed[:, symbols.first_word : symbols.first_opening] = self._word_symbols(step, tree) & inside.unsqueeze(1)
        allowed[:, symbols.first_opening : symbols.first_closing] = may_open.unsqueeze(1)
        closing = symbols.first_closing + tree.labels.gather(1, top)
        may_close = filled & ((tree.depth > 1) | (tree.depth == 1) & (remaining == 0))
        allowed.scatter_(1, closing, may_close.unsqueeze(1))
        allowed[:, EOS] = (remaining == 0) & (tree.depth == 0)
        logits.masked_fill_(~allowed, -torch.inf)

    def _word_symbols(self, step: Step, tree: _State) -> Tensor:
        """Return which symbols may stand for the next word of each hypothesis, (R, T) bool."""
        sentences = torch.from_numpy(np.repeat(step.sentences, step.beam_size)).to(tree.words.device)
        following = tree.words.clamp_max(self._allowed.size(1) - 1)
        return self._allowed[sentences, following]
