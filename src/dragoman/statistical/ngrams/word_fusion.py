"""`WordFusion`: shallow fusion with an n-gram model whose vocabulary differs from the translation model's."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Addition, Step
from dragoman.models.interface import TensorTree
from dragoman.models.kinds.ngram import NgramModel
from dragoman.statistical.ngrams.query import NgramQuery, NgramState
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizer import Tokenizer

_NONE = -1
"""Fills the rows of unfinished words, which are aligned on the right."""

_MAX_WORDS = 1_000_000
"""Maximum number of words whose scores are stored."""


class Word(NamedTuple):
    """A word after a context.

    score, end: natural log-probabilities of the word, and of the end of the text after it. after: the next context.
    """

    score: float
    end: float
    after: bytes


class WordScorer:
    """Scores words, given as tokens of a translation model's vocabulary, with an n-gram model of another vocabulary.

    begins: (V,) bool, the tokens of the translation model that begin a word. start: the context at the beginning of a
    text, 64 bytes.
    """

    def __init__(self, model: NgramModel, own: Tokenizer, tokenizer: Tokenizer) -> None:
        """own: the tokenizer of the n-gram model. tokenizer: the target tokenizer of the translation model, for which
        `divides_words` is true. Raises NoLibraryError if the C library is not available.
        """
        self._query, self._own, self._tokenizer = NgramQuery(model), own, tokenizer
        self.begins = torch.tensor([_begins_word(tokenizer, token) for token in range(tokenizer.size)])
        self.start = bytes(self._query.start)
        self._words: dict[tuple[bytes, tuple[int, ...]], Word] = {}

    def extend(self, context: bytes, word: tuple[int, ...], token: int) -> tuple[bytes, tuple[int, ...]]:
        """Return the context and the unfinished word after a token. Special symbols other than UNK change nothing."""
        if self.begins[token]:
            return self.score(context, word).after, (token,)
        return context, (*word, token) if self._tokenizer.surface(token) else word

    def score(self, context: bytes, tokens: tuple[int, ...]) -> Word:
        """Return the scores of a word, which may have no tokens, after a context."""
        if (known := self._words.get((context, tokens))) is not None:
            return known
        state, total = NgramState.from_buffer_copy(context), 0.0
        for token in self._encode(tokens):
            score, state = self._query.score(state, token)
            total += score
        word = Word(total, self._query.score(state, EOS)[0], bytes(state))
        if len(self._words) >= _MAX_WORDS:
            self._words.clear()
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


class WordFusion(Addition):
    """Adds λ · log p(word | preceding words) when a word is complete, that is, with the first token of the next word.

    A word is the text between two spaces, together with the space before it. It is tokenised with the vocabulary of the
    n-gram model, which may divide it into several tokens. The end of the text completes the last word and adds λ · log
    p(</s>). The sum over a whole output is therefore λ times the log-probability of its text.

    The state consists of the model's context, (R, 64) uint8, and the tokens of the unfinished word, (R, L) int64.
    """

    def __init__(self, scorer: WordScorer, weights: Sequence[float]) -> None:
        """weights: λ of each sentence."""
        self._scorer, self._weights = scorer, torch.tensor(weights, dtype=torch.float32)

    def limit_lengths(self, prompts: Prompts) -> Prompts:
        """Return the prompts: an n-gram model has no length limit."""
        return prompts

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the context at the beginning of a text, without an unfinished word, for each sentence."""
        context = torch.tensor(list(self._scorer.start), dtype=torch.uint8)
        return context.repeat(len(prompts), 1), torch.empty(len(prompts), 0, dtype=torch.int64)

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return the state after the tokens of a step."""
        contexts, words = _unpack(state)
        for row, tokens in enumerate(step.tokens.tolist()):
            for token in tokens:
                contexts[row], words[row] = self._scorer.extend(contexts[row], words[row], token)
        width = max(map(len, words), default=0)
        padded = [[*[_NONE] * (width - len(word)), *word] for word in words]
        device = step.tokens.device
        return (
            torch.tensor([list(context) for context in contexts], dtype=torch.uint8, device=device),
            torch.tensor(padded, dtype=torch.int64, device=device).view(len(padded), width),
        )

    def add(self, step: Step, state: TensorTree) -> Tensor:
        """Return λ · log p of the unfinished word for the tokens that complete it, (R, V)."""
        words = [self._scorer.score(*each) for each in zip(*_unpack(state), strict=True)]
        device = step.tokens.device
        scores = torch.tensor([word.score for word in words], dtype=torch.float32, device=device).unsqueeze(1)
        values = torch.where(self._scorer.begins.to(device), scores, 0.0)  # (R, V)
        values[:, EOS] = torch.tensor([word.score + word.end for word in words], dtype=torch.float32, device=device)
        return step.of_hypotheses(self._weights.to(device)).unsqueeze(1) * values


def _unpack(state: TensorTree) -> tuple[list[bytes], list[tuple[int, ...]]]:
    """Return the context and the unfinished word of each hypothesis."""
    contexts, words = state
    return [bytes(row) for row in contexts.tolist()], [
        tuple(token for token in row if token != _NONE) for row in words.tolist()
    ]


def divides_words(tokenizer: Tokenizer) -> bool:
    """Return whether the first token of a word begins with a space, so that tokens state where words begin."""
    return tokenizer.added_space == "first" and any(
        _begins_word(tokenizer, token) for token in range(UNK + 1, tokenizer.size)
    )


def _begins_word(tokenizer: Tokenizer, token: int) -> bool:
    return token == UNK or tokenizer.surface(token)[:1].isspace()
