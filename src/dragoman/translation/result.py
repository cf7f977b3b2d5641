"""What translating and scoring give."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """One hypothesis: its text, its ranking score, its log-probability in nats and its pieces, without specials.

    finished is False when the length limit stopped it before its end of sentence. An unknown stays <unk> among the
    pieces, whatever stands for it in the text.
    """

    text: str
    score: float
    log_probability: float
    tokens: tuple[str, ...]
    finished: bool = True


@dataclass(frozen=True)
class PairScore:
    """log p(target | source) in nats and the number of target tokens it is a sum over, end of sentence counted."""

    log_probability: float
    tokens: int
