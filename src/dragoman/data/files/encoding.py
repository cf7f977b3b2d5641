"""Character encodings and line ends of text files: byte order marks, UTF-16 and UTF-32 without one, 8-bit text."""

import codecs
import shlex
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import DataError

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the start of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and the encodings that they indicate."""

LONGEST_MARK = 4
"""Number of bytes of the longest byte order mark."""

_UNPACK = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc", ".zst": "zstd -dc --long=31"}
_ESCAPES = {b"\x1b$B": "iso-2022-jp", b"\x1b$@": "iso-2022-jp", b"\x1b$)C": "iso-2022-kr"}
_CONTROLS = bytes({*range(9), *range(14, 27), *range(28, 32), 127})
_MIN_READABLE, _MIN_ASCII = 0.97, 0.005
"""Minimum fractions of assigned characters, and of ASCII characters, in text that is read as UTF-16 or UTF-32."""

_MIN_WIDE_CONTROLS, _MAX_OTHER_ZEROS = 0.01, 0.1
"""Minimum fraction of control bytes in UTF-16, and maximum fraction of zeros at the less frequent of even and odd
positions
in UTF-16 that is also UTF-8."""

_MIN_BROKEN, _MIN_BROKEN_AT_START = 3, 10
"""Minimum numbers of broken lines in a file, and at its start, that indicate another encoding. Fewer lines are dropped
by the cleaning rule `broken_utf8`."""

_SAMPLE = 1 << 16
_INVALID_UTF8 = "\udcff"


def marked_encoding(head: bytes) -> tuple[bytes, str] | None:
    """Return the byte order mark at the start of a file and the encoding that the mark indicates; None without one."""
    return next(((mark, codec) for mark, codec in MARKS if head.startswith(mark)), None)


def unmarked_encoding(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 in its byte order if the start of a file without a mark is such text; else None.

    In one of these encodings, the bytes must be text with ASCII characters such as spaces and line ends. With the wrong
    byte order, these would be other characters. If the bytes are also UTF-8, they are UTF-16 only if their zeros are at
    even or at odd positions, but not at both.
    """
    sample = head[: min(len(head), _SAMPLE) & ~3]
    if b"\0" not in sample or control_fraction(sample) < _MIN_WIDE_CONTROLS:
        return None
    zeros = [sample[parity::2].count(0) for parity in (0, 1)]
    may_be_utf8 = is_utf8(sample) and min(zeros) > _MAX_OTHER_ZEROS * sum(zeros)
    best, best_count = None, 0
    for codec in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        try:
            text = codecs.getincrementaldecoder(codec)("strict").decode(sample)
        except UnicodeDecodeError:
            continue
        if may_be_utf8 and codec.startswith("utf-16"):
            continue
        readable = sum(_is_readable(character) for character in text)
        ascii_count = sum(character in "\t\n\r" or " " <= character <= "~" for character in text)
        if readable >= _MIN_READABLE * len(text) and ascii_count > max(best_count, _MIN_ASCII * len(text)):
            best, best_count = codec, ascii_count
    return best


def escaped_encoding(head: bytes) -> str | None:
    """Return ISO-2022-JP or ISO-2022-KR if ASCII bytes contain the escape sequences of that encoding; else None."""
    if not head.isascii():
        return None
    return next((name for sequence, name in _ESCAPES.items() if sequence in head), None)


