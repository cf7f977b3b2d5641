"""`estimate` aligns a corpus, builds the tables of a statistical translation model, tunes its weights and writes it."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import LoadedModel, write_model_folder
from dragoman.checkpoint.meta import Meta, RecordedScore
from dragoman.checkpoint.tensors import model_parameters
from dragoman.data.cleaning.rules import repair_like_training
from dragoman.data.corpora.readers import check_readable, read_sides
from dragoman.data.held_out.check import PairSet, check_pairs, report
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare
from dragoman.engines.choice import default_threads
from dragoman.engines.statistical import StatisticalEngine
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu_tokenizer import AUTO, check_tokenizer, choose_tokenizer
from dragoman.metrics.metric import Outputs, warn_of_blank_references
from dragoman.metrics.registry import METRICS, ngram_metrics
from dragoman.models.kinds.ngram import NgramModel
from dragoman.models.kinds.statistical import PhraseBasedConfig, StatisticalModel, TableSizes
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.pair_scoring import pair_scoring
from dragoman.statistical.ngrams.counts import count_ngrams
from dragoman.statistical.ngrams.kneser_ney import ModifiedKneserNeyConfig
from dragoman.statistical.phrases.aligned_corpus import (
    AlignedCorpus,
    LinkProbabilities,
    Sentences,
    align_words,
    train_lexicon,
)
from dragoman.statistical.phrases.decoder import StatisticalDecoder
from dragoman.statistical.phrases.extraction import extract_phrases
from dragoman.statistical.phrases.phrase_table import PhraseTable, estimate_table
from dragoman.statistical.phrases.word_tables import channel_table, dictionary_table
from dragoman.statistical.phrases.words import FoldedWords
from dragoman.tasks.corpora.pair_sets import PairSets
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.estimation import EstimationResult
from dragoman.tasks.statistical_translation.config import StatisticalRun
from dragoman.tasks.statistical_translation.tuning import WeightTuning
from dragoman.tasks.verdict.after_training import judge_after_training
from dragoman.text.symbols import BOS, EOS, UNK
from dragoman.training.validation import Validation, validate

_STORED_OPTIONS = 100
"""Maximum number of stored target phrases per source phrase."""


class Estimation:
    """The steps of a run, in order."""

    def __init__(self, run: StatisticalRun, prepared: Path | None = None) -> None:
        """Hold out pairs, if needed, and read the validation set. Raises ConfigError and DataError.

        prepared: folder of prepared corpora; None: the folder `prepared` beside `out`.
        """
        self._threads = run.threads or default_threads()
        self._folder = prepared or prepared_folder(run.out)
        check_readable(*run.data.corpora)
        if run.bleu_tokenizer != AUTO:
            check_tokenizer(run.bleu_tokenizer)
        self._sets = PairSets.open(run.data, run.out)
        self._run = run = run.model_copy(update={"data": self._sets.complete(run.data)})
        if len(self._sets.valid) > 1:
            raise ConfigError(
                "statistical translation has one source and one target language, but the corpora of data.train name "
                "several: train on those of one language pair"
            )
        self._valid = self._sets.valid[0]
        sources, references = read_sides(self._valid)
        cleaning, (source, target) = run.data.cleaning, self._valid.side_names
        self._sources = repair_like_training(sources, cleaning, source)
        self._references = repair_like_training(references, cleaning, target)
        warn_of_blank_references(str(self._valid), self._references, [self._sources])
        language = run.data.target_language or self._valid.target_code
        self._bleu_tokenizer = choose_tokenizer(language, [self._references], run.bleu_tokenizer)
        self._bleu_tokenizer.report()

    def check_held_out(self) -> None:
        """Report validation pairs that are also training pairs."""
        data = self._run.data
        held_out = [] if data.holds_out else [PairSet(str(self._valid), self._sources, self._references)]
        languages = data.source_language, data.target_language
        report(check_pairs(data.corpora, held_out, languages, overlaps=not data.cleaning.held_out))

    def run(self) -> EstimationResult:
        """Estimate the model and write its folder."""
        run, data = self._run, self._run.data
        languages = data.source_language, data.target_language
        prepared = prepare(
            data.corpora,
            data.cleaning,
            run.text,
            self._folder,
            languages=languages,
            scoring=pair_scoring(data.cleaning),
            held_out=self._sets.keys,
        )
        self._sets.report(prepared.reports)
        with Workers(self._threads) as workers:
            model = self._build(prepared, workers)
        self._tune(model, prepared)
        loaded = LoadedModel(model, prepared.tokenizers, self._meta(prepared), run.model_dump(mode="json"))
        validation = self._validate(loaded)
        scores = [
            RecordedScore(metric=each.name, value=each.value, signature=each.signature, data=str(self._valid))
            for each in validation.scores
        ]
        settings = dump_settings(run.model_copy(update={"model": model.config}))
        meta = loaded.meta.model_copy(update={"scores": tuple(scores)})
        samples = {"source": self._sources, "target": self._references}
        write_model_folder(run.out, model_parameters(model), settings, prepared.tokenizers, meta, samples=samples)
        self._sets.store(run.out)
        return EstimationResult(run.out, 0, validation, "", ())

    def judged(self, result: EstimationResult) -> EstimationResult:
        """Return the result with the verdict on the model, which is written into its folder."""
        outputs, tokenizer, language = result.validation.outputs, self._bleu_tokenizer.name, self._valid.target_language
        verdict = judge_after_training(
            self._run.out, outputs, str(self._valid), tokenizer, language=language, threads=self._threads
        )
        return replace(result, verdict=verdict)

    def _build(self, prepared: PreparedCorpora, workers: Workers) -> StatisticalModel:
        """Return the model with all tables and with the initial weights."""
        run, tokenizers = self._run, prepared.tokenizers
        table = self._table(prepared, workers)
        language_model = self._language_model(prepared)
        table_sizes = TableSizes(
            nodes=len(table.words),
            pairs=len(table),
            targets=len(table.target_starts) - 1,
            words=len(table.target_words),
            ngrams=() if language_model is None else language_model.config.entries,
        )
        config = run.model.model_copy(update={"sizes": table_sizes})
        model = StatisticalModel(config, tokenizers.sizes)
        for name, values in table.arrays.items():
            model.phrases[name].copy_(torch.from_numpy(values))
        if language_model is not None:
            model.language_model = language_model
        return model

    def _sentences(self, prepared: PreparedCorpora) -> Sentences:
        """Return the training pairs without unknown words, with folded source words.

        An unknown word has no translation, and its sentence would teach wrong translations of its neighbours.
        """
        tokenizers = prepared.tokenizers
        pairs = (prepared.dataset[row] for row in until_cancelled(range(len(prepared.dataset))))
        known = [(source, target) for source, target in pairs if UNK not in source and UNK not in target]
        if not known:
            raise DataError("every training pair has unknown words: raise text.subword.size")
        words = FoldedWords(tokenizers.source)
        sources = [words.of_ids(source) for source, _ in known]
        return Sentences(sources, [target for _, target in known], (tokenizers.source.size, tokenizers.target.size))

    def _table(self, prepared: PreparedCorpora, workers: Workers) -> PhraseTable:
        """Align the corpus and return the table of the run's method."""
        run, started = self._run, time.monotonic()
        method, sentences = run.model.method, self._sentences(prepared)
        count = len(sentences.sources)
        if isinstance(method, PhraseBasedConfig):
            target_words = FoldedWords(prepared.tokenizers.target)
            targets = [target_words.of_ids(target) for target in sentences.targets]
            folded = Sentences(sentences.sources, targets, sentences.sizes)
            links = align_words(folded, run.alignment.method, run.alignment.symmetrization, workers)
            corpus = AlignedCorpus.of(sentences.sources, sentences.targets, links)
            del sentences, links, targets, folded  # the next steps need much memory
            probabilities = LinkProbabilities.of(corpus)
            table = estimate_table(
                corpus, extract_phrases(corpus, probabilities, method.longest, workers.threads), method, _STORED_OPTIONS
            )
        elif method.kind == "word_based":
            table = channel_table(train_lexicon(sentences.swapped(), method.iterations, workers), sentences)
        else:
            table = dictionary_table(train_lexicon(sentences, method.iterations, workers))
        seconds = time.monotonic() - started
        info(f"Tables: {len(table):,} pairs of {count:,} sentence pairs, in {seconds:.0f} s")
        return table

    def _language_model(self, prepared: PreparedCorpora) -> NgramModel | None:
        """Return the n-gram model of the target sentences."""
        if not self._run.model.method.has_language_model:
            return None
        size, rows = prepared.tokenizers.target.size, until_cancelled(range(len(prepared.dataset)))
        tokens = np.concatenate([np.array([BOS, *prepared.dataset[row][1], EOS], np.int64) for row in rows])
        return NgramModel.of(ModifiedKneserNeyConfig().estimate(count_ngrams(tokens, self._run.model.order, size)))

    def _tune(self, model: StatisticalModel, prepared: PreparedCorpora) -> None:
        """Tune the weights on the validation set, unless the run disables it."""
        tuning, tokenizers = self._run.tuning, prepared.tokenizers
        decoder = StatisticalDecoder(model, tokenizers, self._threads)
        weights = decoder.weights
        if tuning is not None and model.config.method.can_reorder:
            pairs = list(zip(self._sources, self._references, strict=True))[: tuning.sentences]
            pairs = [pair for pair in pairs if all(map(str.strip, pair))]
            ids = tokenizers.source.encode_batch([source for source, _ in pairs])
            sources = [decoder.encode(text, each) for (text, _), each in zip(pairs, ids, strict=True)]
            references = [reference for _, reference in pairs]
            metric = ngram_metrics()["bleu"].with_tokenizer(self._bleu_tokenizer.name)
            found = WeightTuning(decoder, tokenizers.target, sources, references, metric=metric).run(tuning)
            info(f"Tuning: BLEU {found.before:.2f} with the initial weights, {found.after:.2f} with the tuned weights")
            weights = found.weights
        names = model.config.method.features
        named = dict(zip(names, map(float, weights), strict=True))
        model.config = model.config.model_copy(update={"weights": named})

    def _validate(self, loaded: LoadedModel) -> Validation:
        """Translate the validation set with the final weights."""
        started = time.monotonic()
        engine = StatisticalEngine(loaded, self._threads)
        search = self._run.search.model_dump(mode="json")
        translator = Translator(engine, loaded.tokenizers, loaded.meta, search, warn_unfinished=False)
        outputs = Outputs(translator.translate(self._sources), (self._references,), self._sources)
        metrics = [METRICS[key].with_tokenizer(self._bleu_tokenizer.name) for key in ("bleu", "chrf")]
        return validate(metrics, outputs, started)

    def _meta(self, prepared: PreparedCorpora) -> Meta:
        data = self._run.data
        return Meta(step=0, data=dict(zip(map(str, data.corpora), prepared.fingerprints, strict=True)), **data.card())


def estimate(run: StatisticalRun) -> EstimationResult:
    """Estimate the model of a run and write its folder. Raises ConfigError, DataError and ResourceError."""
    estimation = Estimation(run)
    estimation.check_held_out()
    return estimation.judged(estimation.run())
