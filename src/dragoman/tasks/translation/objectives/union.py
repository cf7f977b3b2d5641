"""`TranslationObjectiveConfig`, the union of the objectives of translation runs."""

from typing import Annotated

from dragoman.base.settings.variants import Variants
from dragoman.tasks.translation.objectives.guided_alignment import GuidedAlignmentConfig
from dragoman.tasks.translation.objectives.sequence_reward import SequenceRewardConfig
from dragoman.training.objectives.cross_entropy import CrossEntropyConfig
from dragoman.training.objectives.objective import ObjectiveConfig
from dragoman.training.objectives.r_drop import RDropConfig

OBJECTIVES = Variants("loss", ObjectiveConfig)
"""The registry of losses of translation runs: `OBJECTIVES.register` adds an `ObjectiveConfig`."""
TranslationObjectiveConfig = Annotated[
    CrossEntropyConfig | RDropConfig | SequenceRewardConfig | GuidedAlignmentConfig,
    OBJECTIVES,
]
OBJECTIVES.extend(TranslationObjectiveConfig)
