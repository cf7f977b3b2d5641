"""Options that several verbs share."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.base.settings.load import Overrides
    from dragoman.translation.request import RequestSettings, Sampling


class Documents(StrEnum):
    """What a document is in a text file."""

    line = "line"
    blank_line = "blank_line"
    file = "file"


def _hush(context: typer.Context, quiet: bool) -> bool:
    """For as long as the command runs, wherever in it something would be told."""
    from dragoman.base.log import quietly

    context.with_resource(quietly(quiet))
    return quiet


Model = Annotated[Path, typer.Argument(help="A model folder, such as the one that `dragoman train --out` wrote.")]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Another model of the same vocabularies that translates together with the first: the mean of their "
        "probabilities decides. Give it once a model.",
    ),
]
Beam = Annotated[
    int | None, typer.Option("--beam", min=1, help="Hypotheses kept a sentence; 1 is greedy (default: the model's, 5).")
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", min=1, help="Sentences translated at once; does not change the output.")
]
LengthPenalty = Annotated[
    str | None,
    typer.Option(
        "--length-penalty",
        help="GNMT's exponent (larger favours longer output), or mean, or none (default: the model's).",
    ),
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        min=0,
        help="GNMT's beta: favours translations whose attention missed no source token (default: the model's, 0).",
    ),
]
LanguageModel = Annotated[
    Path | None,
    typer.Option(
        "--language-model",
        metavar="FOLDER",
        help="A language model of the target language, with the model's vocabulary, that votes on every token.",
    ),
]
Fusion = Annotated[
    float | None,
    typer.Option("--fusion", metavar="WEIGHT", help="How much the language model's vote counts (default: 0.1)."),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings of the search (docs/settings.md), such as search.minimum_length=3, in place of the model's own.",
        show_default=False,
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="copy|forbid|FILE",
        help="For words that a vocabulary lacks: copy the source word, generate none, or look the source word up in a "
        "file of word TAB translation (default: the model's, copy).",
    ),
]
Constraints = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        help="Phrases that each translation must hold, a line a line: a tab between phrases, | between alternatives.",
    ),
]
Glossary = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="Lines of source term TAB target, more targets after more tabs: translations hold one where the term is. "
        "Without a target the term stays as it is; = before a term: in this very case.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="KIND[,KIND]...",
        help="What stays as it is: number, url, email, emoji, markup, placeholder, or all.",
    ),
]
KeepPattern = Annotated[
    list[str] | None,
    typer.Option("--keep-pattern", metavar="REGEX", help="More that stays as it is; may be given several times."),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Target language, for a model that writes several, such as de."),
]
Tags = Annotated[
    str | None,
    typer.Option("--tags", help="Other tags that the model was trained with, such as domain-law; commas between."),
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", help="Sampling: below 1 likely words become likelier (default: 1)."),
]
TopK = Annotated[
    int | None, typer.Option("--top-k", help="Sampling: draw among that many likeliest entries (default: all).")
]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", help="Sampling: draw among the likeliest with this share of the probability."),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Sampling: decides what is drawn (default: 1).")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N (default: a GPU if there is one).")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads (default: one a core).")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_hush, help="Tell nothing of what is going on, but warnings and errors."),
]
"""A verb that takes it is quiet; it need not look."""
DocumentsOption = Annotated[
    Documents | None,
    typer.Option(
        "--documents",
        help="Text of one language: what a document is; a language model knows nothing of others while it reads one "
        "(default: line).",
    ),
]
Heading = Annotated[
    str | None,
    typer.Option(
        "--heading",
        help="With --documents file: a regular expression; with each line that it matches, after a blank one, a "
        "document begins.",
    ),
]
Stride = Annotated[
    int | None,
    typer.Option(
        "--stride",
        min=1,
        help="Language models: tokens that a window predicts of a document longer than the model's window; what stands "
        "before them in the window is context (default: half the window).",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|torch|native|cuda|ctranslate2",
        help="What computes: auto is the fastest one for the device and the precision; torch is the reference.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="float32|float16|bfloat16|int8",
        help="int8 (CPU), float16 and bfloat16 (GPU) are faster and round, so that some translations differ (default: "
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
    """What is asked of each translation."""

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
        """Return them as `Translator.request` takes them. search: further settings of the search."""
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
    """How translations are drawn at random."""

    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None

    def given(self) -> dict[str, object]:
        """Return them by name."""
        return {
            "--temperature": self.temperature,
            "--top-k": self.top_k,
            "--top-p": self.top_p,
            "--seed": self.seed,
        }

    def sampling(self, samples: int = 1, settings: "Overrides" = ()) -> "Sampling":
        """Return the sampling that they describe. Raises ConfigError for an invalid value."""
        from dragoman.translation.request import Sampling

        return Sampling.of(self.temperature, self.top_k, self.top_p, self.seed, samples, settings)


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What computes translations, and where."""

    batch_size: BatchSize = 64
    engine: Engine = "auto"
    precision: Precision = None
    device: Device = None
    threads: Threads = None


def split_tags(tags: str | None) -> list[str]:
    """What stands between commas: the tags of `--tags`, the kinds of `--keep`."""
    return [tag.strip() for tag in (tags or "").split(",") if tag.strip()]


def with_fusion(search: list[str] | None, language_model: Path | None, weight: float | None) -> "Overrides":
    """Settings of the search, and those of `--language-model` and `--fusion`. Raises ConfigError for a weight alone."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import COMMAND_LINE, Override

    if language_model is None:
        if weight is not None:
            raise ConfigError("--fusion is the weight of a language model: name it with --language-model")
        return search or ()
    fusion = {"language_model": str(language_model), **({} if weight is None else {"weight": weight})}
    return [Override(("search", "fusion"), fusion, COMMAND_LINE), *(search or [])]


def check_settings(arguments: list[str], example: str = "train.max_steps=1000") -> None:
    """Raises ConfigError for an argument that is no setting."""
    from dragoman.base.errors import ConfigError

    for argument in arguments:
        if "=" not in argument:
            raise ConfigError(f"'{argument}' is not a setting: write key=value, as in {example}")
