"""`Job`: everything that a machine needs to translate; `Shard`: an input file with its output; formats by file name."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, DataError, reject_options
from dragoman.checkpoint.folder import fingerprint_of
from dragoman.translation.bulk.format import ShardFormat, TextLines
from dragoman.translation.bulk.json_lines import JsonLines
from dragoman.translation.bulk.manifest import MANIFEST
from dragoman.translation.bulk.parquet import Parquet
from dragoman.translation.files.faulty_lines import OnError
from dragoman.translation.files.line_translation import LineTranslation
from dragoman.translation.request import Request
from dragoman.translation.translator import WINDOW_BATCHES, Translator

_CHUNK = 1 << 20

Inputs = str | Path | Sequence[str | Path]
"""A file, a folder of files or a pattern such as `part-*.en.zst`, or several of these."""
_COMPRESSED = (".gz", ".xz", ".zst")
WITH_FIELDS: dict[str, type[JsonLines] | type[Parquet]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".parquet": Parquet,
}
TARGET_FIELD = "translation"


@dataclass(frozen=True)
class Shard:
    """An input file and its output file, of the same name. Paths are absolute, and the same on all machines."""

    source: Path
    target: Path
    format: ShardFormat

    @property
    def name(self) -> str:
        """The name of both files."""
        return self.source.name


@dataclass(frozen=True)
class Job:
    """The job that all machines of a cluster share.

    models: folders, as absolute paths. shards: the shards that are not completed. threads: per actor. settings:
    everything that the translations depend on, as found on the machine that runs the command.
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
        """Records per window, which an actor translates in one call."""
        return WINDOW_BATCHES * self.batch_size

    def load(self) -> Translator:
        """Load the model on this machine. Raises the same errors as `Translator.load`."""
        return Translator.load(self.models, "cpu", self.engine, self.precision, self.threads)

    def dependencies(self, translator: Translator) -> dict[str, Any]:
        """Return everything that the translations depend on, as found on this machine, as JSON values."""
        translation = LineTranslation(translator, self.request, None, None, self.batch_size, on_error=self.on_error)
        return {**translation.settings(), "model": fingerprint_of(self.models), "precision": self.precision}


def shards_of(inputs: Inputs, output: Path, source_field: str | None, target_field: str | None) -> list[Shard]:
    """Return the shards in the given order; shards of a folder or pattern are sorted by name.

    output: the folder of the output. Raises DataError for a file that is missing or would be overwritten, and for two
    files of the same name; ConfigError as `format_of`, and for field names if no file has fields.
    """
    found: dict[str, Shard] = {}
    output = output.absolute()
    for path in _files(inputs):
        path = path.absolute()
        if not path.is_file():
            raise DataError(f"no such file: {path}; check --input")
        if path.name == MANIFEST:
            raise DataError(f"{path} has the name of the manifest in --output: rename it")
        shard = Shard(path, output / path.name, format_of(path, source_field, target_field))
        if shard.target.resolve() == path.resolve():
            raise DataError(f"--output {output} is the folder of {path.name}, which would be lost: choose another")
        other = found.setdefault(path.name, shard)
        if other.source != path:
            raise DataError(
                f"{other.source} and {path} have the same name, and would be the same file of --output: rename one"
            )
    if all(isinstance(shard.format, TextLines) for shard in found.values()):
        fields = {"--source-field": source_field, "--target-field": target_field}
        reject_options(fields, f"with files that have fields ({', '.join(WITH_FIELDS)})")
    return list(found.values())


def digest(path: Path) -> str:
    """Return a digest of a file's bytes. Raises DataError if it cannot be read."""
    found = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    return found.hexdigest()


def format_of(path: Path, source_field: str | None, target_field: str | None) -> ShardFormat:
    """Return the format of a file by its suffix: JSON Lines or Parquet, with named fields; otherwise lines of text.

    target_field: None for `translation`. Raises ConfigError if the source field is missing or both are the same.
    """
    ending = path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix
    kind = WITH_FIELDS.get(ending)
    if kind is None:
        return TextLines()
    if source_field is None:
        raise ConfigError(f"{path}: name the field to translate with --source-field")
    target_field = target_field or TARGET_FIELD
    if target_field == source_field:
        raise ConfigError(f"--target-field {target_field} is the field to translate: choose another")
    return kind(source_field, target_field)


def with_absolute_paths(request: Request) -> Request:
    """Return the request with absolute paths to the files of its search, so that other machines find them."""
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
    for given in [inputs] if isinstance(inputs, str | Path) else inputs:
        path = Path(given)
        if path.is_dir():
            inside = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
            files = [each for each in inside if each.name != MANIFEST]
            if not files:
                raise DataError(f"the folder {path} is empty: check --input")
        elif not path.exists() and glob.has_magic(str(given)):
            files = sorted(Path(each) for each in glob.glob(str(given)))
            if not files:
                raise DataError(f"no file matches {given}: check --input")
        else:
            files = [path]
        yield from files
