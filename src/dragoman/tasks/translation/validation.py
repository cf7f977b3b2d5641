"""Validation of a translation model on held-out pairs: loss, perplexity, BLEU, chrF and the deciding metric."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, in_files
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning.rules import repair_like_training
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_references
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu_tokenizer import AUTO, DEFAULT, choose_tokenizer
from dragoman.metrics.metric import Metric, Outputs, warn_of_blank_references
from dragoman.metrics.registry import METRICS
from dragoman.metrics.text_score import TextScore, count_bytes, count_words
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.ranks.ranks import Ranks, Runtime
from dragoman.training.validation import Validation, validate


@dataclass(frozen=True)
class HeldOutPairs:
    """A validation set in memory.

    more_references: further lists of references, each with one line per source.
    """

    corpus: CorpusConfig
    sources: list[str]
    targets: list[str]
    more_references: tuple[list[str], ...] = ()

    @property
    def name(self) -> str:
        """Name of the validation set in messages and in the log."""
        return str(self.corpus)


def read_held_out(config: TranslationRun, corpora: Sequence[CorpusConfig]) -> tuple[HeldOutPairs, ...]:
    """Read validation sets, and repair them like the training corpora.

    Raises DataError for a set that cannot be read or is blank.
    """
    sets = tuple(_read_pairs(corpus, config) for corpus in corpora)
    for each in sets:
        warn_of_blank_references(each.name, each.targets, [each.sources])
    return sets


def _read_pairs(corpus: CorpusConfig, config: TranslationRun) -> HeldOutPairs:
    held_out, cleaning, (source, target) = read_references(corpus), config.data.cleaning, corpus.side_names
    sources = held_out.sources
    if config.text.vectors is None:
        sources = repair_like_training(sources, cleaning, source)
    targets, *others = (repair_like_training(lines, cleaning, target) for lines in held_out.references)
    return HeldOutPairs(corpus, sources, targets, tuple(others))


def choose_tokenizers(sets: Sequence[HeldOutPairs], language: str | None, name: str = AUTO) -> list[str]:
    """Return the tokeniser of BLEU for each set, and print the notes on the choices.

    language: the target language of sets that specify none. If it is None, the code of a TMX file is used. name: the
    setting `train.bleu_tokenizer`.
    """
    languages = [each.corpus.target_language or language or each.corpus.target_code for each in sets]
    choices = [choose_tokenizer(code, [each.targets], name) for code, each in zip(languages, sets, strict=True)]
    for note in dict.fromkeys(choice.note for choice in choices):
        next(choice for choice in choices if choice.note == note).report()
    return [choice.name for choice in choices]


def check_tags(sets: Sequence[HeldOutPairs], config: TranslationRun, tokenizers: Tokenizers | None) -> None:
    """Raise ConfigError if a validation set has a language or a tag that the model does not support.

    tokenizers: the tokenizers of `train.start` or `train.teacher` if the run uses them, else None.
    """
    if tokenizers is not None:
        known = set(tokenizers.tags)
    else:
        known = {*config.text.tags, *(tag for corpus in config.data.corpora for tag in corpus.all_tags)}
    for held_out in sets:
        for tag in held_out.corpus.all_tags:
            if tag not in known:
                raise ConfigError(
                    f"the validation set {held_out.name} has the tag {tag!r}, which no corpus of data.train has. "
                    f"Available tags: {', '.join(sorted(known)) or 'none'}"
                )


_BATCH = BatchConfig(tokens=4096)
_SENTENCES = 64
"""Number of sentences per batch of translation."""


def validation_metrics(metric: str) -> tuple[Metric, ...]:
    """Return the metrics that are computed. `metric` selects the best checkpoint; the last ones break ties first."""
    return tuple(METRICS[key] for key in dict.fromkeys(("loss", "perplexity", "bleu", "chrf", metric)))


class Validator:
    """Validates a model on the pairs of one set, which are tokenised only once."""

    def __init__(
        self,
        sources: list[str],
        targets: list[str],
        model: Seq2Seq,
        translator: Translator,
        *,
        beam: int,
        tags: tuple[str, ...] = (),
        metrics: Sequence[Metric] = validation_metrics("bleu"),
        more_references: tuple[list[str], ...] = (),
    ) -> None:
        """model: the translator's model. tags: tags that are prepended to each source. more_references: further
        references of the sources, besides the targets.
        """
        self._metrics = metrics
        self._words, self._bytes = sum(map(count_words, targets)), sum(map(count_bytes, targets))
        self.sources, self.targets, self._references = sources, targets, (targets, *more_references)
        self._model, tokenizers = model, translator.tokenizers
        self.translator = translator
        # The length is limited, because an untrained model rarely generates the end symbol and would take minutes.
        own = translator.search_config()
        search = SearchConfig(
            beam=beam, length_factor=1.5, length_margin=10, maximum_length=own.maximum_length, unknown=own.unknown
        )
        self._request = Request(search, tags)
        tag_ids = tokenizers.source.tag_ids(tags)
        ids = tokenizers.source.encode_batch(sources)
        self._source_ids = [[*tag_ids, *source] for source in ids] if tag_ids else ids
        self._target_ids = tokenizers.target.encode_batch(targets)
        lengths = np.array(
            [[len(s), len(t)] for s, t in zip(self._source_ids, self._target_ids, strict=True)], np.int32
        )
        self._plan = plan_epoch(lengths, _BATCH, seed=0, epoch=0)

    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the sentences, and all return the same result."""
        started = time.monotonic()
        with Progress("Validating", "sentences", len(self.sources) // runtime.ranks.size) as progress:
            if runtime.ranks.distributed:
                hypotheses = self._translate_distributed(runtime.ranks, progress)
            else:
                hypotheses = self._translate(progress)
            outputs = Outputs(hypotheses, self._references, self.sources, self._compute_likelihood(runtime))
            return validate(self._metrics, outputs, started)

    def estimate_seconds(self) -> float:
        """See `TimedValidator`. Measured on one batch of sentences that are spread evenly over the set."""
        rows = range(0, len(self.sources), max(1, len(self.sources) // _SENTENCES))
        started = time.monotonic()
        self.translator.translate_nbest([self.sources[row] for row in rows], self._request)
        return (time.monotonic() - started) * len(self.sources) / max(1, len(rows))

    def _translate(self, progress: Progress) -> list[str]:
        """Translate all sources in this process."""
        return [best[0].text for best in self.translator.stream_nbest(self.sources, self._request, progress=progress)]

    def _translate_distributed(self, ranks: Ranks, progress: Progress) -> list[str]:
        """Translate all sources on several ranks.

        Each rank translates whole batches, most of which are the same as in a single process.
        """
        order = sorted(range(len(self.sources)), key=lambda row: len(self._source_ids[row]))
        blank = [row for row in order if not self.sources[row].strip()]
        non_blank = [row for row in order if self.sources[row].strip()]
        batches = [non_blank[start : start + _SENTENCES] for start in range(0, len(non_blank), _SENTENCES)]
        rows = sorted(row for batch in batches[ranks.rank :: ranks.size] for row in batch)
        lines = [self.sources[row] for row in rows]
        stream = self.translator.translate_window(lines, self._request, _SENTENCES, progress=progress)
        hypotheses = dict.fromkeys(blank, "")
        for pairs in ranks.gather([(row, best[0].text) for row, best in zip(rows, stream, strict=True)]):
            hypotheses |= dict(pairs)
        return [hypotheses[row] for row in range(len(self.sources))]

    @torch.no_grad()
    def _compute_likelihood(self, runtime: Runtime) -> TextScore:
        cross_entropy = CrossEntropy(label_smoothing=0.0)
        total = tokens = 0.0
        for rows in until_cancelled(self._plan.batches[runtime.ranks.rank :: runtime.ranks.size]):
            batch = collate(
                [self._source_ids[row] for row in rows], [self._target_ids[row] for row in rows], list(rows)
            )
            with runtime.autocast():
                loss = cross_entropy(self._model, batch.to(runtime.device))
            total += float(loss.cross_entropy)
            tokens += loss.tokens
        total, tokens = runtime.ranks.sum([total, tokens])
        return TextScore(-total, int(tokens), self._words, self._bytes)


def build_validators(
    sets: Sequence[HeldOutPairs],
    model: Seq2Seq,
    translator: Translator,
    *,
    beam: int,
    metrics: Sequence[Metric],
    tokenizers: Sequence[str] = (),
) -> dict[str, Validator]:
    """Return one validator per set, by the set's name.

    tokenizers: the tokeniser of BLEU for each set (default: 13a).
    """
    validators = {}
    for held_out, name in zip(sets, tokenizers or [DEFAULT] * len(sets), strict=True):
        of_set = [metric.with_tokenizer(name) for metric in metrics]
        with in_files(held_out.corpus.files[0]):
            validators[held_out.name] = Validator(
                held_out.sources,
                held_out.targets,
                model,
                translator,
                beam=beam,
                tags=held_out.corpus.all_tags,
                metrics=of_set,
                more_references=held_out.more_references,
            )
    return validators
