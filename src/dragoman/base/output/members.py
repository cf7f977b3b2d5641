"""Compressed output that can be cut off and gone on with: each part is a member of its own in the file."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

Compress = Callable[[bytes], bytes]


def member_writer(path: Path) -> Compress:
    """What turns a part of the text into bytes of the file, by the ending of its name: .gz, .xz, .zst, or none.

    Members one after another are a file of that format (RFC 1952, section 2.2; RFC 8878, section 3.1).
    """
    if path.suffix == ".gz":
        return lambda data: gzip.compress(data, mtime=0)
    if path.suffix == ".xz":
        return lzma.compress
    if path.suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress
    return lambda data: data
