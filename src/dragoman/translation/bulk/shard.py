"""`Shard`: a file of the input and the one that it becomes, of the same name; and how shards are named."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from dragoman.base.errors import DataError, refuse
from dragoman.translation.bulk.formats.format import ShardFormat
from dragoman.translation.bulk.formats.text import TextLines
from dragoman.translation.bulk.formats.union import WITH_FIELDS, format_of
from dragoman.translation.bulk.manifest import MANIFEST

_CHUNK = 1 << 20

Inputs = str | Path | Sequence[str | Path]
"""Files, folders of files and patterns such as `part-*.en.zst`; one of these, or several."""


@dataclass(frozen=True)
class Shard:
    """Its paths are absolute, and the same on each machine."""

    source: Path
    target: Path
    format: ShardFormat

    @property
    def name(self) -> str:
        """Of both files."""
        return self.source.name


def shards_of(inputs: Inputs, output: Path, source_field: str | None, target_field: str | None) -> list[Shard]:
    """The shards, in the order in which they are given; those of a folder or a pattern by their names.

    output: the folder of the output. Raises DataError for a file that is missing or would be overwritten, and for two
    of one name; ConfigError as `format_of` does, and
    for fields where no file has any.
    """
    found: dict[str, Shard] = {}
    output = output.absolute()
    for path in _files(inputs):
        path = path.absolute()
        if not path.is_file():
            raise DataError(f"there is no file {path}: check --input")
        if path.name == MANIFEST:
            raise DataError(f"{path} has the name of the manifest that --output will hold: choose another name for it")
        shard = Shard(path, output / path.name, format_of(path, source_field, target_field))
        if shard.target.resolve() == path.resolve():
            raise DataError(f"--output {output} is the folder of {path.name}, which would be lost: choose another one")
        other = found.setdefault(path.name, shard)
        if other.source != path:
            raise DataError(f"{other.source} and {path} have one name, and would be one file of --output: rename one")
    if all(isinstance(shard.format, TextLines) for shard in found.values()):
        fields = {"--source-field": source_field, "--target-field": target_field}
        refuse(fields, f"with files of fields ({', '.join(WITH_FIELDS)})")
    return list(found.values())


def digest(path: Path) -> str:
    """Of a file's bytes. Raises DataError where it cannot be read."""
    found = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    return found.hexdigest()


def _files(inputs: Inputs) -> Iterator[Path]:
    for given in [inputs] if isinstance(inputs, str | Path) else inputs:
        path = Path(given)
        if path.is_dir():
            inside = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
            files = [each for each in inside if each.name != MANIFEST]
            if not files:
                raise DataError(f"the folder {path} holds no file: check --input")
        elif not path.exists() and glob.has_magic(str(given)):
            files = sorted(Path(each) for each in glob.glob(str(given)))
            if not files:
                raise DataError(f"there is no file that {given} matches: check --input")
        else:
            files = [path]
        yield from files
