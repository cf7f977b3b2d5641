"""`WordFormat`: Word documents (.docx, ECMA-376). Paragraphs are translated, and everything else is preserved."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.archive import Archive, check_text_size
from dragoman.addons.documents.formats.format import DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.formats.word.direction import set_page_direction
from dragoman.addons.documents.formats.word.language import set_style_languages
from dragoman.addons.documents.formats.word.package import Element, local_name, parse_xml, serialise_xml
from dragoman.addons.documents.formats.word.paragraph import Paragraph, replace_forbidden
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.base.errors import ConfigError, DataError

MAX_ELEMENTS = 200_000
"""The maximum number of paragraphs, runs and images in a document. Parsing this number takes about six seconds."""

_PIECES = ("{*}p", "{*}r", "{*}docPr")

_TYPES = "[Content_Types].xml"
_MAIN = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
)
_RELATED = tuple(
    f"application/vnd.openxmlformats-officedocument.wordprocessingml.{name}+xml"
    for name in ("header", "footer", "footnotes", "endnotes")
)
_STYLES = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml",
    "application/vnd.ms-word.stylesWithEffects+xml",
)
_DESCRIBED = "}docPr"
_DESCRIPTIONS = ("title", "descr")


class _Translatable(NamedTuple):
    """A translatable text. root: the root element of the part that contains the text; write: replaces the text."""

    root: Element
    passage: Passage
    write: Callable[[str], None]


class WordFormat:
    """Translates paragraphs in the body, tables, text boxes, headers, footers and notes, and image descriptions."""

    takes_encoding = False

    def parse(self, content: bytes, languages: Languages = UNKNOWN) -> ParsedDocument[bytes]:
        """See `Format.parse`."""
        if not isinstance(content, bytes):
            raise ConfigError("a Word document is not text: pass its bytes, for example Path(…).read_bytes()")
        package = Archive(content, "a Word document (.docx)")
        roots = {name: parse_xml(package.read(name), name) for name in _parts_with_text(package)}
        _check_pieces(sum(1 for root in roots.values() for _ in root.iter(*_PIECES)))
        translatables = [each for root in roots.values() for each in _translatables(root, languages)]
        original_texts = [raw_text(each.passage) for each in translatables]

        def write(texts: Sequence[str]) -> bytes:
            changed = [
                each for each, text, old in zip(translatables, texts, original_texts, strict=True) if text != old
            ]
            new = [text for text, old in zip(texts, original_texts, strict=True) if text != old]
            for each, text in zip(changed, new, strict=True):
                each.write(text)
            parts = {}
            for name, root in roots.items():
                if any(each.root is root for each in changed):
                    if languages.new_direction is not None:
                        set_page_direction(root, languages.new_direction)
                    parts[name] = serialise_xml(root)
            return package.replace_parts(_styles_in(package, languages) | parts) if parts else content

        return ParsedDocument([each.passage for each in translatables], write)

    def decode(
        self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None
    ) -> DecodedFile[bytes]:
        """Return the bytes unchanged. See `Format.decode`."""
        reject_encoding(encoding, "Word documents")
        return DecodedFile(data, bytes)


def _parts_with_text(package: Archive) -> list[str]:
    """Return the names of the parts that contain text, starting with the main document.

    Raises DataError if there is no main document or too much text.
    """
    sizes = package.sizes
    if _TYPES not in sizes:
        raise DataError("this archive is not a Word document (.docx): it does not declare the types of its parts")
    check_text_size(sizes[_TYPES])
    types = _types(parse_xml(package.read(_TYPES), _TYPES), sizes)
    main = [name for name, type in types.items() if type in _MAIN]
    if not main:
        raise DataError("this archive is not a Word document (.docx): it has no main document part")
    part_names = [*main, *(name for name, type in types.items() if type in _RELATED)]
    check_text_size(sum(sizes[name] for name in part_names))
    return part_names


def _styles_in(package: Archive, languages: Languages) -> dict[str, bytes]:
    """Return the parts with styles whose language changes."""
    types = _types(parse_xml(package.read(_TYPES), _TYPES), package.sizes)
    parts: dict[str, bytes] = {}
    for name in (name for name, type in types.items() if type in _STYLES):
        check_text_size(package.sizes[name])
        root = parse_xml(package.read(name), name)
        if languages.target is not None and set_style_languages(root, languages):
            parts[name] = serialise_xml(root)
    return parts


def _check_pieces(count: int) -> None:
    if count > MAX_ELEMENTS:
        raise DataError(
            f"this document has {count:,} paragraphs, runs and images, but at most {MAX_ELEMENTS:,} are read: divide it"
        )


def _types(root: Element, names: Iterable[str]) -> dict[str, str]:
    """Return the content type of each part, declared for the part itself or for its file name extension."""
    declared: dict[str, str] = {}
    for each in root:
        key = each.get("PartName", "").removeprefix("/") or "." + each.get("Extension", "")
        declared[key.lower()] = each.get("ContentType", "")
    return {name: declared.get(name.lower(), declared.get("." + name.lower().rpartition(".")[2], "")) for name in names}


def _translatables(root: Element, languages: Languages) -> Iterator[_Translatable]:
    for element in root.iter():
        if local_name(element) == "p":
            paragraph = Paragraph(element, languages)
            if paragraph.passage is not None:
                yield _Translatable(root, paragraph.passage, paragraph.write)
        elif isinstance(element.tag, str) and element.tag.endswith(_DESCRIBED):
            for name in _DESCRIPTIONS:
                if any(map(str.isalpha, value := element.get(name, ""))):
                    yield _Translatable(
                        root, Passage(value, value, escape=replace_forbidden), _attribute_setter(element, name)
                    )


def _attribute_setter(element: Element, name: str) -> Callable[[str], None]:
    return lambda text: element.set(name, text)
