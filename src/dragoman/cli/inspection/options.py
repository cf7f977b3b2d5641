"""Options of the commands that analyse the output of a model for a text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Quiet, Tags, TaskName, Threads, To, split_tags

if TYPE_CHECKING:
    from dragoman.analysis.subject import Loaded, SubjectSettings
    from dragoman.prediction.predictor import Text

AnalysedText = Annotated[
    str,
    typer.Argument(
        help="Source sentence, or the text to analyse, for a language model or a model that predicts labels."
    ),
]
Target = Annotated[
    str | None, typer.Option("--target", help="Translation to analyse (default: the model's translation).")
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

    def load(self, folder: Path, labels: LabelOptions | None = None) -> "Loaded":
        """Load a model with the engine whose computation is visible.

        Raises ModelError for a folder that is not a model folder, and for a kind of model that cannot be inspected.
        """
        from dragoman.analysis.loading import load_model
        from dragoman.base.errors import reject_options
        from dragoman.base.machine.device import use_threads

        use_threads(self.threads)
        loaded = load_model(folder, self.device, task=None if labels is None else labels.task)
        if labels is not None and not hasattr(loaded, "predict"):
            reject_options({"--pair": labels.pair}, "with a model that predicts labels")
        return loaded

    def settings(self, target: str | None = None, labels: LabelOptions | None = None) -> "SubjectSettings":
        """Return the settings of an analysis."""
        from dragoman.analysis.subject import SubjectSettings

        word, mask = (None, None) if labels is None else (labels.word, labels.mask)
        return SubjectSettings(target, self.to, tuple(split_tags(self.tags)), word, mask)
