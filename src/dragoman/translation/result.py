"""What translating and scoring give."""

from dataclasses import dataclass, field
from functools import cached_property

from dragoman.decode.tree import SearchTree
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.guard.finding import Guarded


@dataclass(frozen=True)
class Translation:
    """One hypothesis: its text, its ranking score, its log-probability in nats and its ids, without BOS and EOS.

    finished is False when the length limit stopped it before its end of sentence. tokenizer: whose ids they are.
    token_log_probabilities: of each of `tokens` and, if finished, of the end of sentence, in nats; empty unless the
    request asks for `token_scores`. tree: what the search of its text has expanded, where the request asks for `tree`.
    patched: the text was put together from parts, since no hypothesis held what must stand in it; score, ids and the
    rest are the best hypothesis'. guarded: what a guard has found wrong with the text's best translation and with this
    one, where the request has a guard and it has found anything.
    """

    text: str
    score: float
    log_probability: float
    ids: tuple[int, ...]
    tokenizer: Tokenizer = field(compare=False, repr=False)
    finished: bool = True
    token_log_probabilities: tuple[float, ...] = ()
    tree: SearchTree | None = field(default=None, compare=False, repr=False)
    patched: bool = False
    guarded: Guarded | None = None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Its pieces. An unknown stays <unk> among them, whatever stands for it in the text."""
        return tuple(self.tokenizer.pieces(self.ids))


@dataclass(frozen=True)
class PairScore:
    """log p(target | source) in nats and the number of target tokens it is a sum over, end of sentence counted."""

    log_probability: float
    tokens: int
