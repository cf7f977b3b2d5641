"""Files and members of .zip archives, opened through one path such as rte.zip/rte/rte1_dev.xml."""

import difflib
import re
import shlex
import zipfile
from io import BufferedReader
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.files.recognition import reject
from dragoman.data.files.signatures import zip_document

_SUFFIX = ".zip"
_ZIP = b"PK\x03\x04"
_MAX_LISTED_MEMBERS = 10
_NO_TEXT = re.compile(
    r"(?:.*/)?(?:__MACOSX/.*|\.[^/]*|(?:README|LICEN[CS]E|COPYING|INFO|CHANGELOG)[^/]*|[^/]*\.(?:ids|scores|xml))$",
    re.IGNORECASE,
)
"""Files that accompany the text of a corpus in an archive, such as README, LICENSE and the identifiers of OPUS."""


def open_file(path: Path, any_suffix: bool = False) -> BufferedReader:
    """Open a file, or a member of a .zip archive if the path continues into the archive.

    If an archive contains a single text, the path of the archive is sufficient. any_suffix: also open archives with
    another suffix than .zip. Raises OSError if the file cannot be opened, and DataError if the archive is a document
    such as .docx, and if the member does not exist, is encrypted, or must be chosen.
    """
    archive = archive_of(path)
    if archive is not None:
        return _open_member(archive, path.relative_to(archive).as_posix())
    file = path.open("rb")
    if not file.peek(4).startswith(_ZIP) or not (path.suffix.lower() == _SUFFIX or any_suffix):
        return file
    file.close()
    return _open_member(path, None)


def archive_of(path: Path) -> Path | None:
    """Return the .zip archive into which a path continues; None for any other path."""
    if path.exists():
        return None
    file = next((parent for parent in path.parents if parent.is_file()), None)
    if file is None:
        return None
    if file.suffix.lower() == _SUFFIX:
        return file
    with file.open("rb") as archive:
        return file if archive.read(len(_ZIP)) == _ZIP else None


def _open_member(archive: Path, name: str | None) -> BufferedReader:
    """Open a member of an archive. name: None for the only member."""
    try:
        with zipfile.ZipFile(archive) as members:
            names = [info.filename for info in members.infolist() if not info.is_dir()]
            if name is None:
                if (document := zip_document(names)) is not None:
                    raise reject(document, archive)
                texts = [each for each in names if not _NO_TEXT.match(each)] or names
                if len(texts) != 1:
                    paths = [shlex.quote(str(archive / each)) for each in texts[:2]]
                    use = f", as in --source {paths[0]} --target {paths[1]}" if len(texts) == 2 else ""
                    example = f", as in {paths[0]}" if len(texts) > 2 else use
                    raise DataError(
                        f"{archive} is a .zip archive of {len(names)} files. Add the name of one of them to the path"
                        f"{example}.{_list_names(names)}"
                    )
                name = texts[0]
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
                hint = f" Did you mean {archive / near[0]}?" if near else _list_names(names)
                raise DataError(f"The archive {archive} contains no file {name}.{hint}")
            # The member keeps the file of the archive open until it is closed itself.
            return BufferedReader(members.open(name))  # type: ignore[arg-type]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise DataError(f"{archive} is corrupt ({error}). Download or compress it again.") from error
    except RuntimeError as error:  # encrypted members
        raise DataError(f"Cannot read {archive}: {error}. Extract the file first.") from error


def _list_names(names: list[str]) -> str:
    more = ", …" if len(names) > _MAX_LISTED_MEMBERS else ""
    return f" It contains {', '.join(names[:_MAX_LISTED_MEMBERS])}{more}." if names else " It is empty."
