"""`Job`: the settings and shards of a run on a cluster; `Shard`: an input file and its output file."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dragoman.addons.bulk.format import ShardFormat, TextLines
from dragoman.addons.bulk.json_lines import JsonLines
from dragoman.addons.bulk.manifest import MANIFEST
from dragoman.addons.bulk.parquet import Parquet
from dragoman.base.errors import ConfigError, DataError, reject_options
from dragoman.checkpoint.folder import fingerprint_of
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.files.faulty_lines import OnError
from dragoman.inference.translation.files.line_translation import LineTranslation
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import WINDOW_BATCHES

_CHUNK = 1 << 20

Inputs = str | Path | Sequence[str | Path]
"""One or more files, folders of files, or patterns such as `part-*.en.zst`."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
WITH_FIELDS: dict[str, type[JsonLines] | type[Parquet]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".parquet": Parquet,
}
TARGET_FIELD = "translation"


@dataclass(frozen=True)
class Shard:
    """An input file and its output file, which have the same name. Paths are absolute and identical on all machines."""

    source: Path
    target: Path
    format: ShardFormat

    @property
    def name(self) -> str:
        """The file name of the input and the output."""
        return self.source.name


@dataclass(frozen=True)
class Job:
    """The settings and shards of a run, which are sent to all machines of a cluster.

    models: model folders, as absolute paths. shards: the shards that are not completed. threads: number of threads per
    actor. settings: all values that determine the translations, as computed on the machine that runs the command.
    """

    models: tuple[Path, ...]
    shards: tuple[Shard, ...]
    request: Request
    batch_size: int
    engine: str
    precision: str | None
    threads: int
    on_error: OnError
    settings: Mapping[str, Any]

    @property
    def window(self) -> int:
        """Number of records per window. An actor translates one window per call."""
        return WINDOW_BATCHES * self.batch_size

    def load(self) -> SupportsLines:
        """Load the model on this machine. Raises the same errors as `translator_of`."""
        return translator_of(self.models, "cpu", engine=self.engine, precision=self.precision, threads=self.threads)

    def dependencies(self, translator: SupportsLines) -> dict[str, Any]:
        """Return all values that determine the translations, as computed on this machine, as JSON values."""
        translation = LineTranslation(translator, self.request, None, None, self.batch_size, on_error=self.on_error)
        return {**translation.settings(), "model": fingerprint_of(self.models), "precision": self.precision}


def shards_of(inputs: Inputs, output: Path, source_field: str | None, target_field: str | None) -> list[Shard]:
    """Return the shards in the given order. The shards of a folder or pattern are sorted by name.

    output: the output folder. Raises DataError for a file that is missing or would be overwritten, and for two files
    with the same name; ConfigError like `format_of`, and if fields are named but no file has fields.
    """
    shards: dict[str, Shard] = {}
    output = output.absolute()
    for path in _files(inputs):
        path = path.absolute()
        if not path.is_file():
            raise DataError(f"no such file: {path}; check --input")
        if path.name == MANIFEST:
            raise DataError(f"{path} has the name of the manifest in --output: rename it")
        shard = Shard(path, output / path.name, format_of(path, source_field, target_field))
        if shard.target.resolve() == path.resolve():
            raise DataError(f"--output {output} is the folder of {path.name} and would overwrite it: choose another")
        other = shards.setdefault(path.name, shard)
        if other.source != path:
            raise DataError(
                f"{other.source} and {path} have the same name and would have the same output file: rename one of them"
            )
    if all(isinstance(shard.format, TextLines) for shard in shards.values()):
        fields = {"--source-field": source_field, "--target-field": target_field}
        reject_options(fields, f"with files that have fields ({', '.join(WITH_FIELDS)})")
    return list(shards.values())


def digest(path: Path) -> str:
    """Return a hexadecimal digest of a file's bytes. Raises DataError if the file cannot be read."""
    state = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                state.update(chunk)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    return state.hexdigest()


def format_of(path: Path, source_field: str | None, target_field: str | None) -> ShardFormat:
    """Return the format of a file according to its suffix: JSON Lines, Parquet or, for any other suffix, lines of text.

    target_field: None for `translation`. Raises ConfigError if a JSON Lines or Parquet file has no source field, or if
    both fields are the same.
    """
    ending = path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix
    kind = WITH_FIELDS.get(ending)
    if kind is None:
        return TextLines()
    if source_field is None:
        raise ConfigError(f"{path}: name the field to translate with --source-field")
    target_field = target_field or TARGET_FIELD
    if target_field == source_field:
        raise ConfigError(f"--target-field {target_field} is also the source field: choose another field")
    return kind(source_field, target_field)


def with_absolute_paths(request: Request) -> Request:
    """Return the request with absolute paths to the files of its search settings, for use on other machines."""
    changes: dict[str, Any] = {}
    for field, name in (("unknown", "path"), ("fusion", "language_model")):
        part = getattr(request.decoding, field, None)
        path = getattr(part, name, None)
        if part is not None and path is not None:
            changes[field] = part.model_copy(update={name: Path(path).absolute()})
    if not changes:
        return request
    return replace(request, decoding=request.decoding.model_copy(update=changes))  # type: ignore[union-attr]


def _files(inputs: Inputs) -> Iterator[Path]:
    for entry in [inputs] if isinstance(inputs, str | Path) else inputs:
        path = Path(entry)
        if path.is_dir():
            inside = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
            files = [each for each in inside if each.name != MANIFEST]
            if not files:
                raise DataError(f"the folder {path} is empty: check --input")
        elif not path.exists() and glob.has_magic(str(entry)):
            files = sorted(Path(each) for each in glob.glob(str(entry)))
            if not files:
                raise DataError(f"no file matches {entry}: check --input")
        else:
            files = [path]
        yield from files
