"""`score` computes the probability of given translations, or texts, under a model."""

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
from dragoman.metrics.text_score import TextScore
from dragoman.translation.files.lines import Lines, name_of, read_parallel

if TYPE_CHECKING:
    from dragoman.generation.language_model import LanguageModel
    from dragoman.translation.translator import Translator

LINE = "line"


@dataclass(frozen=True)
class Scores:
    """Scores under a model. each: of every pair or document (`unit`), in order. total: the sum, with perplexities."""

    each: tuple[TextScore, ...]
    total: TextScore
    unit: str

    def __str__(self) -> str:
        return f"{len(self.each)} {self.unit}, {self.total}"


def score(
    model: "str | Path | Sequence[str | Path] | Translator | LanguageModel",
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
    """Compute log-probabilities (nats) of `target` given `source`, or of documents under a model without a source.

    The results are those of `dragoman score`; the total has perplexities per token, word and byte. model: a folder of
    any kind of model that can score, several folders as an ensemble, or a loaded model.

    target, source: a file (str or Path) or a list of lines; without a source, each item of the list is a document.
    to, tags: as in `Translator.request`. documents, heading: how a file is divided into documents, as in `data.train`
    of a language model (default: by lines). stride: as in `LanguageModel.score`. device: as in `load`, for a folder.

    Raises ConfigError for arguments that exclude each other, DataError for unequal numbers of lines, and the
    errors of the models.
    """
    from dragoman.generation.language_model import LanguageModel

    use_threads(threads)
    with quietly(quiet):
        if isinstance(model, LanguageModel) or (
            isinstance(model, str | Path) and is_language_model_folder(Path(model))
        ):
            reject_options({"--source": source, "--to": to, "--tags": list(tags)}, "with a translation model")
            texts = _documents(target, documents, heading)
            opened = model if isinstance(model, LanguageModel) else LanguageModel.load(model, device, "score")
            return _scores(opened.score(texts, stride, batch_size), "documents")
        reject_options({"--documents": documents, "--heading": heading, "--stride": stride}, "with a language model")
        if source is None:
            raise ConfigError(f"{model} translates: give the source sentences of the translations, --source FILE")
        return _of_pairs(model, target, source, to, list(tags), batch_size, device, threads)


def is_language_model_folder(folder: Path) -> bool:
    """Return whether a folder contains a language model, that is, a model without a source.

    Raises ModelError for a kind of model that cannot score.
    """
    from dragoman.exchange.ctranslate2.folder import check_model_kind

    return not check_model_kind(folder, "score").reads_source


def _of_pairs(
    model: "str | Path | Sequence[str | Path] | Translator",
    target: Lines,
    source: Lines,
    to: str | None,
    tags: Sequence[str],
    batch_size: int,
    device: str | None,
    threads: int | None,
) -> Scores:
    from dragoman.translation.translator import Translator

    sources, targets = read_parallel(("source", source), ("target", target))
    opened = model if isinstance(model, Translator) else Translator.load(model, device, threads=threads)
    with in_files(name_of(source, "source"), name_of(target, "target")):
        scores = opened.score(sources, targets, batch_size, to=to, tags=tags)
    ids = opened.tokenizers.target.encode_batch(targets)
    parts = [each.log_probability for each in scores]
    return _scores([TextScore.of(*each) for each in zip(targets, ids, parts, strict=True)], "pairs")


def _documents(target: Lines, kind: str | None, heading: str | None) -> list[str]:
    if not isinstance(target, str | Path):
        reject_options({"--documents": kind, "--heading": heading}, "with a file")
        return list(target)
    settings = {"text": target, "documents": kind or LINE, "heading": heading}
    return read_texts(parse_settings(settings, TextCorpusConfig, "documents"))


def _scores(each: Sequence[TextScore], unit: str) -> Scores:
    return Scores(tuple(each), TextScore.total(each), unit)
