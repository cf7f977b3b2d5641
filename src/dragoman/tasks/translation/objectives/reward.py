"""What a sampled translation earns: sentence BLEU or chrF against its reference."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor

from dragoman.base.settings.config import Config


class RewardConfig(Config):
    """Fine-tuning on a sequence's reward: O = α · O_ML + O_RL (Wu et al. 2016, "GNMT", equations 8 and 9).

    O_RL = Σ over pairs of E[r(Y, Y*)], Y drawn from the model. Its gradient is estimated from samples by REINFORCE.
    YAML: `train: {start: runs/trained, objective: {reward: {kind: bleu, samples: 5}}}`.
    """

    kind: Literal["bleu", "chrf"] = Field(
        "bleu",
        description="r: sentence BLEU with exponential smoothing, or chrF2, by sacrebleu on plain text, from 0 to 1",
    )
    samples: int = Field(
        5, ge=1, description="translations drawn a sentence pair; time and memory of an update grow with them"
    )
    likelihood: float = Field(0.017, ge=0, description="α, weight of the usual objective (GNMT: 0.017)")
    baseline: Literal["leave_one_out", "greedy"] = Field(
        "leave_one_out",
        description="what a reward is compared with: the mean reward of the pair's other samples (Kool et al. 2019), "
        "or that of the greedy translation (Rennie et al. 2017)",
    )

    @model_validator(mode="after")
    def _has_others(self) -> "RewardConfig":
        if self.baseline == "leave_one_out" and self.samples < 2:
            raise ValueError("baseline=leave_one_out compares a sample with others: set samples to 2 or more")
        return self


def sentence_rewards(
    kind: Literal["bleu", "chrf"], hypotheses: Sequence[str], references: Sequence[str]
) -> list[float]:
    """r of each hypothesis against the reference in its place, from 0 to 1.

    BLEU takes only the n-gram orders that the hypothesis has, and smooths exponentially (Chen and Cherry 2014, method
    3), which are sacrebleu's choices for single sentences.
    """
    metric = BLEU(effective_order=True) if kind == "bleu" else CHRF()
    return [
        metric.sentence_score(hypothesis, [reference]).score / 100
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def leave_one_out(rewards: Tensor) -> Tensor:
    """rewards (B, n), n ≥ 2 → for each the mean of the others of its row: a baseline that no sample's own enters."""
    return (rewards.sum(1, keepdim=True) - rewards) / (rewards.size(1) - 1)
