"""How options of a translation become a `Choice` among hypotheses."""

from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.translation.reranking.choice import Choice
from dragoman.translation.reranking.config import RerankingConfig
from dragoman.translation.reranking.minimum_risk import MinimumRisk
from dragoman.translation.reranking.reranker import read_reranking


def check_choice(
    rerank: str | Path | RerankingConfig | None, mbr: str | None, nbest: int, samples: int | None
) -> RerankingConfig | Choice | None:
    """What is cheap to find wrong before a model is loaded; with `mbr` the choice itself.

    nbest: hypotheses that are asked for; samples: those that are drawn instead, None where they are searched. Raises
    ConfigError.
    """
    if rerank is not None and mbr is not None:
        raise ConfigError("one thing can decide which hypothesis is taken: leave out --rerank or --mbr")
    if rerank is not None:
        if samples is not None:
            raise ConfigError("--rerank orders what a search finds: leave out --sample, or use --mbr")
        return rerank if isinstance(rerank, RerankingConfig) else read_reranking(Path(rerank))
    if mbr is None:
        return None
    if (nbest if samples is None else samples) < 2:
        raise ConfigError("--mbr chooses among several hypotheses: say of how many with --nbest, 10 for example")
    return MinimumRisk(mbr, "probability" if samples is None else "uniform")
