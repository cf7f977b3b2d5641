"""`TextToTextJob`, the data, model, loss, validation and model folder of a run that writes text of any kind."""

from dragoman.base.log import info
from dragoman.metrics.metric import Metric
from dragoman.metrics.registry import METRICS, metrics_with
from dragoman.metrics.score import Score
from dragoman.tasks.multi_task.translation import MultiTaskTranslation
from dragoman.tasks.text_to_text.config import TextToTextRun
from dragoman.tasks.translation.job import TranslationJob
from dragoman.training.task import Job
from dragoman.training.validation import Validation

_MARGIN = 1.5
"""Maximum length of outputs, as a multiple of the longest training target."""


def open_text_to_text(run: TextToTextRun) -> Job:
    """Open the job of a run that writes text, together with its auxiliary tasks if it has any."""
    job = TextToTextJob(run)
    return job if run.auxiliary_tasks is None else MultiTaskTranslation(job, run.auxiliary_tasks)


class TextToTextJob(TranslationJob):
    """The job of a run that writes summaries, labels, answers or other texts."""

    run: TextToTextRun
    whole_texts = True

    def prepare(self) -> None:
        """Prepare the corpora, and limit the length of outputs by that of the training targets."""
        super().prepare()
        search = self.run.search
        if search.maximum_length is None:
            longest = int(self.lengths[:, 1].max()) + 1
            search = search.model_copy(update={"maximum_length": 1 + int(_MARGIN * longest)})
            self.run = self.run.model_copy(update={"search": search})
            info(f"Outputs have at most {search.maximum_length} tokens (search.maximum_length).")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of validation: the loss, the perplexity, and `train.metric` with related metrics."""
        return tuple(METRICS[key] for key in ("loss", "perplexity", *metrics_with(self.run.train.metric)))

    def card_scores(self, validation: Validation) -> list[tuple[str, Score]]:
        """Return the metrics of outputs, and the perplexity."""
        keys = (*metrics_with(self.run.train.metric), "perplexity")
        return [(validation[key].name, validation[key]) for key in keys]
