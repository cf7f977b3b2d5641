"""Options shared by several commands."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.base.settings.load import Overrides
    from dragoman.translation.request import RequestSettings, Sampling


class Documents(StrEnum):
    """How a text file is divided into documents."""

    line = "line"
    blank_line = "blank_line"
    file = "file"


def _hush(context: typer.Context, quiet: bool) -> bool:
    """Suppress messages for as long as the command runs."""
    from dragoman.base.log import quietly

    context.with_resource(quietly(quiet))
    return quiet


Model = Annotated[Path, typer.Argument(help="Model folder, such as one written by `dragoman train --out`.")]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Another model with the same vocabularies for an ensemble, which averages the models' "
        "probabilities; repeatable.",
    ),
]
Beam = Annotated[
    int | None, typer.Option("--beam", min=1, help="Beam size; 1 is greedy search (default: the model's, 5).")
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", min=1, help="Number of sentences per batch; does not affect the output.")
]
LengthPenalty = Annotated[
    str | None,
    typer.Option(
        "--length-penalty",
        help="Exponent of the GNMT length penalty (larger values favour longer outputs), or mean, or none "
        "(default: the model's).",
    ),
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        min=0,
        help="Weight of the GNMT coverage penalty, which favours translations that attend to all source tokens "
        "(default: the model's, 0).",
    ),
]
LanguageModel = Annotated[
    Path | None,
    typer.Option(
        "--language-model",
        metavar="FOLDER",
        help="Language model of the target language, with the model's vocabulary, for shallow fusion.",
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
        help="Search settings (docs/settings.md) that override the model's own, such as search.minimum_length=3.",
        show_default=False,
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="copy|forbid|FILE",
        help="Output for unknown words: copy the source word, never generate unknown words, or look up the "
        "source word in a file of word TAB translation (default: the model's, copy).",
    ),
]
Constraints = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        help="Phrases that the translation must contain, one line per input line; tabs separate phrases, | "
        "separates alternatives.",
    ),
]
Glossary = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="Glossary: lines of source term TAB target, with alternative targets after more tabs. Translations "
        "of the term contain one of them. A term without target is kept unchanged; = before a term matches "
        "its case exactly.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="KIND[,KIND]...",
        help="Kinds of text that are kept unchanged: number, url, email, emoji, markup, placeholder, or all.",
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
    typer.Option("--to", metavar="LANGUAGE", help="Target language, such as de, for a model with several."),
]
Tags = Annotated[
    str | None,
    typer.Option("--tags", help="Other tags that the model was trained with, such as domain-law, separated by commas."),
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
    typer.Option("--top-p", help="Sample from the most probable tokens with this total probability (default: all)."),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Random seed for sampling (default: 1).")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N (default: a GPU if there is one).")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads (default: one per core).")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_hush, help="Print warnings and errors only."),
]
"""Takes effect in its callback; commands need not read it."""
DocumentsOption = Annotated[
    Documents | None,
    typer.Option(
        "--documents",
        help="What a document is in plain text; a language model reads documents independently of each other (default: "
        "line).",
    ),
]
Heading = Annotated[
    str | None,
    typer.Option(
        "--heading",
        help="With --documents file: regular expression; each matching line after a blank line starts a document.",
    ),
]
Stride = Annotated[
    int | None,
    typer.Option(
        "--stride",
        min=1,
        help="For language models: number of tokens predicted per window, if a document is longer than the model's "
        "window; the rest of the window is context (default: half the window).",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|torch|native|cuda|ctranslate2",
        help="Inference engine: auto chooses the fastest for the device and precision; torch is the reference.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="float32|float16|bfloat16|int8",
        help="int8 (CPU), float16 and bfloat16 (GPU) are faster; rounding changes some translations (default: "
        "float32 on a CPU, float16 on a GPU, or as an exported model is stored).",
    ),
]


Guard = Annotated[
    bool,
    typer.Option(
        "--guard",
        help="Inspect each translation, and search again if it repeats itself, is empty, copies the source, or differs "
        "from it in script or numbers.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """Options of a translation request."""

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

    def of_search(self) -> dict[str, object]:
        """Return the options that only a search can use, by name."""
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
        """Return the options as arguments of `Translator.request`. search: further search settings."""
        return {
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "coverage_penalty": self.coverage_penalty,
            "unknown": self.unknown,
            "search": search,
            "to": self.to,
            "tags": split_tags(self.tags),
            "glossary": self.glossary,
            "keep": split_tags(self.keep),
            "keep_patterns": self.keep_pattern or (),
            "guard": self.guard,
        }


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Options of sampling."""

    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None

    def given(self) -> dict[str, object]:
        """Return the options by name."""
        return {
            "--temperature": self.temperature,
            "--top-k": self.top_k,
            "--top-p": self.top_p,
            "--seed": self.seed,
        }

    def sampling(self, samples: int = 1, settings: "Overrides" = ()) -> "Sampling":
        """Return the sampling settings. Raises ConfigError for an invalid value."""
        from dragoman.translation.request import Sampling

        return Sampling.of(self.temperature, self.top_k, self.top_p, self.seed, samples, settings)


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options of the inference engine."""

    batch_size: BatchSize = 64
    engine: Engine = "auto"
    precision: Precision = None
    device: Device = None
    threads: Threads = None


def split_tags(tags: str | None) -> list[str]:
    """Split a comma-separated option: the tags of `--tags`, the kinds of `--keep`."""
    return [tag.strip() for tag in (tags or "").split(",") if tag.strip()]


def with_fusion(search: list[str] | None, language_model: Path | None, weight: float | None) -> "Overrides":
    """Add `--language-model` and `--fusion` to search settings. Raises ConfigError for a weight without a model."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import COMMAND_LINE, Override

    if language_model is None:
        if weight is not None:
            raise ConfigError("--fusion is the weight of a language model: name it with --language-model")
        return search or ()
    fusion = {"language_model": str(language_model), **({} if weight is None else {"weight": weight})}
    return [Override(("search", "fusion"), fusion, COMMAND_LINE), *(search or [])]


def check_settings(arguments: list[str], example: str = "train.max_steps=1000") -> None:
    """Raise ConfigError for an argument that is not a setting."""
    from dragoman.base.errors import ConfigError

    for argument in arguments:
        if "=" not in argument:
            raise ConfigError(f"'{argument}' is not a setting: write key=value, as in {example}")
