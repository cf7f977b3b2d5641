"""`LabelledSets`, the examples that a run with labels holds out from its training examples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.log import info
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.example_files import load_examples, save_examples
from dragoman.data.held_out.examples import HeldOutExamples
from dragoman.data.held_out.sets import FOLDER
from dragoman.data.held_out.texts import NO_KEYS, TextKeys
from dragoman.tasks.labelled.config import LabelledDataConfig
from dragoman.training.run.folder import contains_run


@dataclass(frozen=True)
class LabelledSets:
    """The sets that a run holds out for a task.

    stored: the sets; None if the recipe names them. folder: where they are stored. text: returns the text by which an
    example is held out.
    """

    stored: HeldOutExamples[Any] | None
    folder: Path
    text: Callable[[Any], str]

    @classmethod
    def open(
        cls,
        data: LabelledDataConfig,
        out: Path,
        examples: Sequence[Any],
        text: Callable[[Any], str],
        labels: Callable[[Any], Iterable[str]],
        *,
        task: str | None,
        known: TextKeys,
    ) -> "LabelledSets":
        """Open the sets of a run, and choose them first if the run is new.

        out: folder of the run. examples: all training examples. task: name of the task if the run has several, each of
        which has a folder. text, labels, known: as in `HeldOutExamples.choose`, whose errors are raised.
        """
        folder = out / FOLDER if task is None else out / FOLDER / task
        if not data.holds_out:
            return cls(None, folder, text)
        stored = load_examples(folder) if contains_run(out) else None
        if stored is None:
            config, only_test = data.held_out or HeldOutConfig(), bool(data.valid_sets)
            names = data.names("train")
            stored = HeldOutExamples.choose(examples, config, names, text, labels, only_test=only_test, known=known)
        return cls(stored, folder, text)

    @property
    def keys(self) -> TextKeys:
        """The keys of the texts that are held out."""
        return NO_KEYS if self.stored is None else self.stored.keys(self.text)

    def complete(self, data: Any) -> Any:
        """Return the `data` section with the sizes of the held-out sets instead of null."""
        return data if self.stored is None else data.with_sizes(self.stored.sizes)

    def remaining(self, examples: Sequence[Any], keys: TextKeys, names: str) -> Sequence[Any]:
        """Return the examples whose texts are in no held-out set. keys: of all sets of the run.

        Raises DataError if nothing is left. names: of the corpora, for messages.
        """
        known = keys.all
        kept = [each for each in examples if sentence_key(self.text(each)) not in known] if known else examples
        if not kept:
            raise DataError(
                f"all examples of {names} are held out for other tasks: give this task more texts, or name the "
                "validation sets of the tasks (data.valid)"
            )
        return kept

    def store(self) -> None:
        """Write the sets, if there are any, and log where they are."""
        if self.stored is not None:
            save_examples(self.folder, self.stored)
            info(f"Held out: {self.stored}, in {self.folder}")
