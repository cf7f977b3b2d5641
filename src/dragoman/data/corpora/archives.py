"""Files and members of .zip archives, opened through one path such as rte.zip/rte/rte1_dev.xml."""

import difflib
import zipfile
from io import BufferedReader
from pathlib import Path

from dragoman.base.errors import DataError

_SUFFIX = ".zip"
_ZIP = b"PK\x03\x04"
_MAX_LISTED_MEMBERS = 10


def open_file(path: Path) -> BufferedReader:
    """Open a file, or a member of a .zip archive if the path continues into the archive.

    If an archive contains a single file, the path of the archive is sufficient. Files with other suffixes are not
    opened as archives, because documents such as .docx are archives too. Raises OSError if the file cannot be opened,
    and DataError if the member does not exist, is encrypted, or must be chosen.
    """
    archive = archive_of(path)
    if archive is not None:
        return _open_member(archive, path.relative_to(archive).as_posix())
    file = path.open("rb")
    if path.suffix != _SUFFIX or not file.peek(4).startswith(_ZIP):
        return file
    file.close()
    return _open_member(path, None)


def archive_of(path: Path) -> Path | None:
    """Return the .zip archive into which a path continues; None for any other path."""
    if path.exists():
        return None
    return next((parent for parent in path.parents if parent.suffix == _SUFFIX and parent.is_file()), None)


def _open_member(archive: Path, name: str | None) -> BufferedReader:
    """Open a member of an archive. name: None for the only member."""
    try:
        with zipfile.ZipFile(archive) as members:
            names = [info.filename for info in members.infolist() if not info.is_dir()]
            if name is None:
                if len(names) != 1:
                    raise DataError(
                        f"{archive} is an archive of {len(names)} files. Add the name of one of them to the path, as "
                        f"in {archive / names[0] if names else archive / 'train.txt'}.{_list_names(names)}"
                    )
                name = names[0]
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
