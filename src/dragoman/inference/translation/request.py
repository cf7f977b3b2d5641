"""`Request`: all settings of a translation; `SourceTags`: the tags that it may have."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import Overrides
from dragoman.checkpoint.meta import Meta
from dragoman.decode.decoding import Decoding, Sampling
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.translation.guard.guard import Guard
from dragoman.text.symbols import TO, is_inline, source_tags, tag_languages
from dragoman.text.tokenizer import Tokenizer


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

    @property
    def is_plain(self) -> bool:
        """Whether the hypotheses of one search are the result, because there are neither requirements nor a guard."""
        return self.control is None and self.guard is None

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


class SourceTags:
    """Determines the tags of source texts. languages: target languages that can be chosen; empty for a model with a
    single target language that has no tag.
    """

    def __init__(self, source: Tokenizer, meta: Meta | None = None) -> None:
        """meta: metadata with the model's languages; without them, all languages with a tag can be chosen."""
        self._source = source
        self._only = None if meta is None else meta.target_language
        self.languages = (
            tag_languages(source.tags) if meta is None or not meta.target_languages else meta.target_languages
        )

    def of(self, to: str | None = None, tags: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the tags that precede a source text, the tag of the target language first.

        to: the target language, which can be omitted if there is only one. Raises ConfigError if the language is
        missing or unknown, and for an unknown tag.
        """
        if isinstance(tags, str):
            raise TypeError("tags must be a list of strings, not one string")
        others = tuple(dict.fromkeys(tags))
        for tag in others:
            if tag.startswith(TO):
                raise ConfigError(f"{tag!r} names a target language: use --to instead (in Python, to=)")
            if is_inline(tag):
                raise ConfigError(f"{tag!r} cannot be used as a tag: --keep and --glossary insert it automatically")
        chosen = source_tags(self._language(to), others)
        self._source.tag_ids(chosen)  # raises for an unknown tag
        return chosen

    def _language(self, to: str | None) -> str | None:
        known = ", ".join(self.languages)
        if to is None:
            if len(self.languages) > 1:
                raise ConfigError(
                    f"this model has several target languages: choose one with --to (in Python, to=): {known}"
                )
            return self.languages[0] if self.languages else None
        if to in self.languages:
            return to
        if self.languages:
            raise ConfigError(f"this model has no target language {to!r}: choose one of {known}")
        if to == self._only:
            return None
        reason = (
            f"this model has one target language, {self._only}"
            if self._only
            else "this model has no choice of target languages"
        )
        raise ConfigError(f"{reason}: leave out --to {to}")


Requests = Request | Iterable[Request]
"""One request shared by all texts, or one per text."""

TextRequest = tuple[str, Request]
"""A text and the request for its translation."""

Item = TypeVar("Item")
_HINTS = {"requests": "", "prefixes": ", blank for no prefix"}


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


def with_requests(
    texts: Iterable[str],
    create: Callable[..., Request],
    requests: Requests | None = None,
    prefixes: Iterable[str] | None = None,
    settings: RequestSettings | None = None,
) -> Iterator[TextRequest]:
    """Return each text with its request, one shared by all texts or one per text.

    create: creates a request from `settings`, if `requests` is None. prefixes: one per text. Raises ConfigError for
    requests with further settings. While the pairs are read, raises DataError if the numbers of texts and requests, or
    of texts and prefixes, differ.
    """
    settings = settings or {}
    if requests is None:
        request = create(**settings)
        if prefixes is None:
            return ((text, request) for text in texts)
        return _pairs(texts, (replace(request, prefix=prefix) for prefix in prefixes), "prefixes")
    redundant = [name for name, value in {**settings, "prefixes": prefixes}.items() if value not in (None, ())]
    if redundant:
        raise ConfigError(f"a request contains all settings: leave out {', '.join(redundant)} or the requests")
    if isinstance(requests, Request):
        return ((text, requests) for text in texts)
    return _pairs(texts, requests, "requests")


def lines_with_requests(
    texts: Sequence[str],
    create: Callable[..., Request],
    requests: Requests | None = None,
    prefixes: Sequence[str] | None = None,
    settings: RequestSettings | None = None,
) -> tuple[TextRequest, ...]:
    """Return what `with_requests` returns for a list of texts. Raises TypeError for a string in place of the list, and
    DataError, before any text is read, unless there are as many requests as texts.
    """
    check_texts(texts)
    if requests is not None and not isinstance(requests, Request):
        requests = list(requests)
        check_counts(texts, requests, "requests")
    return tuple(with_requests(texts, create, requests, prefixes, settings))


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


def _pairs(texts: Iterable[str], requests: Iterable[Request], name: str) -> Iterator[TextRequest]:
    """Yield each text with its request. name: plural noun for the requests in the message."""
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
