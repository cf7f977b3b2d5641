"""The fingerprint of a model folder: what two folders have in common that translate alike."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dragoman.checkpoint.folder import CONFIG

_PARAMETERS = (".safetensors", ".bin")


def fingerprint(folder: Path) -> str:
    """A digest of the parameters, settings and tokenizers, whatever format they are in, and wherever the folder lies.

    The card and `meta.json` say nothing that a translation depends on once its request is made.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(folder).iterdir()):
        if path.suffix in _PARAMETERS or path.name == CONFIG or path.name.startswith("tokenizer"):
            with path.open("rb") as file:
                digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def fingerprint_of(folders: str | Path | Sequence[str | Path]) -> str:
    """Of one folder, or of several that translate together, in their order."""
    if isinstance(folders, str | Path):
        return fingerprint(Path(folders))
    return "+".join(fingerprint(Path(folder)) for folder in folders)
