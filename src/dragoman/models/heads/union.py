"""The union of all heads, the last layers of models that predict labels from the states of an encoder."""

from typing import Annotated, Any, Literal

from pydantic import Field
from torch import nn

from dragoman.base.settings.config import Config
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.none import NoHeadConfig
from dragoman.models.heads.replaced_tokens import ReplacedTokenHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.models.interface import Memory

TreeHeadConfig = Annotated[TreeDecoderHeadConfig | ChartHeadConfig, Field(discriminator="kind")]
"""The union of the heads that parse."""

TaskHeadConfig = Annotated[
    ClassificationHeadConfig
    | RegressionHeadConfig
    | TaggingHeadConfig
    | SpanHeadConfig
    | MaskedLanguageModelHeadConfig
    | TreeHeadConfig,
    Field(discriminator="kind"),
]
"""The union of the heads that can be one of several heads of a model."""


class SeveralHeadsConfig(Config):
    """Several heads on one encoder, one per task. The run sets them from its tasks.

    YAML: `head: {kind: several, heads: {sst2: {kind: classification}}}`.
    """

    kind: Literal["several"] = "several"
    heads: dict[str, TaskHeadConfig] | None = Field(
        None,
        description="Heads by the names of their tasks. null: those of the tasks of the run.",
        json_schema_extra={"listed": False},
    )

    def build(self, width: int, table: nn.Embedding) -> "SeveralHeads":
        """Build the heads for states of this width. table: the token vectors (V, d), which a head may share."""
        return SeveralHeads({name: head.build(width, table) for name, head in (self.heads or {}).items()})


class SeveralHeads(nn.ModuleDict):
    """The heads of several tasks by name. Each of them is a part of the model of its own."""

    children_are_parts = True

    def forward(self, memory: Memory) -> dict[str, Any]:
        """Return the output of every head by name, for states (B, S, d)."""
        return {name: head(memory) for name, head in self.items()}


HeadConfig = Annotated[
    ClassificationHeadConfig
    | RegressionHeadConfig
    | TaggingHeadConfig
    | SpanHeadConfig
    | MaskedLanguageModelHeadConfig
    | ReplacedTokenHeadConfig
    | TreeHeadConfig
    | SeveralHeadsConfig
    | NoHeadConfig,
    Field(discriminator="kind"),
]
"""The union of all heads. To add a head, add its config to this union."""
