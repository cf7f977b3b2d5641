"""XLIFF 1.2 and 2.x (.xlf, .xliff): segments without a target get one; everything else is kept byte for byte."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.addons.documents.formats.format import BilingualFormat, DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.formats.xliff.inline import parts_of_segment
from dragoman.addons.documents.formats.xml_tree import Element, Text, parse_tree, with_attribute
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage
from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.text.languages.codes import is_same_language

_ENCODING = re.compile(r"(<\?xml\b[^<>]*?\bencoding\s*=\s*[\"'])([A-Za-z0-9._-]+)")
_TAG_NAME = re.compile(rb"<([^\s/>]+)")
_TO_TRANSLATE = ("new", "needs-translation", "needs-l10n", "needs-adaptation", "initial")
"""States of a segment whose target does not count."""

_NATIVE_CODES = frozenset(("ph", "bpt", "ept", "it"))
"""Elements of XLIFF 1.2 with code of the original document. Only `<sub>` in them is text."""

_LANGUAGE_NAMES = {"1": ("source-language", "target-language"), "2": ("srcLang", "trgLang")}
"""Attributes with the languages by version."""


class XliffFormat(BilingualFormat):
    """XLIFF in the encoding that the file declares."""

    def __init__(self) -> None:
        super().__init__(parse_xliff)

    def decode(self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None) -> DecodedFile[str]:
        """See `Format.decode`."""
        reject_encoding(encoding, "XLIFF files")
        declared = _ENCODING.match(data[:200].decode("latin-1"))
        if declared is None or declared[2].lower() in ("utf-8", "utf8"):
            return super().decode(data, origin, on_error)
        try:
            return DecodedFile(data.decode(declared[2], "strict" if on_error == "stop" else "replace"), self.encode)
        except LookupError:
            raise DataError(f"{origin}: it declares the unknown encoding {declared[2]!r}: correct it") from None
        except UnicodeError as error:
            raise DataError(f"{origin}: it is not {declared[2]}, which it declares: {error}") from None

    def encode(self, content: str) -> bytes:
        """Return the bytes in the declared encoding; characters that it has not are written as references."""
        declared = _ENCODING.match(content)
        if declared is None or declared[2].lower().startswith("utf"):
            return content.encode()
        return content.encode(declared[2], "xmlcharrefreplace")


@dataclass
class _Segment:
    """A `<trans-unit>` (1.2) or `<segment>` (2.x) to translate. parts: of its new target; file: the element with the
    languages; mark: the element of its target, `<mrk mtype="seg">`, that alone is translated, None for all of it;
    place: where the target lacks this element, which is then that of the source."""

    element: Element
    source: Element
    after: Element
    target: Element | None
    parts: Sequence[str | Passage]
    file: Element
    mark: Element | None = None
    place: int | None = None


def parse_xliff(text: str, languages: Languages, pivot: str | None = None) -> ParsedDocument[str]:
    """Parse a file. Segments are translated that have no target, an empty one, or one that is still to be translated.

    pivot: the same file with targets in a third language, which are translated instead of the sources.

    Warns of segments that cannot be translated. Raises DataError for text that is not XLIFF, and for translations into
    another language than that of the file.
    """
    data = text.encode()
    root = parse_tree(data, "the document")
    version = root.attributes.get("version", "")
    if root.name != "xliff" or version[:1] not in _LANGUAGE_NAMES:
        raise DataError(
            f"the document is not XLIFF 1.x or 2.x: its root is <{root.name}>"
            + (f", version {version!r}" if root.name == "xliff" else "")
        )
    _require_file_element(root)
    names = _LANGUAGE_NAMES[version[:1]]
    pivot_data = data if pivot is None else pivot.encode()
    read = iter(_all_translatable(root if pivot is None else parse_tree(pivot_data, "the document"), version))
    segments, opaque = [], 0
    for file in _files(root, version):
        kept, has_copies = 0, _has_copies(file, names, languages)
        for element, other in zip(_translatable(file), read, strict=False):
            target, source = element.first("target"), element.first("source")
            if source is None or (target is not None and not source.children) or _is_locked(element):
                continue
            basis = element.first("seg-source") or source
            content = basis if pivot is None else other.first("target") or basis
            locked = _locked_segments(element)
            if target is None or has_copies or (not locked and _is_open(element, target, source)):
                jobs: list[tuple[Element, Element | None, int | None]] = [(content, None, None)]
            else:
                kept += 1
                jobs = [job for job in _open_marks(target, basis, content) if job[1].attributes["mid"] not in locked]
            for inner, mark, place in jobs:
                parts, is_opaque = parts_of_segment(inner, data if content is basis else pivot_data)
                opaque += is_opaque
                segments.append(_Segment(element, source, basis, target, parts, file, mark, place))
        _check_languages(file, names, languages, has_targets=kept > 0)
    if opaque:
        warn(
            f"{opaque:,} segment(s) are copied, because words surround their plural forms or cases, or they are invalid"
        )
    flat = [part for segment in segments for part in segment.parts]

    def write(texts: Sequence[str]) -> str:
        given = iter(texts)
        splices: dict[tuple[int, int], str] = {}
        for segment in segments:
            content = "".join(next(given) for _ in segment.parts)
            for (begin, end), replacement in _target(segment, content, data, version[:1]):
                before = splices.get((begin, end), "") if begin == end else ""
                splices[begin, end] = before + replacement
        for file in {id(segment.file): segment.file for segment in segments}.values():
            tag = (file.begin, file.inner[0])
            splices[tag] = _with_target_language(data[slice(*tag)].decode(), file, names[1], languages)
        pieces, at = [], 0
        for (begin, end), replacement in sorted(splices.items()):
            pieces += [data[at:begin], replacement.encode()]
            at = end
        return b"".join([*pieces, data[at:]]).decode()

    return ParsedDocument(flat, write)


def _require_file_element(root: Element) -> None:
    """Raise DataError if the root element has no <file> child."""
    if not any(element.name == "file" for element in root.elements()):
        raise DataError("the XLIFF document has no <file> element, so there is nothing to translate")


def _files(root: Element, version: str) -> list[Element]:
    """Return the elements that name languages: the root in version 2."""
    return [root] if version[:1] == "2" else [child for child in root.elements() if child.name == "file"]


def _all_translatable(root: Element, version: str) -> Iterator[Element]:
    for file in _files(root, version):
        yield from _translatable(file)


def _check_languages(file: Element, names: tuple[str, str], languages: Languages, has_targets: bool) -> None:
    """Raise DataError for a file from another language, and for one with translations into another language."""
    source, target = (file.attributes.get(name) for name in names)
    if source and languages.source is not None and not is_same_language(source, languages.source):
        raise DataError(
            f"the document: its texts are in the language {source!r} ({names[0]}), and not in {languages.source!r}: "
            f"use a model for this language, or correct {names[0]}"
        )
    if has_targets and target and languages.target is not None and not is_same_language(target, languages.target):
        raise DataError(
            f"the document: its translations are in the language {target!r} ({names[1]}), and would be mixed with "
            f"translations into {languages.target!r}: delete its targets, or correct {names[1]}"
        )


def _has_copies(file: Element, names: tuple[str, str], languages: Languages) -> bool:
    """Whether the targets of a file are in the language of its sources, and to be translated themselves."""
    source, target = (file.attributes.get(name) for name in names)
    if not source or not target or languages.target is None:
        return False
    return is_same_language(source, target) and not is_same_language(target, languages.target)


def _translatable(file: Element, translates: bool = True) -> Iterator[Element]:
    """Yield the segments of a file that may be translated."""
    for child in file.elements():
        inherited = {"yes": True, "no": False}.get(child.attributes.get("translate", ""), translates)
        if child.name in ("trans-unit", "segment"):
            if inherited:
                yield child
        elif child.name in ("body", "group", "unit", "file"):
            yield from _translatable(child, inherited)


def _is_open(element: Element, target: Element, source: Element) -> bool:
    """Whether a segment with a target is to be translated: its state asks for it, or its target has no words.

    Programs write targets whose elements are all empty.
    """
    state = target.attributes.get("state") or element.attributes.get("state")
    is_empty = not any(True for _ in target.elements()) or _has_words(source)
    return state in _TO_TRANSLATE or (is_empty and not _has_words(target))


def _has_words(element: Element) -> bool:
    """Whether an element has text outside the codes of its original document."""
    return any(
        bool(child.text.strip())
        if isinstance(child, Text)
        else isinstance(child, Element)
        and (any(map(_has_words, child.elements())) if child.name in _NATIVE_CODES else _has_words(child))
        for child in element.children
    )


def _marked_segments(element: Element) -> dict[str, Element]:
    """Return the segments of a unit that translators' tools mark within it, by their numbers."""
    found: dict[str, Element] = {}
    for child in element.elements():
        if child.name == "mrk" and child.attributes.get("mtype") == "seg" and "mid" in child.attributes:
            found[child.attributes["mid"]] = child
        else:
            found |= _marked_segments(child)
    return found


