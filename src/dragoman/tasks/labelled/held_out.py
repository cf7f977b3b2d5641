"""The examples that a run with labels holds out from its training examples: `open_sets` and `store_sets`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.log import info
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.examples import HeldOutExamples, load_examples, save_examples
from dragoman.data.held_out.sets import FOLDER
from dragoman.tasks.corpora.held_out_setting import HeldOutSetting
from dragoman.tasks.labelled.config import LabelledDataConfig
from dragoman.training.run.folder import contains_run


def open_sets(
    data: LabelledDataConfig,
    out: Path,
    examples: Sequence[Any],
    text: Callable[[Any], str],
    labels: Callable[[Any], Iterable[str]],
) -> HeldOutExamples[Any] | None:
    """Return the sets that a run has stored in its folder, or choose them; None for a run that holds out nothing.

    examples: all training examples. text, labels: as in `HeldOutExamples.choose`, whose errors are raised.
    """
    if not isinstance(data, HeldOutSetting) or not data.holds_out:
        return None
    stored = load_examples(out / FOLDER) if contains_run(out) else None
    if stored is not None:
        return stored
    config, only_test = data.held_out or HeldOutConfig(), bool(data.valid_sets)
    return HeldOutExamples.choose(examples, config, data.names("train"), text, labels, only_test=only_test)


def store_sets(sets: HeldOutExamples[Any] | None, out: Path) -> None:
    """Write sets, if there are any, into the folder of a run, and log where they are."""
    if sets is not None:
        save_examples(out / FOLDER, sets)
        info(f"Held out: {sets}, in {out / FOLDER}")
