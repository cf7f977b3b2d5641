"""Options shared by several commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
System = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="NAME",
        help="Model of a folder that has several: neural, phrase_based, hybrid or dictionary (default: the best one on "
        "its validation set).",
    ),
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Name of the task, for a model that predicts the labels of several tasks.")
]
SourceFile = Annotated[
    Path | None,
    typer.Option("--source", help="Source side, one sentence per line; plain, .gz, .bz2, .xz or .zst."),
]
TargetFile = Annotated[Path | None, typer.Option("--target", help="Target side, one sentence per line.")]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        help="Pairs in one file: TSV, CSV, TMX, XLIFF, JSON Lines or PO. Or the start of "
        "two files' names: corpus for corpus.en and corpus.de, with --source en --target de.",
    ),
]
ValidSource = Annotated[Path | None, typer.Option("--valid-source", help="Source side of the validation set.")]
ValidTarget = Annotated[Path | None, typer.Option("--valid-target", help="Target side of the validation set.")]
ValidPairs = Annotated[Path | None, typer.Option("--valid-pairs", help="Validation set in one file, like --pairs.")]
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
        "path, code, escape, all, or none (default: none; for documents, all, without enforcing them in the first "
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
        "--temperature",
        help="Sampling temperature; values below 1 make likely tokens more likely, 0: greedy search (default: 1).",
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
GenerationEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|torch",
        help="Engine for language models: torch (PyTorch), or one of a module of your own (`dragoman --import`).",
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
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        metavar="stop|replace|blank",
        help="Treatment of lines that are not UTF-8 or exceed the model's maximum length. stop: stop with an error; "
        "replace: replace invalid bytes with U+FFFD, and translate long lines in parts; blank: write a blank line.",
    ),
]