def _is_locked(element: Element) -> bool:
    """Whether a translator's tool (Trados, memoQ, Phrase) locks a segment."""
    states = [value for name, value in element.attributes.items() if name.rpartition("}")[2] == "locked"]
    return any(state in ("true", "locked", "yes") for state in states)


def _locked_segments(element: Element) -> set[str]:
    """Return the numbers of the segments of a unit that Trados locks."""
    definitions = element.first("seg-defs")
    segments = [] if definitions is None else definitions.elements()
    return {each.attributes.get("id", "") for each in segments if _is_locked(each)}


def _open_marks(target: Element, basis: Element, content: Element) -> Iterator[tuple[Element, Element, int | None]]:
    """Yield the marked segments that a target with words lacks, each with its mark, and where a missing one belongs.

    basis: the source with its marks. content: the text to translate, with equal marks.
    """
    marks, sources = _marked_segments(target), _marked_segments(content)
    place = target.inner[0]
    for number, original in _marked_segments(basis).items() if marks else ():
        mark = marks.get(number)
        if number in sources and _has_words(sources[number]) and (mark is None or not _has_words(mark)):
            yield sources[number], original if mark is None else mark, place if mark is None else None
        place = place if mark is None else mark.end


def _with_target_language(tag: str, file: Element, name: str, languages: Languages) -> str:
    present = file.attributes.get(name)
    if languages.target is None or (present and is_same_language(present, languages.target)):
        return tag
    return with_attribute(tag, name, languages.target.replace("_", "-"))


