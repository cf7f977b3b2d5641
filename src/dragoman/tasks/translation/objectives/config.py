"""What a run minimises that learns to translate."""

from pydantic import Field, model_validator
from torch import Tensor

from dragoman.tasks.translation.objectives.scheduled_sampling import TeacherForced, TeacherRatio
from dragoman.tasks.translation.objectives.sequence_reward import RewardConfig, SequenceObjective
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropyConfig
from dragoman.training.objectives.objective import Objective
from dragoman.training.objectives.r_drop import RDrop


class TranslationObjectiveConfig(CrossEntropyConfig):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    reward: RewardConfig | None = Field(
        None,
        description="fine-tuning on the reward of sampled translations, best from train.start; null: none",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "TranslationObjectiveConfig":
        if self.reward is not None and self.r_drop is not None:
            raise ValueError("reward and r_drop do not go together: set one of them to null")
        return self

    def build(self, teacher: TeacherRatio, target: Tokenizer, prior: Tensor | None) -> Objective:
        """The objective. teacher: the schedule of teacher forcing; target: what the samples' texts are read with.

        prior: (V,) how often each target entry occurs, None for uniform.
        """
        if self.reward is not None:
            return SequenceObjective(self, self.reward, target, prior, teacher)
        plain = TeacherForced(self, prior, teacher)
        return plain if self.r_drop is None else RDrop(plain, self.r_drop)
