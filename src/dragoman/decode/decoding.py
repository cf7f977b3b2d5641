"""How outputs are generated: by a search or by sampling, from a model's own settings and the changes of a user."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import Override, Overrides, all_overrides, load_settings, parse_settings
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig


@dataclass(frozen=True)
class Sampling:
    """Draws translations from the model's distribution instead of searching.

    seed: determines the samples, together with the line number. samples: number of samples per line.

    >>> from dragoman import Sampling, Translator
    >>> translator = Translator.load("runs/ende")
    >>> samples = translator.sample(["The dog sleeps."], Sampling.of(top_k=10, seed=3, samples=2))
    >>> len(samples[0])
    2
    """

    config: SamplingConfig = field(default_factory=SamplingConfig)
    seed: int = 1
    samples: int = 1

    @classmethod
    def of(
        cls,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        samples: int = 1,
        settings: Overrides = (),
    ) -> "Sampling":
        """Return sampling settings with default values for omitted arguments.

        settings: settings that sampling shares with searches, such as `{"no_repeat_ngram": 3}` or
        `["search.maximum_length=40"]`. Raises ConfigError for an invalid value.
        """
        if seed is not None and not 0 <= seed < 2**63:
            raise ConfigError(f"the seed must be between 0 and 2^63 - 1, not {seed}")
        if not 1 <= samples <= 10_000:
            raise ConfigError(f"the number of samples must be between 1 and 10,000, not {samples}")
        arguments = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        named = {name: value for name, value in arguments.items() if value is not None}
        if settings:
            config = load_settings({"search": named}, _search_overrides(settings), _SamplingOverrides).search
        else:
            config = parse_settings(named, SamplingConfig, "sampling")
        return cls(config, 1 if seed is None else seed, samples)


Decoding = SearchConfig | Sampling
"""How hypotheses are generated: by a search or by sampling."""


class SearchSettings(TypedDict, total=False):
    """Changes to a model's own search settings: the arguments of `search_config`."""

    beam: int | None
    nbest: int
    length_penalty: float | str | None
    coverage_penalty: float | None
    unknown: str | None
    search: Overrides


class _SearchOverrides(Config):
    """Search settings that the command line can override."""

    search: SearchConfig = Field(description="Search settings.")


class _SamplingOverrides(Config):
    """Sampling settings that the command line can override."""

    search: SamplingConfig = Field(description="Sampling settings.")


def _search_overrides(settings: Overrides) -> list[Override]:
    """Return search settings as overrides of the `search` section."""
    if isinstance(settings, Mapping):
        settings = {f"search.{name}": value for name, value in settings.items()}
    return all_overrides(settings)


def search_config(
    own: Mapping[str, Any],
    *,
    beam: int | None = None,
    nbest: int = 1,
    length_penalty: float | str | None = None,
    coverage_penalty: float | None = None,
    unknown: str | None = None,
    search: Overrides = (),
) -> SearchConfig:
    """Return a model's `own` search settings with the given changes. Raises ConfigError for an invalid value.

    length_penalty: GNMT's exponent α, `mean` (mean log-probability per token) or `none`. coverage_penalty: β. unknown:
    `copy` (copy the source word with the most attention), `forbid`, or a dictionary file (word TAB translation) that
    translates this word. search: any settings in docs/reference/settings/search.md, such as `{"minimum_length": 3}`
    or, as on the command line, `["search.minimum_length=3"]`.
    """
    settings: dict[str, Any] = {**own, "nbest": nbest}
    settings["beam"] = max(settings.get("beam", SearchConfig().beam), nbest) if beam is None else beam
    if length_penalty is not None:
        settings["length_penalty"] = _length_penalty(length_penalty)
    if coverage_penalty is not None:
        settings["coverage_penalty"] = coverage_penalty
    if unknown is not None:
        is_kind = unknown in ("copy", "forbid")
        settings["unknown"] = {"kind": unknown} if is_kind else {"kind": "dictionary", "path": unknown}
    if not search:
        return parse_settings(settings, SearchConfig, "search")
    overrides = _search_overrides(search)
    if any(override.key == ("search", "nbest") for override in overrides):
        raise ConfigError("search.nbest cannot be set as a search setting: use --nbest")
    return load_settings({"search": settings}, overrides, _SearchOverrides).search


def _length_penalty(value: float | str) -> dict[str, Any]:
    if value in ("mean", "none"):
        return {"kind": value}
    try:
        return {"kind": "gnmt", "alpha": float(value)}
    except ValueError:
        raise ConfigError(f"unknown length penalty '{value}': use a number (GNMT's exponent), mean or none") from None
