"""gettext catalogues (.po, .pot): messages without a translation are translated; everything else is kept.

polib and Babel write a catalogue again as a whole, with other line breaks, so dragoman replaces parts of the file.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.format import BilingualFormat, DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.formats.messages.message import Message, count_placeholders
from dragoman.addons.documents.formats.messages.plural_forms import PluralForms, parse_plural_forms, plural_forms_of
from dragoman.addons.documents.languages import Direction, Languages
from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.files.catalogue import CHARSET, Catalogue, Entry, charset_of, read_catalogue
from dragoman.text.languages.codes import is_same_language

_DIRECTIVE = re.compile(
    r"%(?:(?P<number>[0-9]+)\$|\((?P<name>\w+)\))?[-+ #0']*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*)?)?"
    r"(?:hh|h|ll|l|j|z|t|L|q|<PRI\w+>)?(?P<type>[a-zA-Z@%])?"
)
_NUMBERED_FORMATS = frozenset(f"{name}-format" for name in ("c", "objc", "php", "perl", "java-printf", "sh-printf"))
"""Formats whose arguments can be numbered: `%2$s`."""

_PRINTF_FORMATS = _NUMBERED_FORMATS | {"python-format"}


class GettextFormat(BilingualFormat):
    """Catalogues in the encoding that their header declares."""

    def __init__(self) -> None:
        super().__init__(parse_gettext)

    def decode(self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None) -> DecodedFile[str]:
        """See `Format.decode`."""
        reject_encoding(encoding, "gettext catalogues")
        charset = charset_of(data.decode("latin-1"))
        if charset.lower() in ("utf-8", "utf8"):
            return super().decode(data, origin, on_error)
        if charset.lower() in ("ascii", "us-ascii"):
            return DecodedFile(super().decode(data, origin, on_error).content, self.encode)
        try:
            return DecodedFile(data.decode(charset, "strict" if on_error == "stop" else "replace"), self.encode)
        except LookupError:
            raise DataError(f"{origin}: its header declares the unknown charset {charset!r}: correct it") from None
        except UnicodeError as error:
            raise DataError(f"{origin}: it is not {charset}, which its header declares: {error}") from None

    def encode(self, content: str) -> bytes:
        """Return the bytes in the declared encoding; in UTF-8, which is then declared, if that has not all letters."""
        charset = charset_of(content)
        try:
            return content.encode(charset)
        except (UnicodeEncodeError, LookupError):
            return CHARSET.sub(r"\g<1>UTF-8", content, count=1).encode()


class _Job(NamedTuple):
    """An entry to translate, its message, and that of its plural or None. kept: plural forms that stay, by number."""

    entry: Entry
    one: Message
    many: Message | None
    kept: Mapping[int, str]


def parse_gettext(text: str, languages: Languages, pivot: str | None = None) -> ParsedDocument[str]:
    """Parse a catalogue.

    Entries without a translation are translated, and marked as fuzzy; in a catalogue whose `Language` is the source
    language, all translations are replaced. pivot: the same catalogue with translations into a third language, which
    are translated instead of the texts. Warns of entries that cannot be translated.

    Raises DataError for a syntax error, and for a catalogue with translations into a third language.
    """
    catalogue = read_catalogue(text)
    header = next((entry for entry in catalogue.entries if entry.is_header), None)
    fields = _fields(header)
    is_source = _is_source_catalogue(catalogue, fields.get("language", ""), languages)
    read = catalogue.entries if pivot is None else read_catalogue(pivot).entries
    has_plurals = any(entry.plural is not None for entry in catalogue.entries)
    forms = _plural_forms(fields, languages, is_source) if has_plurals else None
    jobs = [
        _job(entry, other, is_source, pivot is not None, languages.new_direction)
        for entry, other in zip(catalogue.entries, read, strict=True)
        if _is_open(entry, is_source, forms)
    ]
    parts = [passage for job in jobs for each in (job.one, job.many) if each is not None for passage in each.passages]

    def written(texts: Sequence[str]) -> str:
        given = iter(texts)
        splices: list[tuple[int, int, str]] = []
        broken = []
        for job in jobs:
            one, many = _texts(job, given)
            if one is None or many is None:
                broken.append(job.entry)
                continue
            splices += _splices(catalogue, text, job.entry, _msgstrs(job, one, many, forms))
        if broken:
            warn(
                f"{len(broken):,} message(s) remain untranslated, because their translation would not have the same "
                f"placeholders, or their plural forms cannot be divided; the first is in line {broken[0].line}"
            )
        if splices and header is not None:
            splices += _header_splices(catalogue, header, fields, languages, forms)
        return _spliced(text, splices)

    return ParsedDocument(parts, written)


def _fields(header: Entry | None) -> dict[str, str]:
    """Return the fields of a header by name in lower case."""
    lines = [] if header is None else header.translations.get(0, "").split("\n")
    split = [line.partition(":") for line in lines if ":" in line]
    return {name.strip().lower(): value.strip() for name, _, value in split}


def _is_source_catalogue(catalogue: Catalogue, language: str, languages: Languages) -> bool:
    """Whether the translations of a catalogue are texts in the source language, to be translated themselves.

    Raises DataError if there are translations, and they are in neither language.
    """
    if not language or languages.target is None or is_same_language(language, languages.target):
        return False
    if languages.source is not None and is_same_language(language, languages.source):
        return True
    if any(any(entry.translations.values()) for entry in catalogue.entries if not entry.is_header):
        raise DataError(
            f"the document: its translations are in the language {language!r}, as the field Language of its header "
            f"says, and would be mixed with translations into {languages.target!r}: start from the template (.pot), or "
            "correct the header"
        )
    return False


def _is_open(entry: Entry, is_source: bool, forms: PluralForms | None) -> bool:
    """Return whether an entry has no translation, or no translation for some of its plural forms."""
    if entry.is_header or not entry.text:
        return False
    count = 1 if entry.plural is None or forms is None else forms.count
    missing = not set(range(count)) <= entry.translations.keys()
    return is_source or missing or not all(_is_written(text, entry) for text in entry.translations.values())


def _is_written(translation: str, entry: Entry) -> bool:
    """Return whether a translation counts: one of blanks only does if the message has no more than blanks."""
    return bool(translation.strip() or (translation and not (entry.text or "").strip()))


def _job(entry: Entry, other: Entry, is_source: bool, has_pivot: bool, direction: Direction | None) -> _Job:
    """Return what to translate of an entry: its text, or the translation of the same entry in another catalogue.

    direction: as in `Message`.
    """
    assert entry.text is not None
    reads_translation = is_source or has_pivot
    kept = (
        {} if is_source else {number: text for number, text in entry.translations.items() if _is_written(text, entry)}
    )
    numbers = sorted(other.translations.keys() - kept.keys())
    first = (other.translations[numbers[0]] if reads_translation else "") or entry.text
    if entry.plural is None:
        return _Job(entry, Message(first, mnemonics=True, direction=direction), None, kept)
    last = (other.translations[numbers[-1]] if reads_translation else "") or entry.plural
    return _Job(entry, Message(first, mnemonics=True), Message(last, mnemonics=True), kept)


def _plural_forms(fields: Mapping[str, str], languages: Languages, is_source: bool) -> PluralForms | None:
    """Return the forms that the header declares, or else those of the target language."""
    declared = None if is_source else parse_plural_forms(fields.get("plural-forms", ""))
    if declared is not None or languages.target is None:
        return declared
    return plural_forms_of(languages.target)


def _texts(job: _Job, given: Iterator[str]) -> tuple[str | None, str | None]:
    """Return the translations of an entry's message and of its plural; None for one with wrong placeholders."""
    found: list[str | None] = []
    for message in (job.one, job.many):
        if message is None:
            found.append(found[0])
            continue
        text = message.write([next(given) for _ in message.passages])
        found.append(None if message.is_opaque else _with_arguments(message.text, text, job.entry.flags))
    return found[0], found[1]


def _with_arguments(source: str, text: str, flags: frozenset[str]) -> str | None:
    """Return a translation whose arguments are those of its source, numbered if their order differs, else None."""
    if not flags & _PRINTF_FORMATS:
        return text
    before, after = _directives(source), _directives(text)
    if [match[0] for match in before] == [match[0] for match in after]:
        return text
    if Counter(match[0] for match in before) != Counter(match[0] for match in after):
        return None
    if all(match["number"] or match["name"] for match in before):
        return text
    if not flags & _NUMBERED_FORMATS or any("*" in match[0] or match["number"] for match in before):
        return None
    numbers: dict[str, list[int]] = {}
    for number, match in enumerate(before, 1):
        numbers.setdefault(match[0], []).append(number)
    written, at = "", 0
    for match in after:
        written += f"{text[at : match.start()]}%{numbers[match[0]].pop(0)}${match[0][1:]}"
        at = match.end()
    return written + text[at:]


def _directives(text: str) -> list[re.Match[str]]:
    """Return the printf directives of a text, except `%%`."""
    return [match for match in _DIRECTIVE.finditer(text) if match["type"] not in (None, "%")]


def _msgstrs(job: _Job, one: str, many: str, forms: PluralForms | None) -> list[str]:
    """Return the value of each `msgstr` of an entry."""
    if job.many is None:
        return [one]
    if forms is None:
        strings = [one, *[many] * max(1, len(job.entry.translations) - 1)]
        return [job.kept.get(form, string) for form, string in enumerate(strings)]
    if forms.singular_is_shared and count_placeholders(job.one.text) < count_placeholders(job.many.text):
        one = many  # "one file" is wrong for 21 files
    count = max(forms.count, *(number + 1 for number in job.kept)) if job.kept else forms.count
    strings = [one if form == forms.singular and forms.count > 1 else many for form in range(count)]
    return [job.kept.get(form, string) for form, string in enumerate(strings)]


def _splices(catalogue: Catalogue, text: str, entry: Entry, strings: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the changes of a file for the translation of an entry, as (begin, end, replacement)."""
    if "fuzzy" not in entry.flags:
        if entry.flags_at is None:
            yield entry.begin, entry.begin, f"#, fuzzy{catalogue.newline}"
        else:
            at = text.index("#,", entry.flags_at) + 2
            yield at, at, " fuzzy,"
    keywords = ["msgstr"] if entry.plural is None else [f"msgstr[{number}]" for number in range(len(strings))]
    lines = "".join(catalogue.lines_of(keyword, string) for keyword, string in zip(keywords, strings, strict=True))
    begin, end = entry.span
    yield begin, end, lines if text[begin:end].endswith("\n") else lines.removesuffix(catalogue.newline)


def _header_splices(
    catalogue: Catalogue, header: Entry, fields: Mapping[str, str], languages: Languages, forms: PluralForms | None
) -> Iterator[tuple[int, int, str]]:
    """Yield the change of the header: the target language, and its plural forms if they were not declared."""
    value = header.translations.get(0, "")
    language, declared = fields.get("language"), fields.get("plural-forms")
    changed = value
    target = languages.target
    if target is not None and language is not None and not (language and is_same_language(language, target)):
        changed = re.sub(r"(?mi)^(Language:)[^\n]*", rf"\1 {target.replace('-', '_')}", changed)
    if forms is not None and forms.declaration != declared:
        line = f"Plural-Forms: {forms.declaration}"
        if declared is None:
            changed = f"{changed.rstrip()}\n{line}\n" if changed.strip() else changed
        else:
            changed = re.sub(r"(?mi)^Plural-Forms:[^\n]*", lambda _: line, changed)
    if changed != value:
        yield *header.span, _lines_of_header(catalogue, changed)


def _lines_of_header(catalogue: Catalogue, value: str) -> str:
    unwrapped = Catalogue((), catalogue.newline, None)
    return unwrapped.lines_of("msgstr", value)


def _spliced(text: str, splices: Sequence[tuple[int, int, str]]) -> str:
    pieces, at = [], 0
    for begin, end, replacement in sorted(splices, key=lambda each: each[:2]):
        pieces += [text[at:begin], replacement]
        at = end
    return "".join([*pieces, text[at:]])
