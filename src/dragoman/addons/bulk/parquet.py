"""`Parquet`: the Parquet format. The translation of a column becomes a new column."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.addons.bulk.format import Part, ShardFormat, Window
from dragoman.base.errors import DataError
from dragoman.base.packages import import_optional
from dragoman.data.files.lines import has_broken_utf8
from dragoman.inference.translation.files.faulty_lines import OnError

_GROUP = 1 << 16
"""Number of rows per row group of the output."""


@dataclass(frozen=True)
class Parquet(ShardFormat):
    """Parquet tables. source: the column to translate, which contains strings. target: name of the new last column."""

    source: str
    target: str

    def windows(self, path: Path, size: int, on_error: OnError) -> Iterator[Window]:
        """See `ShardFormat.windows`. Each row is a record. The text of a null is empty."""
        first = 1
        with self._open(path) as file:
            for batch in file.iter_batches(batch_size=size):
                texts = list(self._texts(batch, path, first, on_error))
                yield Window(first, texts, batch)
                first += batch.num_rows

    def part(self, window: Window, translations: list[str], name: str) -> Part:
        """Return the record batch with the new column. The writer compresses it."""
        arrow = import_optional("pyarrow", "ray")
        batch = window.rest
        schema = batch.schema.append(arrow.field(self.target, arrow.string()))
        return arrow.RecordBatch.from_arrays([*batch.columns, arrow.array(translations, arrow.string())], schema=schema)

    @contextmanager
    def writer(self, source: Path, target: Path) -> Iterator[Callable[[Part], object]]:
        """Yield a function that writes record batches with the schema, metadata and compression of the shard.

        Row groups of the output have 65,536 rows.
        """
        arrow, parquet = import_optional("pyarrow", "ray"), import_optional("pyarrow.parquet", "ray", "pyarrow")
        with self._open(source) as file:
            schema = file.schema_arrow.append(arrow.field(self.target, arrow.string()))
            groups = file.metadata.num_row_groups
            codec = file.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
        buffered: list[Any] = []
        with parquet.ParquetWriter(target, schema, compression=codec.replace("UNCOMPRESSED", "NONE")) as out:

            def flush() -> None:
                out.write_table(arrow.Table.from_batches(buffered, schema), row_group_size=_GROUP)
                buffered.clear()

            def write(part: Any) -> None:
                buffered.append(part)
                if sum(batch.num_rows for batch in buffered) >= _GROUP:
                    flush()

            yield write
            if buffered:
                flush()

    def _open(self, path: Path) -> Any:
        """Open the file. Raises DataError if it is not a Parquet file or its columns are unsuitable."""
        arrow, parquet = import_optional("pyarrow", "ray"), import_optional("pyarrow.parquet", "ray", "pyarrow")
        try:
            file = parquet.ParquetFile(path)
        except (OSError, arrow.ArrowInvalid) as error:
            raise DataError(f"{path} cannot be read as Parquet: {error}") from None
        names = file.schema_arrow.names
        with _closing_on_error(file):
            if self.source not in names:
                raise DataError(
                    f"{path} has no column {self.source!r}, which --source-field names: expected one of "
                    f"{', '.join(names)}"
                )
            if self.target in names:
                raise DataError(
                    f"{path} already has a column {self.target!r}, which the translation would replace: choose "
                    "another column with --target-field"
                )
            kind = file.schema_arrow.field(self.source).type
            if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
                raise DataError(f"{path}: the column {self.source!r} does not contain strings, but {kind}")
        return file

    def _texts(self, batch: Any, path: Path, first: int, on_error: OnError) -> Iterator[str]:
        arrow = import_optional("pyarrow", "ray")
        for number, data in enumerate(batch.column(self.source).cast(arrow.large_binary()).to_pylist(), start=first):
            text = (data or b"").decode("utf-8", "surrogateescape")
            if on_error == "stop" and has_broken_utf8(text):
                raise DataError(f"{path}, line {number}: invalid UTF-8 in the column {self.source!r}")
            yield text


@contextmanager
def _closing_on_error(file: Any) -> Iterator[None]:
    try:
        yield
    except BaseException:
        file.close()
        raise