def transcode(chunks: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Convert text to UTF-8. Invalid sequences become bytes that are not valid UTF-8, so that their lines are found."""
    decoder = codecs.getincrementaldecoder(codec)(_ERROR_HANDLER)
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogateescape")


def has_mac_line_ends(head: bytes) -> bool:
    r"""Return whether the lines of a file end with \r alone, as on Mac OS before 2001. head: its start, as UTF-8."""
    return b"\r" in head and b"\n" not in head


def convert_mac_line_ends(chunks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Replace \r and \r\n with \n."""
    pending = b""
    for chunk in chunks:
        text = pending + chunk
        pending = b"\r" if text.endswith(b"\r") else b""  # the next chunk may start with \n
        yield text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if pending:
        yield b"\n"


def control_fraction(data: bytes) -> float:
    r"""Return the fraction of bytes that are control characters other than \t, \n, \v, \f, \r and the escape
    character."""
    return (len(data) - len(data.translate(None, _CONTROLS))) / max(1, len(data))


@dataclass
class Utf8Lines:
    """Counts the lines of a file that have non-ASCII characters.

    valid, broken: numbers of these lines that are valid UTF-8, and that are not. sample: the broken lines at the start
    of the file, from which their encoding is guessed.
    """

    valid: int = 0
    broken: int = 0
    sample: bytes = b""

    def add(self, line: bytes, is_valid: bool) -> None:
        """Count a line with non-ASCII characters."""
        if is_valid:
            self.valid += 1
            return
        self.broken += 1
        if len(self.sample) < _SAMPLE:
            self.sample += line[:_SAMPLE] + b"\n"

    def check(self, origin: Path | str, is_whole: bool = True) -> None:
        """Raise DataError if most of the lines are broken, because then the file is in another encoding.

        is_whole: whether the whole file was counted. At the start of a file, more broken lines are needed.
        """
        minimum = _MIN_BROKEN if is_whole else _MIN_BROKEN_AT_START
        if self.broken < minimum or self.broken <= self.valid:
            return
        likely = likely_encoding(self.sample)
        guess = f"It is probably {likely}. Convert it" if likely else "Find out its encoding, and convert it"
        start = "" if is_whole else " at its start"
        raise DataError(
            f"{origin} is not UTF-8: {self.broken:,} of the {self.broken + self.valid:,} lines with non-ASCII "
            f"characters{start} are broken. {guess}: {conversion_command(likely or 'ENCODING', origin)}"
        )


def count_utf8_lines(head: bytes, is_whole: bool) -> Utf8Lines:
    """Return the counts of the lines at the start of a file. is_whole: whether the last line is complete."""
    counts = Utf8Lines()
    if not head.isascii():
        for line in head.split(b"\n")[: None if is_whole else -1]:
            if not line.isascii():
                counts.add(line, is_utf8(line))
    return counts


def likely_encoding(data: bytes) -> str | None:
    """Return the encoding that bytes resemble most, under a name that iconv accepts; None if there is no clear answer.

    Among encodings that fit equally well, windows-1252 and windows-1250 are preferred.
    """
    import charset_normalizer

    matches = list(charset_normalizer.from_bytes(data[:_SAMPLE]))  # the best first
    equal = [match for match in matches if match.chaos == matches[0].chaos]
    possible = [codecs.lookup(name).name for match in equal for name in (match.encoding, *match.could_be_from_charset)]
    if not possible:
        return None
    name = next((name for name in ("cp1252", "cp1250") if name in possible), possible[0])
    return _ICONV_NAMES.get(name, name.replace("cp125", "windows-125").replace("_", "-"))


def conversion_command(encoding: str, origin: Path | str) -> str:
    """Return the shell command that converts a file to UTF-8. origin: the file, or a name of the standard input."""
    iconv = f"iconv -f {encoding} -t utf-8"
    if not isinstance(origin, Path):
        return iconv
    output = origin.with_suffix("") if origin.suffix in _UNPACK else origin
    output = output.with_name(f"{output.stem}.utf8{output.suffix}")
    unpack = _UNPACK.get(origin.suffix)
    file = shlex.quote(str(origin))
    command = f"{iconv} {file}" if unpack is None else f"{unpack} {file} | {iconv}"
    return f"{command} > {shlex.quote(str(output))}"


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8. A character may be incomplete at the end."""
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _is_readable(character: str) -> bool:
    return character in "\t\n\r\f" or unicodedata.category(character) not in ("Cc", "Cn", "Co", "Cs")


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID_UTF8, error.end


_ICONV_NAMES = {
    **dict.fromkeys(("euc_jis_2004", "euc_jisx0213"), "euc-jp"),
    **dict.fromkeys(("shift_jis_2004", "shift_jisx0213"), "shift_jis"),
    "mac-roman": "macintosh",
    **dict.fromkeys(("cp1006", "cp720", "hz", "kz1048", "ptcp154", "mac-greek", "mac-iceland", "mac-latin2")),
    "mac-turkish": None,
}
"""Encodings that iconv calls differently, and encodings that iconv does not have, by the names of Python's codecs."""

_ERROR_HANDLER = "dragoman.invalid-utf8"
codecs.register_error(_ERROR_HANDLER, _mark_invalid)
