"""`HeadRun`, the base class of runs that train a model with a head."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.tokenizers import TextConfig
from dragoman.training.task import RunConfig


class HeadRun(RunConfig):
    """Base class of the runs that train a model with a head.

    head: the kind of the head, which the task determines; see `head_kind`.
    """

    head: ClassVar[str]

    text: TextConfig = Field(TextConfig(), description="Subwords and the vocabulary.")
    model: EncoderOnlyConfig = Field(description="Model architecture.")

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """Return the kind of the head, so that recipes can omit it."""
        return {"model.head": cls.head_kind(settings)}

    @classmethod
    def head_kind(cls, settings: Mapping[str, Any]) -> str:
        """Return the kind of the head. settings: the sections of the run."""
        return cls.head

    @classmethod
    def head_kinds(cls, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return all kinds of heads that the task supports. settings: the sections of the run."""
        return (cls.head_kind(settings),)

    @model_validator(mode="before")
    @classmethod
    def _choose_head(cls, values: Any) -> Any:
        """Set the kind of the head."""
        if not isinstance(values, dict):
            return values
        model = values.get("model", {})
        if isinstance(model, dict) and isinstance(model.get("head", {}), dict):
            model = {**model, "head": {"kind": cls.head_kind(values), **model.get("head", {})}}
        return {**values, "model": model}

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        kinds = self.head_kinds({"train": self.train})
        if self.model.head.kind not in kinds:
            raise ValueError(
                f"model.head.kind is {self.model.head.kind}, but this task needs a head of kind {' or '.join(kinds)}: "
                "remove model.head.kind, or choose another task.kind"
            )
        if self.text.source_prefix:
            raise ValueError("only a task that generates text has a prefix: remove text.source_prefix")
        return self
