"""`MaskedMemberJob`, a masked language model as one of several tasks of a run."""

from collections.abc import Iterator
from pathlib import Path

from dragoman.data.batches.masking import MASK
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.labelled.job import LabelledJob
from dragoman.tasks.masked_language_model.config import MaskedLanguageModelRun
from dragoman.tasks.masked_language_model.job import MaskedLanguageModelJob
from dragoman.tasks.start.settings import StartedRun
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.validation import Validation


class MaskedMemberJob(MaskedLanguageModelJob):
    """The job of a masked language model beside labelled tasks, with their encoder and vocabulary.

    It has the methods by which `MultiTaskJob` combines jobs (see `LabelledJob`).
    """

    new_head_rate = LabelledJob.new_head_rate

    def __init__(self, run: MaskedLanguageModelRun, started: StartedRun, task: str) -> None:
        """started: the run with the encoder of `train.start`. task: name of the task."""
        super().__init__(run, started)
        self.task_name = task

    @property
    def size(self) -> int:
        """Number of labelled examples: none."""
        return 0

    def training_texts(self) -> Iterator[str]:
        """Yield no texts: the vocabulary is that of `train.start`."""
        return iter(())

    def symbols(self) -> tuple[str, ...]:
        """Return the tags that the vocabulary needs."""
        return (MASK,)

    def share(self, model: EncoderOnlyConfig, tokenizers: Tokenizers) -> None:
        """Use the encoder and the vocabulary of a run with several tasks. Must be called before `prepare`."""
        self._tokenizers = tokenizers
        self.run = self.run.model_copy(update={"model": model.model_copy(update={"head": self.run.model.head})})

    @property
    def label_count(self) -> int:
        """Mean number of masked tokens of an epoch."""
        return round(self.run.data.masking.rate * int(self.lengths.sum()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the corpora by name."""
        return dict(zip(map(str, self.run.data.corpora), self.prepared.fingerprints, strict=True))

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add nothing to the model card: the task has no labels."""
