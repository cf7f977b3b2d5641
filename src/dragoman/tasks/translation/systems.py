"""Statistical models that a run on a small corpus estimates on the same pairs, because they are often better there."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.base.cancellation import Cancelled, TimeLimit, time_limit
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.log import info, quietly, warn
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.meta import RecordedScore, SystemRecord
from dragoman.checkpoint.precision_cost import read_precision_cost
from dragoman.checkpoint.systems import HYBRID, NEURAL, PHRASE_BASED, SYSTEMS, write_systems
from dragoman.metrics.registry import METRICS
from dragoman.models.kinds.statistical import DictionaryConfig, PhraseBasedConfig, StatisticalConfig
from dragoman.tasks.corpora.pair_sets import PairSets
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.statistical_translation.config import StatisticalDataConfig, StatisticalRun
from dragoman.tasks.statistical_translation.estimate import Estimation
from dragoman.tasks.translation.config import SystemName, TranslationRun
from dragoman.tasks.translation.hybrid import TuningPairs, tune_hybrid
from dragoman.training.progress.final_steps import FinalSteps
from dragoman.training.validation import Validation

LARGEST = 20_000
"""Number of pairs up to which `systems: auto` estimates statistical models.

With them, the result is 2 BLEU better than the neural model on 19,000 pairs of Europarl, and 4 on 4,000 of Multi30k. On
29,000 pairs of Multi30k, the phrase-based model is 5 BLEU and the hybrid 1 BLEU worse than the neural model, although
the hybrid is 2 chrF2 better (EXPERIMENTS.md, "Small corpora").
"""

_SHARE = 0.25
"""Fraction of a time limit after which models that are not complete are left out."""

_HYBRID_SHARE = 0.5
"""Fraction of what is left of a time limit that the hybrid may take."""

_METHODS = {"dictionary": DictionaryConfig(), "phrase_based": PhraseBasedConfig()}
_METRICS = ("bleu", "chrf")


class Systems:
    """The systems of a run, whose statistical models are in the folder `systems` of the run."""

    def __init__(self, records: Sequence[SystemRecord], metric: str) -> None:
        """records: of the statistical models. metric: key of the metric that decides, bleu or chrf."""
        self._records, self._metric = list(records), METRICS[metric].name

    @classmethod
    def estimate(cls, run: TranslationRun, pairs: int, bleu_tokenizer: str) -> "Systems":
        """Estimate the models that `run.systems` requests, unless an earlier process of the run has done so.

        pairs: number of training pairs. bleu_tokenizer: that of the validation set. A model that cannot be estimated,
        or that takes more than a quarter of `train.max_minutes`, is left out with a warning, also when the run resumes.
        """
        names = requested_systems(run, pairs)
        new = [name for name in names if not (run.out / SYSTEMS / name).is_dir()]
        if run.train.max_minutes is not None and any((run.out / "training").glob("step-*")):  # left out before
            names, new = tuple(name for name in names if name not in new), []
        if new:
            info(f"Systems: estimating {' and '.join(map(_title, new))} on the same pairs, in seconds to a minute")
        minutes = run.train.max_minutes
        with time_limit(None if minutes is None else _SHARE * 60 * minutes) as limit:
            records = [_record(run, name, bleu_tokenizer, limit) for name in names]
        return cls([each for each in records if each is not None], "chrf" if run.train.metric == "chrf" else "bleu")

    def record(self, folder: Path, neural: Mapping[str, RecordedScore]) -> None:
        """Write the systems to the run's folder, the best first. neural: scores of the neural model, by metric."""
        if self._records:
            write_systems(folder, self.ranked(SystemRecord(name=NEURAL, scores=tuple(neural.values()))))

    def report(self, folder: Path, pairs: TuningPairs, threads: int | None, steps: FinalSteps) -> None:
        """Compare the final model, translating with its own search settings, with the other systems, and report it.

        The validations of a run are faster, with `train.validation_beam`. The measurement of int8 has translated the
        same pairs with the settings that users get. A hybrid of both models is tuned in the time that is left.

        pairs: the validation set.
        """
        if not self._records:
            return
        scores = {each.metric: each for each in neural_record(folder).scores}
        cost = read_precision_cost(folder)
        if cost is not None and cost.sentences == cost.set_size:
            measured = {cost.bleu_signature: cost.float32.bleu, cost.chrf_signature: cost.float32.chrf}
            scores = {
                name: each.model_copy(update={"value": measured.get(each.signature, each.value)})
                for name, each in scores.items()
            }
        self.record(folder, scores)
        self._records = [each for each in self._records if each.name != HYBRID]
        if any(each.name == PHRASE_BASED for each in self._records):
            steps.run(
                "the hybrid of the phrase-based and the neural model",
                lambda: self._add_hybrid(folder, pairs, threads),
                fraction=_HYBRID_SHARE,
            )
            self.record(folder, scores)
        ranked = read_meta(folder).systems
        listed = "; ".join(f"{each.title} {self._value(each):.2f}" for each in ranked)
        info(
            f"Systems: {self._metric} on the validation pairs: {listed}. {folder} translates with the first one; "
            "--system selects another."
        )

    def _add_hybrid(self, folder: Path, pairs: TuningPairs, threads: int | None) -> None:
        """Tune the hybrid of the phrase-based and the neural model, and keep it if it is better than the former."""
        try:
            hybrid = tune_hybrid(folder, pairs, threads)
        except DragomanError as error:
            warn(f"the hybrid of the phrase-based and the neural model was not tuned: {error}")
            return
        self._records += [] if hybrid is None else [hybrid]

    def ranked(self, neural: SystemRecord) -> list[SystemRecord]:
        """Return all systems, the best first. Of equal ones, the neural model is the first."""
        return sorted([neural, *self._records], key=self._value, reverse=True)

    def _value(self, record: SystemRecord) -> float:
        score = record.score(self._metric)
        return -1.0 if score is None else score.value


