"""`CompletionChoice`: turns the pieces of a continuation into the texts and log-probabilities of OpenAI's form."""

import codecs
from collections.abc import Sequence

from pydantic import BaseModel

from dragoman.inference.generation.writer import Finish, Piece, ScoredToken
from dragoman.text.symbols import EOS
from dragoman.text.tokenizer import Tokenizer


class Logprobs(BaseModel):
    """The tokens of a text, with natural log-probabilities under the model, and the positions of their texts.

    top_logprobs: the log-probabilities of the most probable tokens at each position.
    """

    tokens: list[str] = []
    token_logprobs: list[float | None] = []
    top_logprobs: list[dict[str, float]] = []
    text_offset: list[int] = []

    def add(self, token: str, scored: ScoredToken, best: dict[str, float], offset: int) -> None:
        """Append a token."""
        self.tokens.append(token)
        self.token_logprobs.append(scored.log_probability)
        self.top_logprobs.append(best)
        self.text_offset.append(offset)


class Choice(BaseModel):
    """A completion, or a part of a stream. index: its number. finish_reason: null until the last part."""

    text: str
    index: int
    logprobs: Logprobs | None = None
    finish_reason: Finish | None = None


class CompletionChoice:
    """One completion while it is generated.

    Each part contains the tokens of its own text: while a text is held back, because it may be the beginning of a stop
    string, so are its tokens, and those of a stop string are dropped.
    """

    def __init__(self, index: int, tokenizer: Tokenizer, top: int | None, *, is_new: bool) -> None:
        """top: number of most probable tokens per position; None: no log-probabilities.

        is_new: whether the prompt is empty, so that a text begins without the space that its first token contains.
        """
        self.index = index
        self._tokenizer, self._top = tokenizer, top
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._added = 1 if tokenizer.added_space == "first" else 0
        self._read, self._sent = (-self._added if is_new else 0), 0
        self._waiting: list[tuple[int, ScoredToken]] = []
        self._total, self._count = 0.0, 0

    @property
    def mean_log_probability(self) -> float:
        """The mean log-probability of the tokens."""
        return self._total / max(1, self._count)

    def prompt(self, text: str, scores: Sequence[ScoredToken]) -> Choice:
        """Return the part with the prompt. scores: its tokens."""
        logprobs = None if self._top is None else Logprobs()
        offset, decoder = -self._added, codecs.getincrementaldecoder("utf-8")("replace")
        for token in scores:
            if logprobs is not None:
                logprobs.add(self._name(token.id), token, self._best(token), min(max(0, offset), len(text)))
            offset += len(decoder.decode(self._tokenizer.surface(token.id)))
        self._read, self._sent = self._read + len(text), len(text)
        return Choice(text=text, index=self.index, logprobs=logprobs)

    def part(self, piece: Piece) -> Choice:
        """Return the part of a piece."""
        if piece.token is not None:
            self._total += piece.token.log_probability or 0.0
            self._count += 1
            if piece.token.id != EOS:
                self._waiting.append((self._read, piece.token))
                self._read += len(self._bytes.decode(self._tokenizer.surface(piece.token.id)))
        self._sent += len(piece.text)
        released = [each for each in self._waiting if each[0] < self._sent]
        self._waiting = self._waiting[len(released) :] if piece.finish is None else []
        logprobs = None
        if self._top is not None:
            logprobs = Logprobs()
            for offset, token in released:
                logprobs.add(self._name(token.id), token, self._best(token), max(0, offset))
        return Choice(text=piece.text, index=self.index, logprobs=logprobs, finish_reason=piece.finish)

    def _best(self, token: ScoredToken) -> dict[str, float]:
        return {self._name(other): score for other, score in token.best[: self._top]}

    def _name(self, token: int) -> str:
        """Return the text of a token; for a part of a character, its bytes, as OpenAI writes them."""
        surface = self._tokenizer.surface(token)
        if not surface:
            return self._tokenizer.symbols[token]
        try:
            return surface.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in surface)


def joined(parts: Sequence[Choice]) -> Choice:
    """Return the whole of the parts of a completion, in order."""
    first, last = parts[0], parts[-1]
    logprobs = None if first.logprobs is None else Logprobs()
    for part in parts:
        if logprobs is not None and part.logprobs is not None:
            for name in Logprobs.model_fields:
                getattr(logprobs, name).extend(getattr(part.logprobs, name))
    text = "".join(part.text for part in parts)
    return Choice(text=text, index=first.index, logprobs=logprobs, finish_reason=last.finish_reason)
