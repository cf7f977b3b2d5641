"""Which format a shard has, by the ending of its name."""

from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.translation.bulk.formats.format import ShardFormat
from dragoman.translation.bulk.formats.json_lines import JsonLines
from dragoman.translation.bulk.formats.parquet import Parquet
from dragoman.translation.bulk.formats.text import TextLines

_COMPRESSED = (".gz", ".xz", ".zst")
WITH_FIELDS: dict[str, type[JsonLines] | type[Parquet]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".parquet": Parquet,
}
TARGET_FIELD = "translation"


def format_of(path: Path, source_field: str | None, target_field: str | None) -> ShardFormat:
    """The names of fields are those of JSON Lines and of Parquet's columns; what else a file may be is lines of text.

    target_field: None is `translation`. Raises ConfigError where the source's is missing, or both are one.
    """
    ending = path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix
    kind = WITH_FIELDS.get(ending)
    if kind is None:
        return TextLines()
    if source_field is None:
        raise ConfigError(f"{path}: say which field is to be translated, with --source-field")
    target_field = target_field or TARGET_FIELD
    if target_field == source_field:
        raise ConfigError(f"--target-field {target_field} is the field that is translated: name another")
    return kind(source_field, target_field)
