"""The Universal Declaration of Human Rights as sentence pairs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, ParseError, fromstring

from pydantic import Field

from dragoman.data.downloads.conversions.conversion import Conversion, Original, write_lines


class DeclarationConversion(Conversion):
    """English with other languages: one file per language, with paragraph TAB paragraph.

    Articles come first, then the preamble. A part of the declaration is left out if a translation divides it into
    another number of paragraphs.
    """

    kind: Literal["declaration"] = "declaration"
    languages: tuple[str, ...] = Field(description="Keys of the translations.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(f"en-{language}.tsv.gz" for language in self.languages)

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the files."""
        (archive,) = originals
        english = _parts(archive, "eng")
        for language, name in zip(self.languages, self.names(), strict=True):
            translated = _parts(archive, language)
            pairs = [
                f"{first}\t{second}"
                for key, paragraphs in english.items()
                if len(translated.get(key, [])) == len(paragraphs)
                for first, second in zip(paragraphs, translated[key], strict=True)
            ]
            if not pairs:
                raise archive.changed(f"no article of {language} has the paragraphs of the English text")
            write_lines(pairs, folder / name)


def _parts(archive: Original, language: str) -> dict[str, list[str]]:
    """Return the paragraphs of all articles by number, and of the preamble."""
    name = f"udhr_{language}.xml"
    text = archive.member(f"*{name}")
    if "<!DOCTYPE" in text:
        raise archive.changed(f"{name} declares entities")
    try:
        root = fromstring(text.encode())
    except ParseError as error:
        raise archive.changed(f"{name} is not XML ({error})") from None
    found = {element.get("number", ""): list(_paragraphs(element)) for element in root.iterfind("{*}article")}
    articles = {number: found[number] for number in sorted(filter(str.isdigit, found), key=int)}
    return articles | {"preamble": [line for each in root.iterfind("{*}preamble") for line in _paragraphs(each)]}


def _paragraphs(part: Element) -> Iterator[str]:
    for element in part.iter():
        if element.tag.rpartition("}")[2] == "para" and (text := " ".join("".join(element.itertext()).split())):
            yield text