def requested_systems(run: TranslationRun, pairs: int) -> tuple[SystemName, ...]:
    """Return the names of the statistical models that a run estimates.

    `auto` requests both for a plain corpus of up to `LARGEST` pairs, unless the run continues a trained model. Raises
    ConfigError if the settings name some, but the data are not plain.
    """
    obstacle = _obstacle(run)
    if run.systems == "auto":
        is_first = run.train.start is None and run.train.teacher is None and run.task.kind == "translation"
        return ("dictionary", "phrase_based") if pairs <= LARGEST and is_first and obstacle is None else ()
    if run.systems and obstacle is not None:
        raise ConfigError(f"systems: statistical models do not support {obstacle}: set systems=[]")
    return run.systems


def _obstacle(run: TranslationRun) -> str | None:
    """Return what statistical models do not support in the data of a run, or None."""
    data, text = run.data, run.text
    corpora = (*data.corpora, *data.valid_sets)
    if any(each.all_tags for each in corpora) or text.tags or text.source_prefix or data.inline_symbols:
        return "tags, prefixes and placeholders"
    if any(each.weight != 1 for each in corpora) or data.temperature is not None:
        return "weights of corpora"
    if text.vectors is not None:
        return "word vectors as sources"
    return "several validation sets" if len(data.valid_sets) > 1 else None


def validation_scores(validation: Validation | None, data: str) -> dict[str, RecordedScore]:
    """Return BLEU and chrF of a validation as records, by metric. data: name of the validation set."""
    if validation is None:
        return {}
    scores = [each for each in validation.scores if each.key in _METRICS]
    return {
        each.name: RecordedScore(metric=each.name, value=each.value, signature=each.signature, data=data)
        for each in scores
    }


def neural_record(folder: Path) -> SystemRecord:
    """Return the record of the neural model in the folder of a run that recorded its systems."""
    return next(each for each in read_meta(folder).systems if each.name == NEURAL)


def _title(name: str) -> str:
    return f"a {SystemRecord(name=name).title}"


def _record(run: TranslationRun, name: SystemName, bleu_tokenizer: str, limit: TimeLimit) -> SystemRecord | None:
    """Return the record of a model, which is estimated unless its folder exists."""
    folder = run.out / SYSTEMS / name
    if not folder.is_dir():
        started = time.monotonic()
        try:
            with quietly(True):
                Estimation(_statistical_run(run, name, bleu_tokenizer), prepared_folder(run.out)).run()
        except DragomanError as error:  # the neural model does not need it
            warn(f"{_title(name)} was not estimated: {error}")
            return None
        except Cancelled:
            if not limit.has_passed:
                raise
            warn(f"{_title(name)} was left out: it takes more than a quarter of train.max_minutes")
            return None
        scores = ", ".join(f"{each.metric} {each.value:.2f}" for each in read_meta(folder).scores)
        info(f"Systems: {_title(name)}: {scores} on the validation pairs, in {time.monotonic() - started:.0f} s")
    return SystemRecord(name=name, folder=f"{SYSTEMS}/{name}", scores=read_meta(folder).scores)


def _statistical_run(run: TranslationRun, name: SystemName, bleu_tokenizer: str) -> StatisticalRun:
    data, sets = run.data, PairSets.open(run.data, run.out)
    test, cleaning = None, data.cleaning
    if sets.stored is not None:
        test, cleaning = sets.stored.test or None, cleaning.model_copy(update={"held_out": True})
    return StatisticalRun(
        data=StatisticalDataConfig(
            train=data.corpora, valid=sets.valid[0], test=test, cleaning=cleaning, **data.card()
        ),
        model=StatisticalConfig(method=_METHODS[name]),
        bleu_tokenizer=bleu_tokenizer,
        threads=run.train.threads,
        out=run.out / SYSTEMS / name,
    )
