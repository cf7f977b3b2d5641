"""`Meta`: the description of a model folder's parameters."""

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from pydantic import Field

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings

FORMAT_VERSION = 1
_LIBRARIES = ("torch", "tokenizers", "safetensors", "numpy")


class Score(Config):
    """One measurement of the model."""

    metric: str = Field(description="Name of the metric, such as BLEU or perplexity.")
    value: float = Field(description="Value, in the metric's own unit.")
    signature: str = Field(
        "", description="Signature of the computation, in sacreBLEU's format; empty if the metric has no options."
    )
    data: str = Field("", description="Data that the score was computed on, such as a file name.")


def library_versions() -> dict[str, str]:
    """The versions of Python and of libraries that could affect a model."""
    # This module may not import the package, which is on a higher layer; the package is always loaded already.
    own = sys.modules[__name__.partition(".")[0]].__version__
    found = {"dragoman": str(own), "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class Meta(Config):
    """The content of `meta.json`."""

    format_version: int = Field(FORMAT_VERSION, description="Version of the folder's layout.")
    step: int = Field(ge=0, description="Number of training updates of the parameters.")
    averaged_steps: tuple[int, ...] = Field((), description="Steps whose parameters were averaged, if any.")
    source_language: str | None = Field(None, description="Code of the source language, such as en.")
    target_language: str | None = Field(None, description="Code of the target language, such as de.")
    target_languages: tuple[str, ...] = Field(
        (), description="Target languages that a tag can select, if the model was trained with language tags."
    )
    tags: tuple[str, ...] = Field((), description="Other source tags that the model was trained with.")
    teacher: str = Field("", description="Model that produced the training targets, if any.")
    licence: str | None = Field(None, description="Licence of the parameters, as an SPDX identifier.")
    scores: tuple[Score, ...] = Field((), description="Scores of the model.")
    libraries: dict[str, str] = Field(
        default_factory=library_versions, description="Versions of the libraries that the model was trained with."
    )
    data: dict[str, str] = Field(
        {}, description="Fingerprints of the data sets that the model was trained on, by name."
    )
    embeddings: dict[str, float] = Field(
        {},
        description="Share of the source's and of the target's vocabulary whose vectors were initialised from a file.",
    )


def dump_meta(meta: Meta) -> str:
    """Return the text of `meta.json`."""
    content = meta.model_dump(mode="json")
    for name in ("embeddings", "target_languages", "tags", "teacher"):
        if not content[name]:
            del content[name]  # so that versions without this field can read the folder
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def parse_meta(text: str, name: str) -> Meta:
    """Parse the text of `meta.json`. name: file name. Raises ModelError if it is damaged or of another version."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} is damaged: {error}. Copy the model folder again from its origin") from None
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise ModelError(f"{name} is not dragoman's: it has no format_version")
    found = content["format_version"]
    if found != FORMAT_VERSION:
        raise ModelError(
            f"{name}: the model folder has format {found}, but this dragoman reads format {FORMAT_VERSION}; "
            + ("update dragoman" if found > FORMAT_VERSION else "convert it with the dragoman that wrote it")
        )
    try:
        return parse_settings(content, Meta, name)
    except ConfigError as error:
        raise ModelError(f"{name} is damaged: {error}") from None
