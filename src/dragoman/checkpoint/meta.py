"""`Meta`: what a model folder says of its parameters."""

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

    metric: str = Field(description="what was measured, such as BLEU or perplexity")
    value: float = Field(description="the figure, in the metric's own unit")
    signature: str = Field(
        "", description="how it was measured, as sacreBLEU writes it; empty where there is no choice"
    )
    data: str = Field("", description="what it was measured on, such as a file's name")


def library_versions() -> dict[str, str]:
    """The versions of Python and of the libraries whose change could change a model."""
    # The package itself is above this module, which may not import it; it is loaded whenever this module is.
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

    format_version: int = Field(FORMAT_VERSION, description="version of the folder's layout")
    step: int = Field(ge=0, description="updates that the parameters have seen")
    averaged_steps: tuple[int, ...] = Field((), description="the steps whose mean the parameters are, if an average")
    source_language: str | None = Field(None, description="language code of the source, such as en")
    target_language: str | None = Field(None, description="language code of the target, such as de")
    target_languages: tuple[str, ...] = Field(
        (), description="the target languages that can be chosen by a tag, where it was trained with such tags"
    )
    tags: tuple[str, ...] = Field((), description="the other tags of source texts that it was trained with")
    teacher: str = Field("", description="the model that wrote the targets it learned from, where one did")
    licence: str | None = Field(None, description="licence of the parameters, as an SPDX identifier")
    scores: tuple[Score, ...] = Field((), description="what the model has reached")
    libraries: dict[str, str] = Field(default_factory=library_versions, description="versions it was made with")
    data: dict[str, str] = Field({}, description="fingerprint of each data set that it has seen, by name")
    embeddings: dict[str, float] = Field(
        {}, description="share of the source's and the target's vocabulary that began with vectors from a file"
    )


def dump_meta(meta: Meta) -> str:
    """`meta.json`'s text."""
    content = meta.model_dump(mode="json")
    for name in ("embeddings", "target_languages", "tags", "teacher"):
        if not content[name]:
            del content[name]  # versions that do not know it can read the folder
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def parse_meta(text: str, name: str) -> Meta:
    """Read `meta.json`'s text; `name` names the file. Raises ModelError when it is damaged or of another version."""
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
