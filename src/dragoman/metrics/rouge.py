"""ROUGE-1, ROUGE-2 and ROUGE-L of summaries (Lin 2004), equal to those of the package rouge-score."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.metrics.metric import check_lines, describe_references
from dragoman.metrics.porter_stemmer import stem
from dragoman.metrics.summed import Statistics, SummedMetric

_OTHER = re.compile("[^a-z0-9]+")
_SHORTEST_STEMMED = 4


class Rouge(SummedMetric):
    """F1 of the overlap of a summary and its reference, in percent, as a mean over summaries.

    Words are lower-cased runs of the letters a to z and of digits; other characters only separate words. If a summary
    has several references, the one with the highest F1 counts. stemmed: whether words of at least four letters are
    replaced by their stems.
    """

    better, by_default, stemmed = "higher", False, False

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
        """Return the F1 (0 to 1) of each summary, and 1, (N, 2).

        Raises DataError for unequal numbers of lines or empty references.
        """
        check_lines(hypotheses, references)
        if not any(self.words(text) for reference in references for text in reference):
            raise DataError(f"{self.name} counts words of the letters a to z and digits, but the references have none")
        rows = []
        for hypothesis, *alternatives in zip(hypotheses, *references, strict=True):
            words = self.words(hypothesis)
            rows.append(max(self.f1(words, self.words(each)) for each in dict.fromkeys(alternatives)))
        return np.stack([np.array(rows), np.ones(len(rows))], 1)

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the mean F1 (…), 0 to 100. sums: (…, 2)."""
        return 100 * sums[..., 0] / sums[..., 1]

    def signature(self, references: int) -> str:
        """Describe the number of references and the treatment of words."""
        return f"F1, {describe_references(references)}, {'stemmed' if self.stemmed else 'not stemmed'}"

    def words(self, text: str) -> list[str]:
        """Return the words of a text, or their stems."""
        words = _OTHER.sub(" ", text.lower()).split()
        return [stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in words] if self.stemmed else words

    def f1(self, hypothesis: Sequence[str], reference: Sequence[str]) -> float:
        """Return the F1 (0 to 1) of the words of a summary and a reference."""
        raise NotImplementedError


class RougeN(Rouge):
    """ROUGE-N: the overlap of n-grams (Lin 2004, section 2). order: n."""

    order: int

    def f1(self, hypothesis: Sequence[str], reference: Sequence[str]) -> float:
        """Return the F1 (0 to 1) of n-grams, whose matches are clipped by the counts of both sides."""
        one, other = (_count(words, self.order) for words in (hypothesis, reference))
        sizes = sum(one.values()) + sum(other.values())
        matches = sum(min(count, other[gram]) for gram, count in one.items() if gram in other)
        return 2 * matches / sizes if matches else 0.0


class Rouge1(RougeN):
    """ROUGE-1."""

    key, name, order = "rouge1", "ROUGE-1", 1


class Rouge2(RougeN):
    """ROUGE-2."""

    key, name, order = "rouge2", "ROUGE-2", 2


class RougeL(Rouge):
    """ROUGE-L: the longest common subsequence of words (Lin 2004, section 3.1)."""

    key, name = "rougeL", "ROUGE-L"

    def f1(self, hypothesis: Sequence[str], reference: Sequence[str]) -> float:
        """Return the F1 (0 to 1) of the words in the longest common subsequence."""
        common = longest_common_subsequence(hypothesis, reference)
        return 2 * common / (len(hypothesis) + len(reference)) if common else 0.0


class StemmedRouge1(Rouge1):
    """ROUGE-1 of stems."""

    key, name, stemmed = "rouge1_stemmed", "ROUGE-1 (stemmed)", True


class StemmedRouge2(Rouge2):
    """ROUGE-2 of stems."""

    key, name, stemmed = "rouge2_stemmed", "ROUGE-2 (stemmed)", True


class StemmedRougeL(RougeL):
    """ROUGE-L of stems."""

    key, name, stemmed = "rougeL_stemmed", "ROUGE-L (stemmed)", True


def longest_common_subsequence(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(other) + 1)  # of the items read so far, with each prefix of `other`
    for item in one:
        diagonal = 0
        for position, candidate in enumerate(other, 1):
            above = lengths[position]
            lengths[position] = diagonal + 1 if item == candidate else max(above, lengths[position - 1])
            diagonal = above
    return lengths[-1]


def _count(words: Sequence[str], order: int) -> Mapping[tuple[str, ...], int]:
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))
