"""Options that belong together, as groups that commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import (
    BatchSize,
    Beam,
    Device,
    Engine,
    Fusion,
    Glossary,
    Guard,
    Keep,
    KeepPattern,
    LanguageModel,
    LengthPenalty,
    Precision,
    Seed,
    Tags,
    Temperature,
    Threads,
    To,
    TopK,
    TopP,
    Unknown,
)

if TYPE_CHECKING:
    from dragoman.base.settings.load import Overrides
    from dragoman.decode.decoding import Sampling
    from dragoman.inference.translation.request import RequestSettings
    from dragoman.models.attention_weights import AttentionChoice


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options for the language and the search of translations."""

    to: To = None
    tags: Tags = None
    beam: Beam = None
    length_penalty: LengthPenalty = None
    unknown: Unknown = None
    language_model: LanguageModel = None
    fusion: Fusion = None

    def search_options(self) -> dict[str, object]:
        """Return the options that are only valid for a search, by option name."""
        return {
            "--beam": self.beam,
            "--length-penalty": self.length_penalty,
            "--unknown": self.unknown,
            "--language-model": self.language_model,
            "--fusion": self.fusion,
        }

    def settings(self, search: "Overrides") -> "RequestSettings":
        """Return the options as arguments of `Translator.request`. search: additional search settings."""
        return {
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "unknown": self.unknown,
            "search": search,
            "to": self.to,
            "tags": split_tags(self.tags),
        }

    def search_settings(self, search: list[str] | None) -> "RequestSettings":
        """Return `settings` with search settings from the command line, to which fusion is added.

        Raises ConfigError for a weight without a language model.
        """
        return self.settings(with_fusion(search, self.language_model, self.fusion))


@dataclass(frozen=True, kw_only=True)
class RequestOptions(SearchOptions):
    """Options for translation requests."""

    glossary: Glossary = None
    keep: Keep = None
    keep_pattern: KeepPattern = None
    guard: Guard = False

    def search_options(self) -> dict[str, object]:
        """Return the options that are only valid for a search, by option name."""
        return {
            **super().search_options(),
            "--glossary": self.glossary,
            "--keep": self.keep,
            "--keep-pattern": self.keep_pattern,
            "--guard": self.guard or None,
        }

    def settings(self, search: "Overrides") -> "RequestSettings":
        """Return the options as arguments of `Translator.request`. search: additional search settings."""
        return {
            **super().settings(search),
            "glossary": self.glossary,
            "keep": None if self.keep is None else split_tags(self.keep),
            "keep_patterns": self.keep_pattern or (),
            "guard": self.guard,
        }


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Options for sampling."""

    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None

    def by_name(self) -> dict[str, object]:
        """Return the values by option name."""
        return {
            "--temperature": self.temperature,
            "--top-k": self.top_k,
            "--top-p": self.top_p,
            "--seed": self.seed,
        }

    def sampling(self, samples: int = 1, settings: "Overrides" = ()) -> "Sampling":
        """Return the sampling settings. Raises ConfigError for an invalid value."""
        from dragoman.decode.decoding import Sampling

        return Sampling.of(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=self.seed,
            samples=samples,
            settings=settings,
        )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options for the inference engine."""

    batch_size: BatchSize = 64
    engine: Engine = "auto"
    precision: Precision = "auto"
    device: Device = None
    threads: Threads = None


@dataclass(frozen=True, kw_only=True)
class DecodingOptions(SamplingOptions):
    """Options for translating by search or, with `--sample`, by sampling."""

    sample: Annotated[bool, typer.Option("--sample", help="Sample translations instead of searching.")] = False

    def resolve(
        self, request: RequestOptions, search: list[str] | None, samples: int = 1
    ) -> "tuple[RequestSettings, Sampling | None]":
        """Return arguments of `Translator.request`, and the sampling settings, or None for a search.

        search: settings from the command line. Raises ConfigError for options of the other way of decoding.
        """
        from dragoman.base.errors import reject_options

        if not self.sample:
            reject_options(self.by_name(), "with --sample")
            return request.search_settings(search), None
        reject_options(request.search_options(), "without --sample")
        return request.settings(()), self.sampling(samples, search or ())


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions:
    """Options for word alignments that are derived from attention."""

    alignment_layer: Annotated[
        int | None,
        typer.Option(
            "--alignment-layer", min=1, help="Decoder layer for the alignments (default: the penultimate layer)."
        ),
    ] = None
    alignment_head: Annotated[
        int | None,
        typer.Option(
            "--alignment-head", min=1, help="Attention head for the alignments (default: the mean of all heads)."
        ),
    ] = None

    @property
    def attention(self) -> "AttentionChoice | None":
        """The layer and head for the alignments; None for the default."""
        from dragoman.models.attention_weights import AttentionChoice

        chosen = (self.alignment_layer, self.alignment_head)
        return None if chosen == (None, None) else AttentionChoice(*chosen)


def split_tags(tags: str | None) -> list[str]:
    """Split the value of a comma-separated option, such as `--tags` or `--keep`."""
    return [tag.strip() for tag in (tags or "").split(",") if tag.strip()]


def with_fusion(search: list[str] | None, language_model: Path | None, weight: float | None) -> "Overrides":
    """Add `--language-model` and `--fusion` to search settings. Raises ConfigError for a weight without a model."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import COMMAND_LINE, Override

    if language_model is None:
        if weight is not None:
            raise ConfigError("--fusion needs a language model: set --language-model")
        return search or ()
    fusion = {"language_model": str(language_model), **({} if weight is None else {"weight": weight})}
    return [Override(("search", "fusion"), fusion, COMMAND_LINE), *(search or [])]
