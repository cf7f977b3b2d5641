"""Digests of files, remembered where they are large: a run of eight processes must not read a corpus eight times."""

import contextlib
import hashlib
import json
import time
from pathlib import Path

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_write
from dragoman.data.corpora.lines import open_lines
from dragoman.data.corpora.readers import check_regular

LARGE = 1 << 26
"""Bytes. Smaller files are read each time."""

SETTLED = 2.0
"""Seconds. A file that was changed so shortly before may change again without its times telling so."""

_FILE = "digests.json"


def file_digest(path: Path, folder: Path) -> str:
    """SHA-256 of a file's contents. folder: where those of large files are remembered.

    Remembered with size, place, and the times of the last change of contents and of the file's entry; the latter is the
    kernel's own and cannot be set, so contents that change are noticed. Raises DataError where the file cannot be read.
    """
    check_regular(path)
    try:
        stat = path.stat()
        known = _known(folder) if stat.st_size >= LARGE else {}
        key = str(path.resolve())
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]
        if key in known and known[key][:-1] == stamp:
            return str(known[key][-1])
        settled = time.time() - stat.st_ctime > SETTLED
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        next(open_lines(path), None)  # raises the error that tells the user what is wrong with the file
        raise
    if stat.st_size >= LARGE and settled:
        with contextlib.suppress(OSError, ResourceError):  # then it is read again the next time
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write(folder / _FILE, json.dumps({**_known(folder), key: [*stamp, digest]}))
    return digest


def _known(folder: Path) -> dict[str, list[object]]:
    try:
        known = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(entry, list) for entry in known.values()) else {}
