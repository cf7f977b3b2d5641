"""`estimate_ngram_model` counts the n-grams of a run's corpora and writes the model folder."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import info
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta, RecordedScore
from dragoman.checkpoint.tensors import model_parameters
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.readers import check_readable
from dragoman.data.held_out.check import TextSet, check_texts, report
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.metrics.metric import Outputs
from dragoman.metrics.text_score import TextScore
from dragoman.models.kinds.ngram import NgramModel
from dragoman.statistical.ngrams.counts import count_ngrams
from dragoman.tasks.corpora.held_out_text import HeldOutText
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.corpora.text_sets import TextSets
from dragoman.tasks.estimation import EstimationResult
from dragoman.tasks.language_model.validator import METRICS
from dragoman.tasks.ngram_language_model.config import NgramRun
from dragoman.tasks.start.vocabulary import load_vocabulary
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.unknown_tokens import UnknownTokens, check_unknown, has_unknown_tokens
from dragoman.training.validation import Validation, average_validations, validate

_WHOLE_DOCUMENTS = 2**31 - 1
"""Maximum number of labels per block, so that no document is divided."""


def estimate_ngram_model(run: NgramRun) -> EstimationResult:
    """Estimate the model of a run, write its folder, and return its perplexities on the validation sets.

    Raises ConfigError for contradictory settings, DataError for unreadable corpora or too many unknown tokens.
    """
    check_readable(*run.data.corpora)
    run, tokenizers = load_vocabulary(run)
    named = [HeldOutText(str(corpus), read_texts(corpus)) for corpus in run.data.valid_sets]
    report(check_texts(run.data.corpora, [TextSet(each.name, each.documents) for each in named]))
    sets = TextSets.open(run.data, named, run.out)
    held_out, run = sets.texts, run.model_copy(update={"data": sets.complete(run.data)})
    prepared = prepare_texts(
        run.data.corpora,
        run.data.cleaning,
        tokenizers or run.text,
        prepared_folder(run.out),
        _WHOLE_DOCUMENTS,
        sample=run.data.vocabulary_sample,
        language=run.data.language,
        held_out=sets.keys.excluded,
    )
    _check_unknown(run, prepared, held_out)
    tokenizer = prepared.tokenizers.target
    counts = count_ngrams(_tokens(prepared), run.model.order, tokenizer.size, len(tokenizer.tags))
    model = NgramModel.of(run.smoothing.estimate(counts))
    run = run.model_copy(update={"model": model.config})
    sizes = ", ".join(f"{len(table.keys):,} of order {order}" for order, table in enumerate(model.tables, start=1))
    info(f"Model: n-grams: {sizes}")
    scored = LanguageModel(model, tokenizer)
    validations = {each.name: _validate(scored, each.documents) for each in held_out}
    validation = average_validations(METRICS, validations) if len(validations) > 1 else next(iter(validations.values()))
    meta = Meta(
        step=0,
        scores=_scores(validation, ", ".join(map(str, sets.corpora))),
        data=dict(zip(map(str, run.data.corpora), prepared.fingerprints, strict=True)),
        **run.data.card(),
    )
    vocabulary, samples = Tokenizers(tokenizer, tokenizer), {"target": held_out[0].documents}
    write_model_folder(run.out, model_parameters(model), dump_settings(run), vocabulary, meta, samples=samples)
    sets.store()
    return EstimationResult(run.out, 0, validation, "", ())


def _tokens(prepared: PreparedCorpora) -> NDArray[np.int64]:
    """Return the ids of all documents, each with BOS before and EOS after it."""
    (text,) = prepared.dataset.take(np.arange(len(prepared.dataset)))
    return text.ids.astype(np.int64)


def _check_unknown(run: NgramRun, prepared: PreparedCorpora, held_out: Sequence[HeldOutText]) -> None:
    """Raise DataError if the fraction of unknown tokens of a corpus or a validation set exceeds `data.max_unknown`."""
    limit, tokenizer = run.data.max_unknown, prepared.tokenizers.target
    for corpus, cleaned in zip(run.data.corpora, prepared.reports, strict=True):
        check_unknown(f"the training corpus {corpus}", cleaned.unknown, limit)
    if has_unknown_tokens(tokenizer):
        for each in held_out:
            unknown = {"text": UnknownTokens.of(tokenizer.encode_batch(each.documents))}
            check_unknown(f"the validation set {each.name}", unknown, limit)


def _validate(model: LanguageModel, documents: Sequence[str]) -> Validation:
    started = time.monotonic()
    likelihood = TextScore.total(model.score(documents, batch_size=256))
    info(f"Validation: {likelihood}")
    return validate(METRICS, Outputs(likelihood=likelihood), started)


def _scores(validation: Validation, data: str) -> tuple[RecordedScore, ...]:
    """Return the perplexities for the model card: the means over all sets, then those of each set."""
    own = tuple(
        RecordedScore(metric="perplexity", value=score.value, signature=score.signature, data=data)
        for score in validation.scores
        if score.better is None
    )
    return own + tuple(score for name, each in validation.sets.items() for score in _scores(each, name))
