"""Options of the commands that analyse the output of a model for a text."""

import re
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Device, Quiet, Tags, TaskName, Threads, To

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dragoman.figures.figure import Figure
    from dragoman.inference.abilities import SupportsInspect
    from dragoman.inference.prediction.examples import Text
    from dragoman.inference.subject import SubjectSettings

_WORD = re.compile(r"\w+")
_LONGEST_PART = 40
"""Number of characters of a text in the name of a file."""

AnalysedText = Annotated[
    str,
    typer.Argument(
        help="Source sentence, or the text to analyse, for a language model or a model that predicts labels."
    ),
]
Target = Annotated[
    str | None, typer.Option("--target", help="Translation to analyse (default: the model's translation).")
]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="New file, whose suffix selects its format: .svg, .png, .json or .csv (default: an SVG file that is named "
        "after the command and its arguments).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON object instead of text.")]
Off = Annotated[
    list[str] | None,
    typer.Option(
        "--off",
        metavar="KIND:LAYER:HEAD",
        help="Head to switch off, such as decoder.cross_attention:4:3; repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder to write the figures to, as SVG, PNG, JSON and CSV; it must not exist."),
]


@dataclass(frozen=True)
class LabelOptions:
    """Options for a model that predicts labels."""

    pair: Annotated[str | None, typer.Option("--pair", help="Second text of a pair, or the context of a question.")] = (
        None
    )
    word: Annotated[
        int | None, typer.Option("--word", min=1, help="Number of the word whose tag is analysed (default: a span's).")
    ] = None
    mask: Annotated[
        int | None, typer.Option("--mask", min=1, help="Number of the <mask> to analyse (default: the first).")
    ] = None
    task: TaskName = None

    def text(self, text: str) -> "Text":
        """Return the text, or the pair of texts."""
        return text if self.pair is None else (text, self.pair)


@dataclass(frozen=True)
class ModelOptions:
    """Options for loading a model and for the language of its translations."""

    to: To = None
    tags: Tags = None
    device: Device = None
    threads: Threads = None
    quiet: Quiet = False

    def load(self, folder: Path, labels: LabelOptions | None = None, out: Path | None = None) -> "SupportsInspect":
        """Load a model with the engine whose computation is visible. out: the folder of the figures.

        Raises ConfigError if `out` exists and is not empty, and the errors of `open_visible`.
        """
        from dragoman.base.files import check_new_folder
        from dragoman.base.machine.device import use_threads
        from dragoman.inspection.inspect import open_visible

        if out is not None:
            check_new_folder(out)
        use_threads(self.threads)
        return open_visible(folder, self.device, None if labels is None else labels.task)

    def settings(self, target: str | None = None, labels: LabelOptions | None = None) -> "SubjectSettings":
        """Return the settings of an analysis."""
        from dragoman.inference.subject import SubjectSettings

        word, mask = (None, None) if labels is None else (labels.word, labels.mask)
        return SubjectSettings(target, self.to, tuple(split_tags(self.tags)), word, mask)


def largest(
    rows: "Sequence[str]", columns: "Sequence[str]", values: "NDArray[np.float64]", form: str, count: int = 5
) -> str:
    """Return one line per row of values (T, S), with the columns of the largest magnitudes. form: of the numbers."""
    width = max(map(len, rows))
    lines = []
    for row, numbers in zip(rows, values.tolist(), strict=True):
        best = sorted(range(len(columns)), key=lambda column: -abs(numbers[column]))[:count]
        lines.append(f"{row:<{width}}  " + "  ".join(f"{columns[each]} {numbers[each]:{form}}" for each in best))
    return "\n".join(lines)


def named_after(*parts: str | Path, suffix: str = "") -> Path:
    """Return a path in the current folder, named after a command and its arguments, at which nothing exists.

    parts: the command, model folders and a text, of each of which the first words are part of the name.
    """
    words = (part.resolve().name if isinstance(part, Path) else "-".join(_WORD.findall(part.lower())) for part in parts)
    name = "-".join(word[:_LONGEST_PART].strip("-") for word in words if word)
    numbered = (f"{name}-{number}{suffix}" for number in count(2))
    return next(path for path in map(Path, chain([f"{name}{suffix}"], numbered)) if not path.exists())


def figure_file(out: Path | None, *parts: str | Path) -> Path:
    """Return a new file for a figure: that of `--out`, or one that is `named_after` the parts.

    Without a suffix, the file is an SVG file. Raises ConfigError for another suffix and for a file that exists.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.base.files import check_new_files
    from dragoman.figures.figure import FORMATS

    if out is None:
        return named_after(*parts, suffix=".svg")
    if not out.suffix:
        out = out.with_name(f"{out.name}.svg")
    if out.suffix.lower().removeprefix(".") not in FORMATS:
        formats = ", ".join(f".{each}" for each in FORMATS)
        raise ConfigError(f"--out {out}: figures are written as {formats}, not as {out.suffix}")
    check_new_files({"--out": out})
    return out


def write_figure(figure: "Figure", file: Path) -> None:
    """Write a figure to a file, and name it."""
    from dragoman.base.log import info

    figure.write(file)
    info(f"wrote {file}")


def write_figures(out: Path | None, figures: "Mapping[str, Figure]") -> None:
    """Write figures by name into a new folder, if there is one."""
    from dragoman.base.files import atomic_folder
    from dragoman.base.log import info

    if out is None:
        return
    with atomic_folder(out) as staged:
        for name, figure in figures.items():
            figure.save(staged, name)
    info(f"wrote {', '.join(figures)} to {out}, as SVG, PNG, JSON and CSV")
