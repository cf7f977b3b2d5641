"""What translating and scoring give."""

from dataclasses import dataclass, field
from functools import cached_property

from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Translation:
    """One hypothesis: its text, its ranking score, its log-probability in nats and its ids, without BOS and EOS.

    finished is False when the length limit stopped it before its end of sentence. tokenizer: whose ids they are.
    patched: the text was put together from parts, since no hypothesis held what must stand in it; score, ids and the
    rest are the best hypothesis'.
    """

    text: str
    score: float
    log_probability: float
    ids: tuple[int, ...]
    tokenizer: Tokenizer = field(compare=False, repr=False)
    finished: bool = True
    patched: bool = False

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Its pieces. An unknown stays <unk> among them, whatever stands for it in the text."""
        return tuple(self.tokenizer.pieces(self.ids))


@dataclass(frozen=True)
class PairScore:
    """log p(target | source) in nats and the number of target tokens it is a sum over, end of sentence counted."""

    log_probability: float
    tokens: int
