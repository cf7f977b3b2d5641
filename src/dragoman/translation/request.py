"""`Request`: all settings of a translation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from pydantic import Field

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import Override, Overrides, all_overrides, load_settings, parse_settings
from dragoman.control.control import Control
from dragoman.control.glossary import Glossary
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.translation.guard.guard import Guard


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


@dataclass(frozen=True)
class Request:
    """The settings of a translation. `Translator.request` creates requests from the model's own settings.

    tags: tags that precede the source text, the tag of the target language first. prefix: the start of the translation,
    without trailing spaces; blank for no prefix. control: the requirements of the translation, or None. guard: inspects
    the translation and repeats the search if the translation is faulty, or None. divide: whether a text of several
    sentences is translated sentence by sentence (`LineDivision`).
    """

    decoding: Decoding
    tags: tuple[str, ...] = ()
    prefix: str = ""
    control: Control | None = None
    guard: Guard | None = None
    divide: bool = True

    def __post_init__(self) -> None:
        """Raise ConfigError if sampling is combined with control or a guard, both of which need a search."""
        if isinstance(self.decoding, Sampling):
            if self.control is not None:
                raise ConfigError(
                    "sampling cannot meet requirements, which need a search: leave out sampling or the requirements"
                )
            if self.guard is not None:
                raise ConfigError("sampling cannot be combined with a guard, which needs a search: leave out either")

    def settings(self) -> dict[str, Any]:
        """Return all settings except the prefix, as nested JSON values."""
        if isinstance(self.decoding, Sampling):
            decoding = {**asdict(self.decoding), "config": self.decoding.config.model_dump(mode="json")}
        else:
            decoding = self.decoding.model_dump(mode="json")
        control = None if self.control is None else self.control.settings()
        guard = None if self.guard is None else self.guard.settings()
        return {
            "decoding": decoding,
            "tags": list(self.tags),
            "control": control,
            "guard": guard,
            "divide": self.divide,
        }

    def with_details(self, token_scores: bool, tree: bool) -> "Request":
        """Return a request whose translations also contain token log-probabilities, search trees or both.

        Raises ConfigError if a tree is requested for sampling.
        """
        if isinstance(self.decoding, Sampling):
            if tree:
                raise ConfigError("sampling has no search tree: leave out --tree or --sample")
            config = self.decoding.config
            config = config.model_copy(update={"token_scores": config.token_scores or token_scores})
            return replace(self, decoding=replace(self.decoding, config=config))
        both = {"token_scores": self.decoding.token_scores or token_scores, "tree": self.decoding.tree or tree}
        return replace(self, decoding=self.decoding.model_copy(update=both))


Requests = Request | Iterable[Request]
"""One request shared by all texts, or one per text."""

TextRequest = tuple[str, Request]
"""A text and the request for its translation."""

Item = TypeVar("Item")
_HINTS = {"requests": "", "prefixes": ", blank for no prefix"}


class SearchSettings(TypedDict, total=False):
    """Changes to a model's own search settings: the arguments of `search_config`."""

    beam: int | None
    nbest: int
    length_penalty: float | str | None
    coverage_penalty: float | None
    unknown: str | None
    search: Overrides


class RequestSettings(TypedDict, total=False):
    """Keywords of `Translator.request` that `Translator.translate` and `Translator.stream` pass to it."""

    beam: int | None
    length_penalty: float | str | None
    coverage_penalty: float | None
    unknown: str | None
    search: Overrides
    to: str | None
    tags: Iterable[str]
    glossary: Glossary | Mapping[str, Any] | Path | str | None
    keep: Iterable[str] | None
    keep_patterns: Iterable[str]
    guard: bool
    divide: bool


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


def resolve_requests(
    create: Callable[..., Request],
    requests: Requests | None,
    prefixes: Iterable[str] | None,
    settings: RequestSettings,
) -> Requests:
    """Return the requests; if they are None, create one from the settings, and one per prefix from the prefixes.

    create: creates a request from settings. Raises ConfigError for requests with further settings.
    """
    if requests is None:
        request = create(**settings)
        return request if prefixes is None else (replace(request, prefix=prefix) for prefix in prefixes)
    redundant = [name for name, value in {**settings, "prefixes": prefixes}.items() if value not in (None, ())]
    if redundant:
        raise ConfigError(f"a request contains all settings: leave out {', '.join(redundant)} or the requests")
    return requests


def check_batch_size(batch_size: int) -> None:
    """Raise ConfigError unless the batch size is at least 1."""
    if batch_size < 1:
        raise ConfigError(f"the batch size must be at least 1 sentence, not {batch_size}")


def check_texts(texts: Sequence[str]) -> None:
    """Raise TypeError for a string in place of a list of strings."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings, not one string")


def check_counts(texts: Sequence[str], others: Sequence[Any], name: str) -> None:
    """Raise DataError unless there are as many `others` as texts. name: plural noun for `others` in the message."""
    if isinstance(texts, str) or isinstance(others, str):
        raise TypeError("texts and prefixes must be lists of strings, not one string")
    if len(texts) != len(others):
        raise DataError(f"{len(texts)} texts and {len(others)} {name}: give each text one{_HINTS[name]}")


def check_pairs(sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raise DataError unless there are as many targets as sources."""
    if len(sources) != len(targets):
        raise DataError(f"{len(sources)} sources and {len(targets)} targets: each source needs one target")


def with_requests(texts: Iterable[str], requests: Requests, name: str) -> Iterator[TextRequest]:
    """Yield each text with its request. Raises DataError if the numbers of texts and requests differ. name: plural noun
    for the requests in the message.
    """
    if isinstance(requests, Request):
        yield from ((text, requests) for text in texts)
        return
    for count, (text, request) in enumerate(zip_longest(texts, requests)):
        if text is None or request is None:
            few, many = ("texts", name) if text is None else (name, "texts")
            raise DataError(f"{count} {few}, but more {many}: give each text one{_HINTS[name]}")
        yield text, request


def chunks(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """Yield tuples of `size` consecutive items. The last tuple may be shorter."""
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk
