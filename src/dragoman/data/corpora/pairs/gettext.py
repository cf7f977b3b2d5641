"""Corpora in gettext catalogues (.po): messages of programs and their translations."""

from collections.abc import Iterator
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.corpora.items import Pair
from dragoman.data.files.catalogue import Entry, charset_of, read_catalogue
from dragoman.data.files.lines import read_chunks


def read_gettext(path: Path) -> Iterator[Pair]:
    """Yield the messages of a catalogue as pairs, in the encoding that its header declares.

    A message with a plural yields two pairs: the singular with the first form of the translation, and the plural with
    the last one. A message without a translation, or whose translation is fuzzy, becomes a pair that is not `complete`.
    The header and obsolete messages are ignored. Raises DataError for a syntax error and for an unknown encoding.
    """
    content = b"".join(read_chunks(path, "any")).removeprefix(b"\xef\xbb\xbf")
    charset = charset_of(content[:20_000].decode("latin-1"))
    try:
        text = content.decode(charset, "surrogateescape")
    except LookupError:
        raise DataError(f"{path}: its header declares the unknown charset {charset!r}. Correct the header.") from None
    except UnicodeError as error:
        raise DataError(f"{path} is not {charset}, which its header declares ({error}). Correct the header.") from None
    for entry in read_catalogue(text, path).entries:
        if not entry.is_header:
            yield from _pairs(entry)


def _pairs(entry: Entry) -> Iterator[Pair]:
    translations = [entry.translations[number] for number in sorted(entry.translations)]
    is_complete = all(translations) and "fuzzy" not in entry.flags
    sides = [(entry.text or "", translations[0])]
    if entry.plural is not None:
        sides.append((entry.plural, translations[-1]))
    for source, target in sides:
        yield Pair(entry.line, source, target, is_complete)
