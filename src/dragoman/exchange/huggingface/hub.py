"""Models of the Hugging Face Hub by their names, such as Helsinki-NLP/opus-mt-en-de."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import is_quiet
from dragoman.checkpoint.meta import Meta
from dragoman.exchange.huggingface.files import CONFIG, PARAMETERS, PICKLE

_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@(\S+))?", re.ASCII)
_SETTINGS = ["*.json", "*.txt", "*.model", "*.spm", "README.md"]
"""Files of settings and vocabularies, and the model card."""

_CARD = "README.md"
_ENDPOINT = "https://huggingface.co"


@dataclass(frozen=True)
class HubModel:
    """A downloaded model. folder: its files. revision: the commit. licence: as in its card, if it states one."""

    folder: Path
    name: str
    revision: str
    licence: str | None

    @classmethod
    def fetch(cls, name: str, allow_pickle: bool) -> Self:
        """Download the needed files of a model, unless the cache of the Hub has them.

        name: ORG/MODEL, or ORG/MODEL@REVISION with a branch, a tag or a commit. allow_pickle: download the pickle file
        if there are no other parameters. Raises ModelError if the model cannot be downloaded, and ConfigError if the
        name is invalid. The environment variables of the library huggingface_hub apply, such as HF_ENDPOINT, HF_HOME
        and HF_TOKEN.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                f"{name!r} is not the name of a model on the Hugging Face Hub, such as ORG/MODEL@REVISION"
            )
        repository, revision = match.groups()
        folder = _download(repository, revision, [*_SETTINGS, PARAMETERS])
        if allow_pickle and not (folder / PARAMETERS).exists():
            folder = _download(repository, folder.name, [*_SETTINGS, PICKLE])
        if not (folder / CONFIG).exists():
            raise ModelError(f"{repository} has no {CONFIG}, so it is not a model that can be imported")
        if not any((folder / each).exists() for each in (PARAMETERS, PICKLE)):
            raise ModelError(
                f"{repository} has no {PARAMETERS}. If it has {PICKLE} and you trust its authors, use --allow-pickle, "
                f"which loads nothing but tensors; some models have {PARAMETERS} in a pull request: "
                f"{repository}@refs/pr/1"
            )
        return cls(folder, repository, folder.name, _licence(folder / _CARD))

    def describe(self, meta: Meta) -> Meta:
        """Return the metadata of the imported model with its repository, revision and licence."""
        origin = meta.origin.replace(f" from {self.folder.name},", f" from {self.name}, revision {self.revision},", 1)
        return meta.model_copy(update={"origin": origin, "licence": meta.licence or self.licence})


def is_hub_name(path: Path) -> bool:
    """Return whether a path that does not exist has the form of a name on the Hub."""
    return not path.exists() and _NAME.fullmatch(str(path)) is not None


def _download(repository: str, revision: str | None, patterns: list[str]) -> Path:
    """Download files of the top folder into the cache; returns the folder of the revision, named by its commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT", _ENDPOINT).rstrip("/")
    missing = f"there is no folder {repository} here, and no model of this name at {endpoint}"
    try:
        with _progress_bars():
            found = snapshot_download(
                repository, revision=revision, allow_patterns=patterns, ignore_patterns=["*/*"], endpoint=endpoint
            )
    except GatedRepoError:
        reason = f"{repository} is gated: accept its terms at {endpoint}/{repository}, and log in with `hf auth login`"
    except RepositoryNotFoundError:
        reason = f"{missing}, or it is private: check the name, or log in with `hf auth login`"
    except RevisionNotFoundError:
        reason = f"{repository} has no revision {revision}: see {endpoint}/{repository}/commits/main"
    except HFValidationError as error:
        reason = f"{missing}: {_first_line(error)}"
    except Exception as error:  # those of the HTTP library, of which huggingface_hub has used several
        reason = (
            f"{repository} cannot be downloaded from {endpoint} ({_first_line(error)}): there is no folder of this "
            "name here; check the connection, the proxy (HTTPS_PROXY), or a mirror (HF_ENDPOINT)"
        )
    else:
        return Path(found)
    raise ModelError(reason)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n", 1)[0].rstrip(". :")


@contextmanager
def _progress_bars() -> Iterator[None]:
    """Show the library's progress bars only on a terminal."""
    library: Any = import_module("huggingface_hub.utils")
    hides = (is_quiet() or not sys.stderr.isatty()) and not library.are_progress_bars_disabled()
    if hides:
        library.disable_progress_bars()
    try:
        yield
    finally:
        if hides:
            library.enable_progress_bars()


def _licence(card: Path) -> str | None:
    """Return the licence in the metadata of a model card, or None."""
    from huggingface_hub import ModelCard

    if not card.exists():
        return None
    try:
        data = ModelCard(card.read_text(encoding="utf-8"), ignore_metadata_errors=True).data
    except (OSError, ValueError):
        return None
    stated = getattr(data, "license", None)
    licence = getattr(data, "license_name", None) if stated == "other" else stated
    return licence if isinstance(licence, str) else None
