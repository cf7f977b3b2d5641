"""`score` computes log-probabilities of translations, or of documents under a language model or a masked one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dragoman.base.errors import ConfigError, DataError, in_files, reject_options
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.settings.load import parse_settings
from dragoman.base.table import Table
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.inputs import Lines, name_of, read_parallel
from dragoman.data.files.jsonl import read_objects
from dragoman.metrics.text_score import TextScore, count_bytes
from dragoman.text.words import count_words

if TYPE_CHECKING:
    from dragoman.inference.abilities import SupportsScorePairs
    from dragoman.inference.load import Model

LINE = "line"


@dataclass(frozen=True)
class Scores(Shown):
    """Scores under a model.

    each: scores of all pairs or documents, in order. total: their sum, with perplexities. unit: `pairs` or `documents`.
    pseudo: whether the scores are pseudo-log-likelihoods of a masked language model.
    """

    each: tuple[TextScore, ...]
    total: TextScore
    unit: str
    pseudo: bool = False

    def card(self) -> Card:
        """Return the perplexities of all texts together."""
        total, prefix = self.total, "pseudo-" if self.pseudo else ""
        rows = [("token", total.per_token, total.tokens), ("word", total.per_word, total.words)]
        if not self.pseudo:
            rows.append(("byte", total.per_byte, total.bytes))
        header = ("per", f"{prefix}perplexity", "number")
        table = Table([header, *((unit, f"{value:.3f}", f"{count:,}") for unit, value, count in rows)], right=1)
        title = f"{len(self.each):,} {self.unit}: {prefix}log-likelihood {total.log_probability:,.2f} nats"
        unknown = f"{total.unknown:,} of {total.tokens:,} tokens are unknown." if total.unknown else ""
        return Card(title, [table, *([Note(unknown)] if unknown else [])])

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
    model: "Model",
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
    `load`, for a model folder.

    Raises ConfigError for incompatible arguments, DataError for unequal numbers of lines, and the errors of the model.

    >>> from dragoman import score
    >>> scores = score("runs/ende", target=["Der Hund schläft."], source=["The dog sleeps."])
    >>> scores.each[0].log_probability < 0
    True
    """
    from dragoman.inference.load import kind_of, model_for

    use_threads(threads)
    with quietly(quiet):
        kind = kind_of(model)
        loaded = model_for("score", model, device, preferred={"precision": None, "threads": threads})
        if kind.reads_source and kind.predicts_text:
            options = {"--documents": documents, "--heading": heading, "--stride": stride}
            reject_options(options, "with a language model")
            if source is None:
                raise ConfigError(f"{model} is {kind.noun}: give the source sentences with --source FILE")
            translator = cast("SupportsScorePairs", loaded)
            return _score_pairs(translator, target, source, batch_size, (to, list(tags)))
        reject_options({"--source": source, "--to": to, "--tags": list(tags)}, "with a translation model")
        texts = read_documents(target, documents, heading)
        return _sum_scores(
            loaded.score(texts, stride=stride, batch_size=batch_size), "documents", not kind.predicts_text
        )


def _score_pairs(
    translator: "SupportsScorePairs",
    target: Lines,
    source: Lines,
    batch_size: int,
    languages: tuple[str | None, Sequence[str]],
) -> Scores:
    """languages: the target language and the tags."""
    sources, targets = read_parallel(("source", source), ("target", target))
    to, tags = languages
    with in_files(name_of(source, "source"), name_of(target, "target")):
        scores = translator.score(sources, targets, batch_size, to=to, tags=tags)
    return _sum_scores(
        [
            TextScore(each.log_probability, each.tokens, count_words(text), count_bytes(text), each.unknown)
            for text, each in zip(targets, scores, strict=True)
        ],
        "pairs",
    )


def read_documents(target: Lines, kind: str | None, heading: str | None) -> list[str]:
    """Return the documents of a list or of a file. kind, heading: see `score`.

    Without them, a file of JSON objects with a `text`, such as that of held-out documents, has a document per line.
    """
    if not isinstance(target, str | Path):
        reject_options({"--documents": kind, "--heading": heading}, "with a file")
        return list(target)
    if kind is None and heading is None and _has_texts(Path(target)):
        return read_texts(TextCorpusConfig(jsonl=target))
    settings = {"text": target, "documents": kind or LINE, "heading": heading}
    return read_texts(parse_settings(settings, TextCorpusConfig, "documents"))


def _has_texts(path: Path) -> bool:
    """Return whether a file has JSON objects with a `text`, as the files of held-out documents."""
    if ".jsonl" not in path.suffixes:
        return False
    try:
        _, first = next(read_objects(path), (0, None))
    except DataError:  # plain text, in spite of its name
        return False
    return first is not None and "text" in first


def _sum_scores(scores: Sequence[TextScore], unit: str, pseudo: bool = False) -> Scores:
    return Scores(tuple(scores), TextScore.total(scores), unit, pseudo)
