"""`WordFusion`: shallow fusion with an n-gram model whose vocabulary differs from the translation model's."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Addition, Step
from dragoman.models.interface import TensorTree
from dragoman.models.ngram import NgramModel
from dragoman.ngrams.query import NgramQuery, NgramState
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizer import Tokenizer

_NONE = -1
"""Fills the rows of unfinished words, which are aligned on the right."""


class _Word(NamedTuple):
    """A word after a context.

    score, end: natural log-probabilities of the word, and of the end of the text after it. after: the next context.
    """

    score: float
    end: float
    after: bytes


class WordFusion(Addition):
    """Adds λ · log p(word | preceding words) when a word is complete, that is, with the first token of the next word.

    A word is the text between two spaces, together with the space before it. It is tokenised with the vocabulary of the
    n-gram model, which may divide it into several tokens. The end of the text completes the last word and adds λ · log
    p(</s>). The sum over a whole output is therefore λ times the log-probability of its text.

    The state consists of the model's context, (R, 64) uint8, and the tokens of the unfinished word, (R, L) int64.
    """

    def __init__(self, model: NgramModel, own: Tokenizer, tokenizer: Tokenizer, weights: Sequence[float]) -> None:
        """own: the tokenizer of the n-gram model. tokenizer: the target tokenizer of the translation model, for which
        `divides_words` is true. weights: λ of each sentence. Raises NoLibraryError if the C library is not available.
        """
        self._query, self._own, self._tokenizer = NgramQuery(model), own, tokenizer
        self._weights = torch.tensor(weights, dtype=torch.float32)
        self._begins = torch.tensor([_begins_word(tokenizer, token) for token in range(tokenizer.size)])
        self._words: dict[tuple[bytes, tuple[int, ...]], _Word] = {}

    def limit_lengths(self, prompts: Prompts) -> Prompts:
        """Return the prompts: an n-gram model has no length limit."""
        return prompts

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the context at the beginning of a text, without an unfinished word, for each sentence."""
        context = torch.tensor(list(bytes(self._query.start)), dtype=torch.uint8)
        return context.repeat(len(prompts), 1), torch.empty(len(prompts), 0, dtype=torch.int64)

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return the state after the tokens of a step. Special symbols other than UNK are skipped."""
        contexts, unfinished = self._unpack(state)
        for row, tokens in enumerate(step.tokens.tolist()):
            for token in tokens:
                if self._begins[token]:
                    contexts[row] = self._word(contexts[row], unfinished[row]).after
                    unfinished[row] = (token,)
                elif self._tokenizer.surface(token):
                    unfinished[row] = (*unfinished[row], token)
        width = max(map(len, unfinished), default=0)
        padded = [[*[_NONE] * (width - len(word)), *word] for word in unfinished]
        device = step.tokens.device
        return (
            torch.tensor([list(context) for context in contexts], dtype=torch.uint8, device=device),
            torch.tensor(padded, dtype=torch.int64, device=device).view(len(padded), width),
        )

    def add(self, step: Step, state: TensorTree) -> Tensor:
        """Return λ · log p of the unfinished word for the tokens that complete it, (R, V)."""
        words = [self._word(*each) for each in zip(*self._unpack(state), strict=True)]
        device = step.tokens.device
        scores = torch.tensor([word.score for word in words], dtype=torch.float32, device=device).unsqueeze(1)
        values = torch.where(self._begins.to(device), scores, 0.0)  # (R, V)
        values[:, EOS] = torch.tensor([word.score + word.end for word in words], dtype=torch.float32, device=device)
        return step.of_hypotheses(self._weights.to(device)).unsqueeze(1) * values

    def _word(self, context: bytes, tokens: tuple[int, ...]) -> _Word:
        """Return the scores of a word, which may have no tokens."""
        if (known := self._words.get((context, tokens))) is not None:
            return known
        state, total = NgramState.from_buffer_copy(context), 0.0
        for token in self._encode(tokens):
            score, state = self._query.score(state, token)
            total += score
        word = _Word(total, self._query.score(state, EOS)[0], bytes(state))
        self._words[context, tokens] = word
        return word

    def _encode(self, tokens: tuple[int, ...]) -> list[int]:
        """Return the n-gram model's tokens of a word."""
        if not tokens:
            return []
        if UNK in tokens:
            return [UNK]
        text = b"".join(map(self._tokenizer.surface, tokens)).decode("utf-8", "replace")
        return self._own.encode_continuation([text])[0]

    def _unpack(self, state: TensorTree) -> tuple[list[bytes], list[tuple[int, ...]]]:
        contexts, unfinished = state
        words = [tuple(token for token in row if token != _NONE) for row in unfinished.tolist()]
        return [bytes(row) for row in contexts.tolist()], words


def divides_words(tokenizer: Tokenizer) -> bool:
    """Return whether the first token of a word begins with a space, so that tokens state where words begin."""
    return tokenizer.added_space == "first" and any(
        _begins_word(tokenizer, token) for token in range(UNK + 1, tokenizer.size)
    )


def _begins_word(tokenizer: Tokenizer, token: int) -> bool:
    return token == UNK or tokenizer.surface(token)[:1].isspace()
