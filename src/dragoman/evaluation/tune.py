"""`tune` optimises reranking weights on a development set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.base.errors import ConfigError, in_files
from dragoman.base.log import quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides
from dragoman.data.corpora.inputs import Lines, name_of, read_parallel
from dragoman.inference.load import translator_of
from dragoman.inference.translation.reranking.line_search import Lists, corpus_score, search_weights
from dragoman.inference.translation.reranking.reranker import (
    Features,
    RerankingConfig,
    RerankingLanguageModelConfig,
    ReverseConfig,
    TunedConfig,
    flat,
    write_reranking,
)
from dragoman.metrics.bleu_tokenizer import AUTO, check_tokenizer, choose_tokenizer
from dragoman.metrics.registry import ngram_metrics


@dataclass(frozen=True)
class Tuning:
    """The result of tuning.

    config: reranking settings with the tuned weights. best: corpus score of the best hypotheses of all lists (oracle).
    """

    config: RerankingConfig
    best: float

    def __str__(self) -> str:
        tuned = self.config.tuned
        assert tuned is not None
        weights = ", ".join(f"{name} {weight:.4f}" for name, weight in self.config.weights().items())
        return (
            f"{weights}\n{tuned.metric}\n  {tuned.before:.2f} by the model's own order, {tuned.after:.2f} with these "
            f"weights, on the {tuned.sentences:,} sentences that they were tuned on; the best "
            f"hypotheses of the lists would reach about {self.best:.2f}"
        )


def tune(
    model: str | Path | Sequence[str | Path],
    *,
    source: Lines,
    reference: Lines,
    out: str | Path | None = None,
    reverse: str | Path | None = None,
    language_model: str | Path | None = None,
    nbest: int = 20,
    metric: str = "bleu",
    tokenizer: str = AUTO,
    restarts: int = 20,
    seed: int = 1,
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    beam: int | None = None,
    length_penalty: float | str | None = None,
    search: Overrides = (),
    to: str | None = None,
    tags: Iterable[str] = (),
    divide: bool = True,
) -> Tuning:
    """Optimise reranking weights, like `dragoman tune`, and write them to `out`, a YAML file for `rerank`.

    Each sentence is translated once and each hypothesis is scored once. Line search (Och 2003) then maximises the
    corpus score, starting from the weights of the model's own order and from `restarts` vectors of random weights.

    model: a model folder, or several folders as an ensemble. source, reference: a development set, as files or lists of
    lines. reverse: folder of a model of the reverse direction. language_model: folder of a language model of the target
    language. nbest: number of hypotheses per sentence. metric: bleu or chrf. tokenizer: sacreBLEU's
    tokeniser for BLEU; auto: by the target language. seed: the same seed results in the same
    weights. The other arguments are as in `Translator.load` and `Translator.request`.

    Raises ConfigError for invalid arguments, DataError for unequal numbers of lines, and the errors of the models.

    >>> from dragoman import tune
    >>> tuning = tune(
    ...     "runs/ende", source="valid.en", reference="valid.de", language_model="runs/lm", nbest=3, beam=3, quiet=True
    ... )
    >>> sorted(tuning.config.weights())
    ['language_model', 'length', 'model']
    """
    metrics = ngram_metrics()
    if metric not in metrics:
        raise ConfigError(f"weights cannot be tuned by {metric!r}: use {' or '.join(metrics)}")
    if nbest < 2:
        raise ConfigError(f"--nbest must be at least 2, not {nbest}, because reranking needs several hypotheses")
    if restarts < 0:
        raise ConfigError(f"--restarts must be at least 0, not {restarts}")
    if tokenizer != AUTO:
        check_tokenizer(tokenizer)
    use_threads(threads)
    sources, references = read_parallel(("source", source), ("reference", reference))
    config = RerankingConfig(
        nbest=nbest,
        reverse=None if reverse is None else ReverseConfig(folder=Path(reverse)),
        language_model=None if language_model is None else RerankingLanguageModelConfig(folder=Path(language_model)),
    )
    with quietly(quiet):
        translator = translator_of(model, device, precision=None, threads=threads)
        features = Features(config, translator.meta, device, threads, batch_size)
        request = translator.request(
            nbest=nbest, beam=beam, length_penalty=length_penalty, search=search, to=to, tags=tags, divide=divide
        )
        with in_files(name_of(source, "source")):
            nbest_lists = translator.translate_nbest(sources, request, batch_size)
        choice = choose_tokenizer(translator.target_language(request.tags), [references], tokenizer)
        objective = metrics[metric].with_tokenizer(choice.name)
        if objective is not metrics[metric]:
            choice.report()
        counts = [len(hypotheses) for hypotheses in nbest_lists]
        repeated = [line for line, count in zip(references, counts, strict=True) for _ in range(count)]
        statistics = objective.statistics([hypothesis.text for hypothesis in flat(nbest_lists)], repeated)
        ends = np.cumsum(counts)[:-1]
        lists = Lists(features.of(sources, nbest_lists), np.split(statistics, ends))
        initial = np.eye(len(config.weights()))[0]
        result = search_weights(lists, initial, objective, restarts, seed)
    first = np.sum([each[0] for each in lists.statistics], axis=0)
    oracle = np.sum([each[int(np.argmax(objective.sentences(each)))] for each in lists.statistics], axis=0)
    weights = dict(zip(config.weights(), result.weights.tolist(), strict=True))
    for name in ("reverse", "language_model"):
        if weights.get(name, 0.0) < 0:
            warn(
                f"the weight of {name} is negative, so hypotheses that this model finds unlikely are preferred. The "
                "model does not help on this development set: remove it, or use a better model or more sentences"
            )
    tuned = TunedConfig(
        metric=f"{objective.name} ({objective.signature(1)})",
        sentences=len(sources),
        before=float(objective.corpus(first)),
        after=corpus_score(lists, result.weights, objective),
    )
    config = config.with_weights(weights).model_copy(update={"tuned": tuned})
    if out is not None:
        write_reranking(Path(out), config)
    return Tuning(config, float(objective.corpus(oracle)))
