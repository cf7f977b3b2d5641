"""`Meta`: the metadata of a model folder, stored in `meta.json`."""

import json
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pydantic import Field

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.confidence import Confidence
from dragoman.checkpoint.verdict import Verdict
from dragoman.data.lengths import CorpusLengths

FORMAT_VERSION = 1
_LIBRARIES = ("torch", "tokenizers", "safetensors", "numpy")


_TITLES = {"neural": "neural model", "phrase_based": "phrase-based model", "hybrid": "hybrid of both models"}


class RecordedScore(Config):
    """A score of the model, as it is stored with it."""

    metric: str = Field(description="Name of the metric, such as BLEU or perplexity.")
    value: float = Field(description="Value, in the metric's own unit.")
    signature: str = Field(
        "", description="Signature of the computation, in sacreBLEU's format; empty if the metric has no options."
    )
    data: str = Field("", description="Data that the score was computed on, such as a file name.")


class HybridWeights(Config):
    """How a hybrid orders the translations of a phrase-based model: weights of the features of each."""

    phrase_based: float = Field(description="Weight of the score of the phrase-based model.")
    neural: float = Field(description="Weight of the log-probability by the neural model, in nats.")
    length: float = Field(description="Weight of the number of words.")
    nbest: int = Field(ge=2, description="Number of translations of a sentence that are compared.")

    @property
    def vector(self) -> tuple[float, float, float]:
        """The weights in the order of the features."""
        return self.phrase_based, self.neural, self.length


class SystemRecord(Config):
    """One of the systems of a model folder, with its scores."""

    name: str = Field(description="Name of the system: neural, phrase_based, dictionary or hybrid.")
    folder: str = Field("", description="Its model folder, relative to this one; empty: this folder itself.")
    scores: tuple[RecordedScore, ...] = Field((), description="Scores on the same validation pairs as other systems.")
    hybrid: HybridWeights | None = Field(
        None, description="Weights with which the neural model helps to choose its translations; null: it does not."
    )

    @property
    def title(self) -> str:
        """The name of the system in texts."""
        return _TITLES.get(self.name, self.name)

    def score(self, metric: str) -> RecordedScore | None:
        """Return the score by a metric, or None if the metric was not recorded."""
        return next((score for score in self.scores if score.metric == metric), None)


def library_versions() -> dict[str, str]:
    """Return the versions of dragoman, Python and the libraries that could affect a model, by name."""
    # The package is always loaded, but this module may not import it because it belongs to a higher layer.
    own_version = sys.modules[__name__.partition(".")[0]].__version__
    versions = {"dragoman": str(own_version), "python": platform.python_version()}
    return versions | _installed_versions()


@cache
def _installed_versions() -> dict[str, str]:
    """Return the versions of the libraries. They are read once, because reading them takes milliseconds."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


class Meta(Config):
    """The contents of `meta.json`."""

    format_version: int = Field(FORMAT_VERSION, description="Version of the folder's layout.")
    step: int = Field(ge=0, description="Number of training updates of the parameters.")
    averaged_steps: tuple[int, ...] = Field((), description="Steps whose parameters were averaged, if any.")
    unfinished: bool = Field(
        False, description="Whether the model was written before its run ended. `dragoman train --resume` continues it."
    )
    planned_steps: int | None = Field(
        None, description="Number of training updates that the unfinished run was to have, if this was known."
    )
    source_language: str | None = Field(None, description="Code of the source language, such as en.")
    target_language: str | None = Field(None, description="Code of the target language, such as de.")
    target_languages: tuple[str, ...] = Field(
        (), description="Target languages that a tag can select, if the model was trained with language tags."
    )
    tags: tuple[str, ...] = Field((), description="Other source tags that the model was trained with.")
    teacher: str = Field("", description="Model that produced the training targets, if any.")
    origin: str = Field("", description="Model of another program that was imported, with its file's SHA-256, if any.")
    licence: str | None = Field(None, description="Licence of the parameters, as an SPDX identifier.")
    scores: tuple[RecordedScore, ...] = Field((), description="Scores of the model.")
    systems: tuple[SystemRecord, ...] = Field(
        (),
        description="Systems that the folder can translate with, the best on the validation pairs first; empty: only "
        "the model itself.",
    )
    verdict: Verdict | None = Field(
        None, description="What the scores mean: a comparison with simple systems on the validation set, and advice."
    )
    confidence: Confidence | None = Field(
        None, description="What the probability of a translation says about its quality, if it was measured."
    )
    libraries: dict[str, str] = Field(
        default_factory=library_versions, description="Versions of the libraries that the model was trained with."
    )
    data: dict[str, str] = Field(
        {}, description="Fingerprints of the data sets that the model was trained on, by name."
    )
    threshold: float | None = Field(
        None,
        description="Score of having no answer above which a model gives none, chosen on the validation set.",
    )
    thresholds: dict[str, float] = Field(
        {}, description="The threshold of each task of a model with several tasks, by name."
    )
    lengths: dict[str, CorpusLengths] = Field(
        {},
        description="Lengths of the training pairs by target language; the key is empty if the corpora name none.",
    )
    whole_texts: bool = Field(
        False, description="Whether texts of several sentences are processed as a whole, not sentence by sentence."
    )
    embeddings: dict[str, float] = Field(
        {},
        description="Fraction of the source's and of the target's vocabulary whose vectors were initialised from "
        "a file.",
    )

    def lengths_of(self, language: str | None) -> CorpusLengths | None:
        """Return the lengths of the training pairs with a target language, if they are known.

        language: the language of the request's tags; None if it has none.
        """
        return self.lengths.get(language or "")


def dump_meta(meta: Meta) -> str:
    """Return the text of `meta.json`."""
    return meta.model_dump_json(indent=2) + "\n"


def parse_meta(text: str, name: str) -> Meta:
    """Parse the text of `meta.json`. Raises ModelError if it is damaged or has another format version.

    name: name of the file, for messages.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} is damaged: {error}. Copy the model folder again from its source") from None
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise ModelError(f"{name} was not written by dragoman: it has no format_version")
    stored_version = content["format_version"]
    if stored_version != FORMAT_VERSION:
        is_newer = stored_version > FORMAT_VERSION
        raise ModelError(
            f"{name}: the model folder has format version {stored_version}, but this version of dragoman supports only "
            f"{FORMAT_VERSION}: "
            + ("update dragoman" if is_newer else "convert the folder with the version of dragoman that wrote it")
        )
    try:
        return parse_settings(content, Meta, name)
    except ConfigError as error:
        raise ModelError(f"{name} is damaged: {error}") from None
