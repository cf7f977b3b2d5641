"""n-gram probabilities by their definitions, in exact fractions."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dragoman.text.symbols import BOS, PAD


class Reference:
    """Interpolated Kneser–Ney probabilities of texts of ids with BOS and EOS, for a vocabulary of `size` entries.

    discounts: D1, D2 and D3+ of each order. prune: as in the settings.
    """

    def __init__(self, texts: Sequence[Sequence[int]], order: int, size: int, prune: Sequence[int] = ()) -> None:
        self.order, self.size = order, size
        self.counts = [
            Counter(tuple(text[first : first + n]) for text in texts for first in range(len(text) - n + 1))
            for n in range(1, order + 1)
        ]
        self.prune = [*prune, *[prune[-1] if prune else 0] * (order - len(prune))]
        self.discounts = [self.chen_goodman(n) for n in range(1, order + 1)]

    def adjusted(self, ngram: tuple[int, ...]) -> int:
        if len(ngram) == self.order or ngram[0] == BOS:
            return self.counts[len(ngram) - 1][ngram] if ngram != (BOS,) else 0
        return len({longer[0] for longer in self.counts[len(ngram)] if longer[1:] == ngram})

    def chen_goodman(self, order: int) -> tuple[Fraction, ...]:
        n = Counter(self.adjusted(ngram) for ngram in self.counts[order - 1])
        fallback = (Fraction(1, 2), Fraction(1), Fraction(3, 2))
        if not (n[1] and n[2] and n[3]):
            return fallback
        ratio = Fraction(n[1], n[1] + 2 * n[2])
        amounts = tuple(count - (count + 1) * ratio * Fraction(n[count + 1], n[count]) for count in (1, 2, 3))
        return amounts if all(0 <= each <= count for count, each in enumerate(amounts, start=1)) else fallback

    def keeps(self, ngram: tuple[int, ...]) -> bool:
        count = self.counts[len(ngram) - 1][ngram]
        return len(ngram) == 1 or count > self.prune[len(ngram) - 1]

    def discount(self, ngram: tuple[int, ...]) -> Fraction:
        count = self.adjusted(ngram)
        if not self.keeps(ngram):
            return Fraction(count)
        return self.discounts[len(ngram) - 1][min(count, 3) - 1] if count else Fraction(0)

    def probability(self, context: tuple[int, ...], token: int) -> Fraction:
        following = [ngram for ngram in self.counts[len(context)] if ngram[:-1] == context and ngram[-1] != BOS]
        total = sum(map(self.adjusted, following))
        lower = self.probability(context[1:], token) if context else Fraction(token not in (PAD, BOS), self.size - 2)
        if not total:
            return lower
        weight = sum(map(self.discount, following), Fraction(0)) / total
        ngram = (*context, token)
        own = Fraction(self.adjusted(ngram)) - self.discount(ngram) if ngram in following else Fraction(0)
        return own / total + weight * lower
