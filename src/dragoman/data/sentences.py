"""Sentences to translate, as they come through a pipe: one a line, none lost."""

from collections.abc import Iterator
from typing import BinaryIO, Literal

from dragoman.base.errors import DataError
from dragoman.data.readers import decode_line, has_broken_utf8


def read_sentences(
    stream: BinaryIO, broken: Literal["error", "replace"] = "error", origin: str = "standard input"
) -> Iterator[str]:
    r"""The lines of a byte stream as soon as each is there, blank ones too; lines end at \n only, as in `open_lines`.

    broken: what becomes of bytes that are no UTF-8: a DataError that names `origin` and the line, or U+FFFD.
    """
    for number, data in enumerate(stream, start=1):
        line = decode_line(data.removesuffix(b"\n"), first=number == 1)
        if has_broken_utf8(line):
            if broken == "error":
                raise DataError(
                    f"{origin}, line {number}: broken UTF-8. Convert the text first, for example with "
                    "`iconv -f latin1 -t utf-8`."
                )
            line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        yield line