def _target(segment: _Segment, content: str, data: bytes, version: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the changes of the file for a new target, as ((begin, end), replacement)."""
    target, mark = segment.target, segment.mark
    if target is not None and mark is not None:
        tag = data[mark.begin : mark.inner[0] or mark.end].decode()
        opening = re.sub(r"\s*/>\Z", ">", tag)
        written = f"{opening}{content}</{opening[1:].split(None, 1)[0].rstrip('>')}>"
        if segment.place is None:
            yield (mark.begin, mark.end), written
        else:
            is_first = segment.place == target.inner[0]
            yield (segment.place, segment.place), f"{written} " if is_first else f" {written}"
        yield _reviewed(target, data)
        return
    name = _TAG_NAME.match(data, segment.source.begin)
    assert name is not None
    qualified = name[1].decode().removesuffix("source") + "target"
    tag = f"<{qualified}>"
    if target is not None:
        tag = data[target.begin : target.inner[0] or target.end].decode()
        tag = re.sub(r"\s*/>\Z", ">", tag)
    if version == "1":
        tag = with_attribute(tag, "state", "needs-review-translation")
    else:
        element = segment.element
        begin, end = element.begin, element.inner[0]
        yield (begin, end), with_attribute(data[begin:end].decode(), "state", "translated")
    written = f"{tag}{content}</{qualified}>"
    if target is not None:
        yield (target.begin, target.end), written
    else:
        yield (segment.after.end, segment.after.end), _blank_before(segment, data) + written


def _reviewed(target: Element, data: bytes) -> tuple[tuple[int, int], str]:
    """Return the change of a target's start tag (1.2) if only some of its segments are translated."""
    end = target.inner[0]
    tag = data[target.begin : end].decode()
    return (target.begin, end), with_attribute(tag, "state", "needs-review-translation")


def _blank_before(segment: _Segment, data: bytes) -> str:
    """Return the line break and the indentation of a source, with which its target starts too."""
    before: list[str] = []
    for child in segment.element.children:
        if child is segment.source:
            return "".join(before)
        if isinstance(child, Text) and not child.text.strip():
            before.append(data[child.begin : child.end].decode())
        else:
            before = []
    return ""
