"""Folders whose files have recorded checksums, in `SHA256SUMS`, which `sha256sum -c SHA256SUMS` also checks.

The file is written after all others, so files that it names are complete.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import move_into, unwritable

SUMS = "SHA256SUMS"
ABOUT = "ABOUT"
"""First part of the names of descriptions, which are recorded, but may change."""

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def read_sums(folder: Path) -> dict[str, str]:
    """Return the recorded checksums by file name; without records, none."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return {match[2]: match[1] for line in lines if (match := _LINE.fullmatch(line))}


def is_intact(folder: Path, names: Sequence[str]) -> bool:
    """Return whether a folder has these files as they were recorded. names: of files; if empty, all recorded ones.

    Raises ConfigError if a file of such a name was not recorded, because it is of other origin.
    """
    sums = read_sums(folder)
    for name in names:
        if (folder / name).exists() and name not in sums:
            raise _foreign(folder / name)
    expected = names or list(sums)
    return bool(expected) and all(
        name in sums and (folder / name).is_file() and _digest(folder / name) == sums[name] for name in expected
    )


def publish(staged: Path, folder: Path) -> None:
    """Move all files of a folder on the same disk to `folder`, and record their checksums.

    Raises DataError if a file differs from the one that was recorded first, ConfigError if it would replace a file of
    other origin, and ResourceError if the folder cannot be written. In these cases, no file is moved.
    """
    recorded = read_sums(folder)
    sums = {path.name: _digest(path) for path in staged.iterdir()}
    for name, digest in sums.items():
        if recorded.get(name, digest) != digest and not name.startswith(ABOUT):
            raise DataError(
                f"{folder / name} differs from the first download, whose checksum is in {SUMS}: its origin changed. To "
                f"take the new version, move {folder} away"
            )
        if name not in recorded and (folder / name).exists() and _digest(folder / name) != digest:
            raise _foreign(folder / name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    lines = [f"{digest}  {name}\n" for name, digest in sorted({**recorded, **sums}.items())]
    with move_into(folder, SUMS) as moved:
        for path in list(staged.iterdir()):
            os.replace(path, moved / path.name)
        (moved / SUMS).write_text("".join(lines), encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _foreign(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} exists, but `dragoman data get` did not write it: use it as it is, choose another --out, or move it "
        "away"
    )
