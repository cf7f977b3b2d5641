"""Options of `translate_file`, in groups that are validated on creation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError, DataError, reject_options
from dragoman.decode.decoding import Sampling
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.alignment import Aligner
from dragoman.inference.translation.request import RequestSettings
from dragoman.inference.translation.reranking.minimum_risk import MinimumRisk
from dragoman.inference.translation.reranking.reranker import Reranker, RerankingConfig, read_reranking
from dragoman.inference.translation.result import Choice
from dragoman.models.attention_weights import AttentionChoice

Options = TypeVar("Options")


class FileSettings(RequestSettings, total=False):
    """Keyword arguments of `translate_file`: those of `Translator.request` and the fields of the classes below."""

    system: str | None
    engine: str
    precision: str | None
    device: str | None
    threads: int | None
    batch_size: int
    nbest: int
    sampling: Sampling | None
    rerank: str | Path | RerankingConfig | None
    mbr: str | None
    scores: bool
    token_scores: bool
    prefix: str | Path | None
    constraints: str | Path | None
    tree: str | Path | None
    alignments: str | Path | None
    attention: AttentionChoice | None
    aligner: Aligner | None


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options of the engine. batch_size: in sentences. The other fields are as in `Translator.load`."""

    system: str | None = None
    engine: str = "auto"
    precision: str | None = "auto"
    device: str | None = None
    threads: int | None = None
    batch_size: int = 64

    def load(self, model: str | Path | Sequence[str | Path], aligner: Aligner | None) -> SupportsLines:
        """Load a model with these options. Raises the same errors as `translator_of`."""
        options: dict[str, Any] = {} if aligner is None else {"aligner": aligner}
        options["system"] = self.system
        return translator_of(
            model, self.device, engine=self.engine, precision=self.precision, threads=self.threads, **options
        )


@dataclass(frozen=True, kw_only=True)
class HypothesisOptions:
    """Options that select the written hypotheses and their format.

    nbest: number of hypotheses written per line, as `index ||| text ||| score`. sampling: draw `sampling.samples`
    translations per line instead of searching. rerank: the output of `dragoman tune`; the hypothesis with the best
    reranking score is written. It is selected from `nbest` hypotheses or, if `nbest` is 1, from the number of
    hypotheses used for tuning. mbr: chrf or bleu; of the `nbest` hypotheses or samples, the one that is most similar to
    all others is written (`MinimumRisk`). scores: write the log-probability (nats) and a tab before each line.
    token_scores: write the tokens and their log-probabilities after each line.
    """

    nbest: int = 1
    sampling: Sampling | None = None
    rerank: str | Path | RerankingConfig | None = None
    mbr: str | None = None
    scores: bool = False
    token_scores: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigError for incompatible options."""
        if self.rerank is not None and self.mbr is not None:
            raise ConfigError("--rerank and --mbr both select a hypothesis: leave out one of them")
        if self.rerank is not None and self.sampling is not None:
            raise ConfigError("--rerank orders the hypotheses of a search: leave out --sample, or use --mbr")
        if self.mbr is not None and self._candidates < 2:
            raise ConfigError("--mbr needs several hypotheses: request them with --nbest, for example --nbest 10")
        self._minimum_risk()

    @property
    def _candidates(self) -> int:
        return self.nbest if self.sampling is None else self.sampling.samples

    def reranking(self) -> RerankingConfig | None:
        """Return the reranking config, or None. Raises ConfigError and DataError if its file is invalid."""
        if self.rerank is None or isinstance(self.rerank, RerankingConfig):
            return self.rerank
        return read_reranking(Path(self.rerank))

    def search_nbest(self, reranking: RerankingConfig | None) -> int:
        """Return the number of hypotheses per line that the search must return."""
        if self.sampling is not None:
            return 1
        return reranking.nbest if reranking is not None and self.nbest == 1 else self.nbest

    def choice(
        self, reranking: RerankingConfig | None, translator: SupportsLines, engine: EngineOptions
    ) -> Choice | None:
        """Return the object that orders hypotheses, or None. Raises the same errors as `Reranker.load`."""
        if reranking is not None:
            return Reranker.load(reranking, translator, engine.device, engine.threads, engine.batch_size)
        return self._minimum_risk(translator.target_language())

    def _minimum_risk(self, language: str | None = None) -> MinimumRisk | None:
        """Return minimum Bayes risk, if requested. Raises ConfigError for an unknown metric."""
        if self.mbr is None:
            return None
        return MinimumRisk(self.mbr, "probability" if self.sampling is None else "uniform", language)

    def output_nbest(self, choice: Choice | None) -> int:
        """Return the number of hypotheses written per line."""
        return self._candidates if choice is None else 1


@dataclass(frozen=True, kw_only=True)
class LineFiles:
    """Files that are read or written in parallel with the text.

    prefix: the start of each translation. constraints: the phrases that each translation must contain, with a tab
    between phrases and | between alternatives. tree: the search trees, as JSON Lines
    (docs/reference/search-tree.md). alignments: word alignments of the best translations, as `0-0 1-2`.
    attention: the attention that yields the alignments. aligner: aligns the words instead of the attention.
    """

    prefix: Path | None = None
    constraints: Path | None = None
    tree: Path | None = None
    alignments: Path | None = None
    attention: AttentionChoice | None = None
    aligner: Aligner | None = None

    def __post_init__(self) -> None:
        """Convert strings to paths. Raises ConfigError for incompatible options."""
        for name in ("prefix", "constraints", "tree", "alignments"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(path))
        if self.alignments is None:
            reject_options(
                {"--alignment-layer, --alignment-head": self.attention, "aligner": self.aligner}, "with --alignments"
            )
        if self.aligner is not None:
            reject_options({"attention": self.attention}, "without aligner")

    def check(self, source: Path | None, target: Path | object, resume: bool) -> None:
        """Raise ConfigError or DataError if a file would be overwritten or cannot be resumed."""
        if self.tree is not None and resume:
            raise ConfigError("a search tree file cannot be resumed: leave out --resume or --tree")
        others = {"--input": source, "--output": target}
        if self.tree is not None and (other := _same_file(self.tree, others)):
            raise ConfigError(f"--tree {self.tree} is the same file as {other}: choose another name")
        others["--tree"] = self.tree
        if self.alignments is not None and (other := _same_file(self.alignments, others)):
            raise DataError(f"--alignments {self.alignments} is the same file as {other}: choose another name")


def _same_file(path: Path, others: Mapping[str, object]) -> str | None:
    """Return the name of the option that specifies the same file as `path`, or None."""
    same = (name for name, other in others.items() if isinstance(other, Path) and other.resolve() == path.resolve())
    return next(same, None)


def extract_options(kind: type[Options], settings: dict[str, Any]) -> Options:
    """Remove the fields of an options class from `settings`, and return an instance with their values."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: settings.pop(name) for name in names & settings.keys()})


def check_names(settings: Mapping[str, Any]) -> None:
    """Raise TypeError for a keyword that `Translator.request` doesn't accept."""
    for name in settings:
        if name not in RequestSettings.__annotations__:
            raise TypeError(f"translate_file() got an unexpected keyword argument {name!r}")


def check_paths(source: Path | None, target: Path | object, resume: bool) -> None:
    """Raise DataError if the input is missing or is also the output, ConfigError if the output cannot be resumed."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if not isinstance(target, Path):
        if resume:
            raise ConfigError("--resume needs an output file: name it with --output")
    elif source is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} would overwrite the input file: choose another name")
