"""`TextEncoding`: the character encodings of text files, and how the encoding of a file is found."""

import codecs
from functools import cache, partial
from typing import NamedTuple

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.packages import import_optional
from dragoman.data.files.encoding import MARKS

_SAMPLE = 1 << 16
"""The number of bytes from which an encoding is guessed."""

_NO_TEXT_CODECS = frozenset(
    "idna punycode unicode-escape raw-unicode-escape undefined mbcs oem utf-7 replacement".split()
)
_COMMON = ("cp1252", "cp1250")
"""Encodings that are preferred among those that fit equally well."""


class EncodingError(DataError):
    """Text that is not in its encoding. likely: the likely encoding, such as `windows-1252`, or None."""

    def __init__(self, message: str, likely: str | None = None) -> None:
        super().__init__(message)
        self.likely = likely

    def __reduce__(self) -> tuple[type["EncodingError"], tuple[object, ...]]:
        """Make the error picklable."""
        return type(self), (str(self), self.likely)

    def with_remedy(self, option: str) -> DataError:
        """Return the error with the way in which an interface takes the name of an encoding, such as an option."""
        return DataError(f"{self}, or name its encoding: {option.replace('ENCODING', self.likely or 'ENCODING')}")


class TextEncoding(NamedTuple):
    """A character encoding. codec: the name of Python's codec; name: the usual name, such as `windows-1252`."""

    codec: str
    name: str

    def decode(self, data: bytes, origin: str, on_error: str = "stop") -> str:
        """Decode a file. origin: its name, for messages; on_error: `stop`, or `replace` to read U+FFFD.

        Raises EncodingError for bytes that are not in this encoding, with the line number.
        """
        try:
            return data.decode(self.codec, _error_handler(self.codec))
        except UnicodeError as error:
            if on_error == "replace":
                return data.decode(self.codec, "replace")
            start = error.start if isinstance(error, UnicodeDecodeError) else 0
            number = data.count(b"\n", 0, start) + 1
            likely = None if self.codec.startswith("utf-16") else likely_encoding(data[max(0, start - 1000) :])
            convert = "Convert it first" if likely is None else f"It may be {likely}: convert it first"
            name = self.name.upper() if self.name.startswith("utf") else self.name
            raise EncodingError(
                f"{origin}, line {number}: broken {name}. {convert} (iconv -f {likely or 'ENCODING'} -t utf-8)",
                likely,
            ) from None

    def encode(self, text: str, with_references: bool = False) -> bytes:
        """Encode text. with_references: write other characters as character references of HTML, such as `&#228;`.

        Raises UnicodeEncodeError for a character that the encoding does not have.
        """
        return text.encode(self.codec, _error_handler(self.codec, with_references))

    def preserves(self, data: bytes) -> bool:
        """Return whether bytes are text in this encoding that is encoded as the same bytes again."""
        try:
            return self.encode(self.decode(data, "")) == data
        except (DataError, UnicodeError):
            return False


UTF8 = TextEncoding("utf-8", "utf-8")
ASCII = TextEncoding("ascii", "ascii")


def find_encoding(label: str) -> TextEncoding | None:
    """Return the encoding of a label, None if it is unknown. On the web, `iso-8859-1` means windows-1252."""
    found = import_optional("webencodings", "documents").lookup(label)
    codec, name = (label, label.lower()) if found is None else (found.codec_info.name, found.name)
    try:
        codec = codecs.lookup(codec).name
        b"a".decode(codec)
    except UnicodeError:  # a single byte is not text in this encoding
        pass
    except (LookupError, ValueError):
        return None
    return None if codec.replace("_", "-") in _NO_TEXT_CODECS else TextEncoding(codec, name)


def named_encoding(label: str) -> TextEncoding:
    """Return the encoding that a user names. Raises ConfigError for an unknown name."""
    found = find_encoding(label)
    if found is None:
        raise ConfigError(f"unknown encoding '{label}': use a name such as utf-8, utf-16, windows-1252 or shift_jis")
    return found


def marked_encoding(data: bytes) -> TextEncoding | None:
    """Return the encoding that a byte order mark at the start of a file shows, or None."""
    return next((TextEncoding(codec, codec) for mark, codec in MARKS if data.startswith(mark)), None)


def unmarked_encoding(data: bytes) -> TextEncoding | None:
    """Return UTF-8 for valid UTF-8, and UTF-16 or UTF-32 if the zero bytes of a file show them; else None."""
    for unit, codecs_by_position in ((4, {3: "utf-32-be", 0: "utf-32-le"}), (2, {1: "utf-16-be", 0: "utf-16-le"})):
        sample = data[: _SAMPLE - _SAMPLE % unit]
        zeros = [sample[position::unit].count(0) for position in range(unit)]
        for position, codec in codecs_by_position.items():
            others = [count for index, count in enumerate(zeros) if index != position]
            enough = len(sample) // unit // 20
            if len(data) % unit == 0 and min(others) > max(enough, 4 * zeros[position]) and _is_text(data, codec):
                return TextEncoding(codec, codec)
    return UTF8 if is_utf8(data) else None


def likely_encoding(data: bytes) -> str | None:
    """Return the name of the encoding that the bytes of a file resemble most, or None if there is no clear answer."""
    webencodings = import_optional("webencodings", "documents")
    normalizer = import_optional("charset_normalizer", "documents", "charset-normalizer")
    matches = list(normalizer.from_bytes(data[:_SAMPLE]))  # the best first
    equal = [match for match in matches if match.chaos == matches[0].chaos]
    possible = [codecs.lookup(name).name for match in equal for name in (match.encoding, *match.could_be_from_charset)]
    if not possible:
        return None
    ordered = [*(name for name in _COMMON if name in possible), *possible]
    known = (found for name in ordered if (found := webencodings.lookup(name)) is not None)
    return next((found.name for found in known), ordered[0])


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    return _is_valid(data, "utf-8")


def _is_valid(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeError:
        return False
    return True


def _is_text(data: bytes, codec: str) -> bool:
    """Whether bytes are text without control characters."""
    try:
        text = data[:_SAMPLE].decode(codec)
    except UnicodeDecodeError as error:
        if error.end < min(len(data), _SAMPLE) - 4:
            return False
        text = data[: error.start].decode(codec)
    return not any(character < " " and character not in "\t\n\r\f\v\x1a" for character in text)


@cache
def _error_handler(codec: str, with_references: bool = False) -> str:
    """Return the name of the error handler of an encoding.

    As in browsers, undefined bytes of Windows' encodings are control characters.
    """
    name = f"dragoman.{codec}.{'references' if with_references else 'strict'}"
    codecs.register_error(name, partial(_handle_error, codec, with_references))
    return name


def _handle_error(codec: str, with_references: bool, error: UnicodeError) -> tuple[str | bytes, int]:
    has_controls = codec.startswith("cp125")
    if isinstance(error, UnicodeDecodeError) and has_controls:
        return "".join(map(chr, error.object[error.start : error.end])), error.end
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start]
        if has_controls and "\x80" <= character <= "\x9f" and not _is_valid(bytes([ord(character)]), codec):
            return bytes([ord(character)]), error.start + 1
        if with_references:
            return f"&#{ord(character)};", error.start + 1
    raise error
