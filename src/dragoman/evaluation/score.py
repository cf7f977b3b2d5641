"""`score` computes log-probabilities of translations, or of documents under a language model or a masked one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import ConfigError, in_files, reject_options
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import parse_settings
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.inputs import Lines, name_of, read_parallel
from dragoman.metrics.text_score import TextScore
from dragoman.models.kinds import PREDICTION_MODEL

if TYPE_CHECKING:
    from dragoman.inference.generation.language_model import LanguageModel
    from dragoman.inference.prediction.predictor import Predictor
    from dragoman.inference.translation.translator import Translator

LINE = "line"


@dataclass(frozen=True)
class Scores:
    """Scores under a model.

    each: scores of all pairs or documents, in order. total: their sum, with perplexities. unit: `pairs` or `documents`.
    pseudo: whether the scores are pseudo-log-likelihoods of a masked language model.
    """

    each: tuple[TextScore, ...]
    total: TextScore
    unit: str
    pseudo: bool = False

    def __str__(self) -> str:
        total = self.total
        if not self.pseudo:
            return f"{len(self.each)} {self.unit}, {total}"
        return (
            f"{len(self.each)} {self.unit}, pseudo-log-likelihood {total.log_probability:.2f} nats; pseudo-perplexity "
            f"per token {total.per_token:.3f} ({total.tokens} tokens), per word {total.per_word:.3f} ({total.words} "
            "words)"
        )


def score(
    model: "str | Path | Sequence[str | Path] | Translator | LanguageModel | Predictor",
    target: Lines,
    source: Lines | None = None,
    *,
    to: str | None = None,
    tags: Iterable[str] = (),
    documents: str | None = None,
    heading: str | None = None,
    stride: int | None = None,
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> Scores:
    """Compute log-probabilities (nats) of `target` given `source`, or of documents under a language model.

    A masked language model computes pseudo-log-likelihoods, see `Predictor.score`.

    The results are those of `dragoman score`. The total includes perplexities per token, word and byte.

    model: a model folder, several folders as an ensemble, or a loaded model; its kind must support scoring. target,
    source: a file (str or Path) or a list of lines. For a language model, each item of a list is a document. to, tags:
    as in `Translator.request`. documents, heading: the division of a file into documents, as in `data.train` of a
    language model (default: one document per line). stride: as in `LanguageModel.score`. device: as in
    `Translator.load` and `LanguageModel.load`, for a model folder.

    Raises ConfigError for incompatible arguments, DataError for unequal numbers of lines, and the errors of the model.

    >>> from dragoman import score
    >>> scores = score("runs/ende", target=["Der Hund schläft."], source=["The dog sleeps."])
    >>> scores.each[0].log_probability < 0
    True
    """
    from dragoman.inference.generation.language_model import LanguageModel
    from dragoman.inference.prediction.predictor import Predictor

    use_threads(threads)
    with quietly(quiet):
        if isinstance(model, Predictor) or (isinstance(model, str | Path) and is_prediction_folder(Path(model))):
            given = {"--source": source, "--to": to, "--tags": list(tags)}
            reject_options(given, "with a translation model")
            reject_options({"--stride": stride}, "with a language model that reads in one direction")
            texts = read_documents(target, documents, heading)
            predictor = model if isinstance(model, Predictor) else Predictor.load(model, device)
            return _sum_scores(predictor.score(texts), "documents", pseudo=True)
        if isinstance(model, LanguageModel) or (
            isinstance(model, str | Path) and is_language_model_folder(Path(model))
        ):
            reject_options({"--source": source, "--to": to, "--tags": list(tags)}, "with a translation model")
            texts = read_documents(target, documents, heading)
            scorer = model if isinstance(model, LanguageModel) else LanguageModel.load(model, device, "score")
            return _sum_scores(scorer.score(texts, stride, batch_size), "documents")
        reject_options({"--documents": documents, "--heading": heading, "--stride": stride}, "with a language model")
        if source is None:
            raise ConfigError(f"{model} is a translation model: give the source sentences with --source FILE")
        return _score_pairs(model, target, source, to, list(tags), batch_size, device, threads)


def is_prediction_folder(folder: Path) -> bool:
    """Return True if the model in a folder is an encoder with a head, which only a masked language model scores with.

    Raises ModelError if the kind of model does not support scoring.
    """
    from dragoman.exchange.ctranslate2.folder import check_model_kind

    return check_model_kind(folder, "score") == PREDICTION_MODEL


def is_language_model_folder(folder: Path) -> bool:
    """Return True if the model in a folder predicts text without a source.

    Raises ModelError if the kind of model does not support scoring.
    """
    from dragoman.exchange.ctranslate2.folder import check_model_kind

    return not check_model_kind(folder, "score").reads_source


def _score_pairs(
    model: "str | Path | Sequence[str | Path] | Translator",
    target: Lines,
    source: Lines,
    to: str | None,
    tags: Sequence[str],
    batch_size: int,
    device: str | None,
    threads: int | None,
) -> Scores:
    from dragoman.inference.translation.translator import Translator

    sources, targets = read_parallel(("source", source), ("target", target))
    if isinstance(model, Translator):
        translator = model
    else:
        translator = Translator.load(model, device, precision=None, threads=threads)
    with in_files(name_of(source, "source"), name_of(target, "target")):
        pair_scores = translator.score(sources, targets, batch_size, to=to, tags=tags)
    ids = translator.tokenizers.target.encode_batch(targets)
    log_probabilities = [each.log_probability for each in pair_scores]
    scores = [TextScore.of(*each) for each in zip(targets, ids, log_probabilities, strict=True)]
    return _sum_scores(scores, "pairs")


def read_documents(target: Lines, kind: str | None, heading: str | None) -> list[str]:
    """Return the documents of a list or of a file. kind, heading: see `score`."""
    if not isinstance(target, str | Path):
        reject_options({"--documents": kind, "--heading": heading}, "with a file")
        return list(target)
    settings = {"text": target, "documents": kind or LINE, "heading": heading}
    return read_texts(parse_settings(settings, TextCorpusConfig, "documents"))


def _sum_scores(scores: Sequence[TextScore], unit: str, pseudo: bool = False) -> Scores:
    return Scores(tuple(scores), TextScore.total(scores), unit, pseudo)
