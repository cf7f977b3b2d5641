"""Options shared by several commands."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.base.settings.load import Overrides
    from dragoman.decode.decoding import Sampling
    from dragoman.inference.translation.request import RequestSettings


class Documents(StrEnum):
    """Ways of dividing a text file into documents."""

    line = "line"
    blank_line = "blank_line"
    file = "file"


def _set_quiet(context: typer.Context, quiet: bool) -> bool:
    """Suppress informational messages while the command runs."""
    from dragoman.base.log import quietly

    context.with_resource(quietly(quiet))
    return quiet


Model = Annotated[Path, typer.Argument(help="Model folder, such as one written by `dragoman train --out`.")]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Name of the task, for a model that predicts the labels of several tasks.")
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Additional model with the same vocabularies for an ensemble, which averages the probabilities of its "
        "models; repeatable.",
    ),
]
Beam = Annotated[
    int | None, typer.Option("--beam", min=1, help="Beam size; 1 is greedy search (default: the model's setting, 5).")
]
BatchSize = Annotated[
    int,
    typer.Option("--batch-size", min=1, max=100_000, help="Number of sentences per batch; does not affect the output."),
]
LengthPenalty = Annotated[
    str | None,
    typer.Option(
        "--length-penalty",
        help="Exponent of the GNMT length penalty (larger values favour longer outputs), mean, or none (default: the "
        "model's setting).",
    ),
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        min=0,
        help="Weight of the GNMT coverage penalty, which favours translations that attend to all source tokens "
        "(default: the model's setting, 0).",
    ),
]
LanguageModel = Annotated[
    Path | None,
    typer.Option(
        "--language-model",
        metavar="FOLDER",
        help="Target-language model for shallow fusion, with the target vocabulary of the translation model.",
    ),
]
Fusion = Annotated[
    float | None,
    typer.Option("--fusion", metavar="WEIGHT", help="Weight of the language model (default: 0.1)."),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Search settings (`dragoman settings search`) that override the model's, such as search.minimum_length=3.",
        show_default=False,
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="copy|forbid|FILE",
        help="Output for unknown words: copy the source word, forbid unknown words, or look up the source word in a "
        "file with lines of word TAB translation (default: the model's setting, copy).",
    ),
]
Constraints = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        help="File with the phrases that each translation must contain, one line per input line; tabs separate "
        "phrases, and | separates alternatives.",
    ),
]
Glossary = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="Glossary with lines of source term TAB target; further tabs separate alternative targets. A translation "
        "of the term contains one of its targets. A term without a target is kept unchanged. A term after = is "
        "case-sensitive.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="KIND[,KIND]...",
        help="Kinds of text that are kept unchanged: number, url, email, emoji, markup, placeholder, mention, hashtag, "
        "path, code, escape, all, or none (default: none; with --document, all, without enforcing them in the first "
        "search).",
    ),
]
KeepPattern = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-pattern",
        metavar="REGEX",
        help="Regular expression for further text that is kept unchanged; repeatable.",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Target language, such as de, for a model with several languages."),
]
Tags = Annotated[
    str | None,
    typer.Option("--tags", help="Comma-separated tags that the model was trained with, such as domain-law."),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature", help="Sampling temperature; values below 1 make likely tokens more likely (default: 1)."
    ),
]
TopK = Annotated[int | None, typer.Option("--top-k", help="Sample from the k most probable tokens (default: all).")]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", help="Sample from the smallest set of tokens with this total probability (default: all)."),
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, max=2**63 - 1, help="Random seed for sampling (default: 1).")
]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N (default: a GPU if available).")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="Number of CPU threads (default: one per core).")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_set_quiet, help="Print warnings and errors only."),
]
"""The callback applies this option, so commands ignore its value."""
DocumentsOption = Annotated[
    Documents | None,
    typer.Option(
        "--documents",
        help="How plain text is divided into documents, which a language model processes independently (default: "
        "line).",
    ),
]
Heading = Annotated[
    str | None,
    typer.Option(
        "--heading",
        help="With --documents file: regular expression for headings. Each matching line after a blank line starts a "
        "document.",
    ),
]
Stride = Annotated[
    int | None,
    typer.Option(
        "--stride",
        min=1,
        help="For documents longer than a language model's window: number of tokens predicted per window; the "
        "remaining tokens are context (default: half the window).",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|torch|native|cuda|ctranslate2",
        help="Inference engine: auto chooses the fastest engine for the device and precision; torch is the reference "
        "implementation.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="auto|float32|float16|bfloat16|int8",
        help="int8 (CPU), float16 (GPU) and bfloat16 are faster, but rounding changes some translations. auto: on a "
        "CPU, int8 if it costs at most 0.2 BLEU by the measurement in the model folder and is faster on this "
        "processor, otherwise float32; on a GPU, float16; for an exported model, the stored precision.",
    ),
]
PredictionEngine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="auto|native|torch",
        help="Engine for predicted labels. native: compiled code for Transformers on the CPU. torch: PyTorch, for all "
        "models and devices. auto (default): native if it supports the model and the device.",
    ),
]
PredictionPrecision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="float32|int8",
        help="Precision for predicted labels (default: float32). int8, with the native engine, is faster, but rounding "
        "changes some predictions.",
    ),
]

Divide = Annotated[
    bool,
    typer.Option(
        "--divide/--no-divide",
        help="Translate lines of several sentences sentence by sentence. Models often translate only a part of a line "
        "that is longer than those of their training data.",
    ),
]
Guard = Annotated[
    bool,
    typer.Option(
        "--guard",
        help="Check each translation, and search again if it has repetitions, is empty, copies the source, or has a "
        "different script or different numbers.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """Options for translation requests."""

    to: To = None
    tags: Tags = None
    beam: Beam = None
    length_penalty: LengthPenalty = None
    coverage_penalty: CoveragePenalty = None
    unknown: Unknown = None
    language_model: LanguageModel = None
    fusion: Fusion = None
    glossary: Glossary = None
    keep: Keep = None
    keep_pattern: KeepPattern = None
    guard: Guard = False

    def search_options(self) -> dict[str, object]:
        """Return the options that are only valid for a search, by option name."""
        return {
            "--beam": self.beam,
            "--length-penalty": self.length_penalty,
            "--coverage-penalty": self.coverage_penalty,
            "--unknown": self.unknown,
            "--language-model": self.language_model,
            "--fusion": self.fusion,
            "--glossary": self.glossary,
            "--keep": self.keep,
            "--keep-pattern": self.keep_pattern,
            "--guard": self.guard or None,
        }

    def settings(self, search: "Overrides") -> "RequestSettings":
        """Return the options as arguments of `Translator.request`. search: additional search settings."""
        return {
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "coverage_penalty": self.coverage_penalty,
            "unknown": self.unknown,
            "search": search,
            "to": self.to,
            "tags": split_tags(self.tags),
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

        return Sampling.of(self.temperature, self.top_k, self.top_p, self.seed, samples, settings)


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options for the inference engine."""

    batch_size: BatchSize = 64
    engine: Engine = "auto"
    precision: Precision = "auto"
    device: Device = None
    threads: Threads = None


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
