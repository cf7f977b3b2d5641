"""Corpora as they lie on disk: plain or compressed lines, two aligned files or one tab-separated one."""

import difflib
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pydantic import Field, model_validator

from dragoman.base.config import Config
from dragoman.base.errors import DataError

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24
"""Bytes. A longer line means that the file is no line-by-line text; cleaning drops long lines far below this."""

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CorpusConfig(Config):
    """Sentence pairs: either `source` and `target`, line by line, or `tsv` with a pair a line."""

    source: Path | None = Field(default=None, description="Source sentences, one a line; plain, .gz, .xz or .zst.")
    target: Path | None = Field(default=None, description="Their translations, in the same order.")
    tsv: Path | None = Field(default=None, description="Tab-separated pairs, instead of `source` and `target`.")
    source_column: int = Field(default=1, ge=1, description="Column of the source in `tsv`, counted from 1.")
    target_column: int = Field(default=2, ge=1, description="Column of the target in `tsv`, counted from 1.")

    @model_validator(mode="after")
    def _one_form(self) -> "CorpusConfig":
        given = [name for name in ("source", "target", "tsv") if getattr(self, name) is not None]
        if given not in (["source", "target"], ["tsv"]):
            raise ValueError("give either both `source` and `target`, or `tsv` alone")
        if self.tsv is not None and self.source_column == self.target_column:
            raise ValueError("`source_column` and `target_column` are the same")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the corpus is read from."""
        return tuple(path for path in (self.source, self.target, self.tsv) if path is not None)

    def __str__(self) -> str:
        return " + ".join(map(str, self.files))


class Pair(NamedTuple):
    """A sentence pair. Bytes that are no UTF-8 stand in it as lone surrogates (`surrogateescape`)."""

    line: int  # counted from 1
    source: str
    target: str


def open_lines(path: Path) -> Iterator[str]:
    r"""The lines of a file, without their ends; undecodable bytes as lone surrogates (`surrogateescape`).

    Lines end at \n and nowhere else; a \r before it goes as well, a byte order mark at the start too, and the last \n
    may be missing. Compression (gzip, xz, zstd) is told by the first bytes. Raises DataError naming the file when it
    is missing, unreadable, truncated or corrupt.
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(_cannot_open(path, error)) from error
    with file:
        for number, line in enumerate(_split(_contents(path, file), path), start=1):
            yield decode_line(line, first=number == 1)


def decode_line(line: bytes, first: bool) -> str:
    r"""A line without its \n as text; a final \r goes, and from the `first` line a byte order mark at its start."""
    if first:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    return line.removesuffix(b"\r").decode("utf-8", "surrogateescape")


def read_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    """The pairs of a corpus in file order, nothing dropped.

    Raises DataError when the two sides differ in length (naming both counts), when a TSV line lacks a column, and when
    there is no pair at all.
    """
    pairs = _tsv_pairs(corpus, corpus.tsv) if corpus.tsv is not None else _aligned_pairs(corpus)
    number = 0
    for pair in pairs:
        number = pair.line
        yield pair
    if number == 0:
        raise DataError(f"The corpus {corpus} is empty; give files with at least one sentence pair.")


def read_sides(corpus: CorpusConfig) -> tuple[list[str], list[str]]:
    """All source sentences and all target sentences, for evaluation.

    Raises DataError at broken UTF-8, and where a whole side is blank: there would be nothing to measure.
    """
    sources: list[str] = []
    targets: list[str] = []
    for pair in read_pairs(corpus):
        if has_broken_utf8(pair.source) or has_broken_utf8(pair.target):
            raise DataError(f"{corpus}, line {pair.line}: broken UTF-8; convert the file (for example with iconv).")
        sources.append(pair.source)
        targets.append(pair.target)
    for name, side in (("source", sources), ("target", targets)):
        if not any(map(str.strip, side)):
            raise DataError(f"{corpus}: every line of the {name} side is blank; give files with sentences in them.")
    return sources, targets


