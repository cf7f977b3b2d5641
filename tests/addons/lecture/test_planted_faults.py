"""A fault in the code that a lecture page explains makes the page fail."""

from collections.abc import Callable
from ctypes import c_double
from pathlib import Path
from typing import Any

import pytest
import torch
from lecture_pages import Page

from dragoman.metrics.bleu import BLEU
from dragoman.nn.attention.scorers import ScaledDot
from dragoman.nn.mask import Mask
from dragoman.nn.positions import sinusoidal
from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation
from dragoman.statistical.alignment.methods.ibm1 import IBM1
from dragoman.statistical.ngrams.kneser_ney import Discounts, KneserNeyConfig
from dragoman.training.objectives import fused_cross_entropy

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("one_thread")


def no_scale(patch: Patch) -> None:
    """q·k instead of q·k/√d_k."""
    patch.setattr(ScaledDot, "fold", lambda self, queries: queries)


def mask_off_by_one(patch: Patch) -> None:
    """Each position also attends to the next one."""

    def causal(new: int, total: int, device: torch.device) -> Mask:
        return Mask(torch.ones(new, total, dtype=torch.bool, device=device).tril(total - new + 1)[None, None])

    patch.setattr(Mask, "causal", staticmethod(causal))


def smoothing_with_the_wrong_sign(patch: Patch) -> None:
    """q' = (1 + ε)δ − ε·u."""
    right = fused_cross_entropy.projected_cross_entropy

    def wrong(hidden: Any, weight: Any, labels: Any, smoothing: float = 0.0, *rest: Any) -> Any:
        return right(hidden, weight, labels, -smoothing, *rest)

    patch.setattr(fused_cross_entropy, "projected_cross_entropy", wrong)


def sine_and_cosine_swapped(patch: Patch) -> None:
    """Cosines at even components, sines at odd ones."""
    right = sinusoidal.sinusoids
    patch.setattr(
        sinusoidal, "sinusoids", lambda *arguments: right(*arguments).unflatten(1, (-1, 2)).flip(2).flatten(1)
    )


def arguments_of_bleu_swapped(patch: Patch) -> None:
    """The references are scored, and the translation is the reference."""
    right = BLEU.score
    patch.setattr(BLEU, "score", lambda self, hypotheses, references: right(self, references, hypotheses))


def expectation_without_normalisation(patch: Patch) -> None:
    """p(f, i | e) instead of p(i | f, e)."""
    right = IBM1.expectation

    def wrong(self: IBM1, corpus: Corpus) -> Expectation:
        expect, entries = right(self, corpus), self.lexicon.find(corpus.pairs, corpus.workers)

        def unnormalised(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            expect(first, last, posteriors, log_likelihoods)
            cells = entries[corpus.pairs.cells[first] : corpus.pairs.cells[last]]
            result = (c_double * len(cells)).from_address(posteriors)
            result[:] = self.lexicon.probabilities[cells].tolist()

        return unnormalised

    patch.setattr(IBM1, "expectation", wrong)


def discount_without_a_factor(patch: Patch) -> None:
    """n₁ / (n₁ + n₂) instead of n₁ / (n₁ + 2 n₂)."""

    def wrong(self: KneserNeyConfig, counts: Any) -> Discounts | None:
        ones, twos = (int((counts == number).sum()) for number in (1, 2))
        return Discounts(*(ones / (ones + twos),) * 3) if ones and twos else None

    patch.setattr(KneserNeyConfig, "discounts", wrong)


FAULTS: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "n-grams.md": (discount_without_a_factor,),
    "noisy-channel.md": (expectation_without_normalisation,),
    "scaling.md": (no_scale,),
    "masks.md": (mask_off_by_one,),
    "smoothing.md": (smoothing_with_the_wrong_sign,),
    "positions.md": (sine_and_cosine_swapped,),
    "bleu.md": (arguments_of_bleu_swapped,),
}
"""Faults by page. The pages without faults are run by test_pages.py."""


@pytest.mark.parametrize(
    ("name", "fault"), [pytest.param(n, each, id=each.__name__) for n, faults in FAULTS.items() for each in faults]
)
def test_the_page_fails(
    name: str, fault: Callable[[Patch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError) as failure:
        Page.read(name).run(tmp_path)
    assert failure.traceback[-1].path.name == name  # an assertion of the page, not of the code below it
