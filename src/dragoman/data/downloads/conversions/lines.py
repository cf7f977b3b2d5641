"""Conversions of files that are already texts, line by line."""

import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Literal

from pydantic import Field

from dragoman.data.downloads.conversions.conversion import Conversion, Original, decode, write_lines

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


class SgmlConversion(Conversion):
    """Test sets of WMT in SGML: one line per segment, without markup."""

    kind: Literal["sgml"] = "sgml"
    files: dict[str, str] = Field(description="For each file of the corpus, the file in the archives.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the texts."""
        return tuple(self.files)

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the texts."""
        wanted = {*self.files.values()}
        found = {}
        for original in originals:
            for name, content in original.members("*.sgm"):
                if name.removeprefix("./") in wanted:
                    found[name.removeprefix("./")] = decode(content, f"{name} of {original.address}")
        for file, member in self.files.items():
            if member not in found:
                raise originals[0].changed(f"neither it nor another archive contains {member}")
            segments = _SEGMENT.findall(found[member])
            write_lines((" ".join(unescape(segment).split()) for segment in segments), folder / file)


class TranscodingConversion(Conversion):
    """Texts in an encoding other than UTF-8."""

    kind: Literal["transcoding"] = "transcoding"
    encoding: str = Field(description="Encoding of the downloads.")
    files: tuple[str, ...] = Field(description="Files of the corpus, one per download.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the texts."""
        return self.files

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the texts in UTF-8."""
        for original, name in zip(originals, self.files, strict=True):
            text = original.read_text(self.encoding)
            write_lines(text.removesuffix("\n").split("\n"), folder / name)


class FirstPairsConversion(Conversion):
    """The first pairs of a corpus that have text on both sides."""

    kind: Literal["first_pairs"] = "first_pairs"
    count: int = Field(gt=0, description="Number of pairs.")
    files: dict[str, str] = Field(description="For both files of the corpus, the file in the archive.")

    def names(self) -> tuple[str, ...]:
        """Return the names of both sides."""
        return tuple(self.files)

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write both sides."""
        # Few lines are empty, so that twice as many are enough, and millions are not read.
        sides = [originals[0].first_lines(member, 2 * self.count) for member in self.files.values()]
        pairs = [pair for pair in zip(*sides, strict=False) if all(pair)][: self.count]
        if len(pairs) < self.count:
            raise originals[0].changed(f"it has only {len(pairs):,} pairs")
        for side, name in enumerate(self.files):
            write_lines((pair[side] for pair in pairs), folder / name)


class JoiningConversion(Conversion):
    """One file from all files of an archive that match a pattern, in the order of their names."""

    kind: Literal["joining"] = "joining"
    file: str = Field(description="File of the corpus.")
    pattern: str = Field(description="Pattern of the files in the archive.")

    def names(self) -> tuple[str, ...]:
        """Return the name of the file."""
        return (self.file,)

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the file."""
        members = sorted(member for member in originals[0].members(self.pattern) if "__MACOSX" not in member[0])
        if not members:
            raise originals[0].changed(f"it does not contain {self.pattern}")
        texts = (decode(content, f"{name} of {originals[0].address}") for name, content in members)
        write_lines((line for text in texts for line in text.removesuffix("\n").split("\n")), folder / self.file)