def check_readable(corpus: CorpusConfig) -> None:
    """Look at the first line of each file. Raises DataError for one that is missing, empty or unreadable."""
    for path in corpus.files:
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is no regular file; a corpus is read several times, so store it in a file first.")
        if next(open_lines(path), None) is None:
            raise DataError(f"{path} is empty; give a file with at least one line.")


def has_broken_utf8(text: str) -> bool:
    """Whether a line from `open_lines` holds bytes that are no UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _aligned_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    assert corpus.source is not None
    assert corpus.target is not None
    counts = [0, 0]
    for source, target in zip_longest(open_lines(corpus.source), open_lines(corpus.target)):
        counts[0] += source is not None
        counts[1] += target is not None
        if source is not None and target is not None:
            yield Pair(counts[0], source, target)
    if counts[0] != counts[1]:
        raise DataError(
            f"The two sides differ in length: {corpus.source} has {counts[0]} lines, "
            f"{corpus.target} has {counts[1]} lines. Line n of one must translate line n of the other."
        )


def _tsv_pairs(corpus: CorpusConfig, path: Path) -> Iterator[Pair]:
    needed = max(corpus.source_column, corpus.target_column)
    for number, line in enumerate(open_lines(path), start=1):
        columns = line.split("\t")
        if line and len(columns) < needed:
            raise DataError(
                f"{path}, line {number}: {len(columns)} tab-separated columns, but column {needed} is asked for. "
                "Mend the line or choose other columns."
            )
        if line:
            yield Pair(number, columns[corpus.source_column - 1], columns[corpus.target_column - 1])
        else:
            yield Pair(number, "", "")


def _split(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = number = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            yield b"".join([*rest, lines[0]])
            yield from lines[1:-1]
            number += len(lines) - 1
            rest, size = [], 0
        rest.append(lines[-1])
        size += len(lines[-1])
        if size > LONGEST_LINE:
            raise DataError(f"{path}, line {number + 1}: longer than {LONGEST_LINE} bytes; is this a text file?")
    if size:
        yield b"".join(rest)


def _contents(path: Path, file: BufferedReader) -> Iterator[bytes]:
    """The bytes of a file, decompressed."""
    try:
        opener = _decompressor(path, file.peek(6)[:6])  # a pipe could not be wound back
        if opener is None:
            while chunk := file.read(CHUNK):
                yield chunk
        else:
            yield from _decompressed(path, file, opener)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def _decompressed(path: Path, file: BinaryIO, opener: Callable[[], Any]) -> Iterator[bytes]:
    member: Any = None  # a file may be several compressed members, one after another
    try:
        while data := file.read(CHUNK):
            while data:
                member = member or opener()
                yield member.decompress(data)
                data, member = (member.unused_data, None) if member.eof else (b"", member)
                if member is None and not data.strip(b"\0"):
                    data = b""  # zeros after the last member are padding
    except Exception as error:
        if isinstance(error, OSError | DataError):
            raise
        raise DataError(f"{path} is corrupt ({error}); fetch or compress it again.") from error
    if member is not None:
        raise DataError(f"{path} is truncated: its compressed data stop early; fetch or compress it again.")


def _decompressor(path: Path, head: bytes) -> Callable[[], Any] | None:
    if head.startswith(_GZIP):
        return lambda: zlib.decompressobj(wbits=31)
    if head.startswith(_XZ):
        return lzma.LZMADecompressor
    if head.startswith(_ZSTD):
        import zstandard

        return lambda: zstandard.ZstdDecompressor().decompressobj()
    if head and path.suffix in (".gz", ".xz", ".zst"):
        raise DataError(f"{path} is no {path.suffix[1:]} file, whatever its name says; rename it or compress it.")
    return None


def _cannot_open(path: Path, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"Cannot read {path}: {error.strerror or error}."
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        return f"There is no file {path}: the folder {folder} holds no {path.relative_to(folder).parts[0]}."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"There is no file {path}" + (f"; did you mean {folder / near[0]}?" if near else ".")
