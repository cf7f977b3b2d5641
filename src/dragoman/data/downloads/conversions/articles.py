"""The trees of the CRAFT corpus, in its official division by article."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from dragoman.data.downloads.conversions.conversion import Conversion, Original, decode, write_lines

_FOLDER = "*/structural-annotation/treebank/penn"
_SETS = "*/articles/ids/craft-ids-"


class ArticlesConversion(Conversion):
    """Trees in brackets, one per line, article after article, in the sets of the shared task of 2019."""

    kind: Literal["articles"] = "articles"

    def names(self) -> tuple[str, ...]:
        """Return the names of the sets."""
        return ("train.mrg.xz", "dev.mrg.xz", "test.mrg.xz")

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the sets."""
        (archive,) = originals
        trees = {PurePosixPath(name).stem: (name, content) for name, content in archive.members(f"{_FOLDER}/*.tree")}
        for name in self.names():
            lines: list[str] = []
            for article in archive.member(f"{_SETS}{name.removesuffix('.mrg.xz')}.txt").split():
                if article not in trees:
                    raise archive.changed(f"it has no trees of article {article}")
                member, content = trees[article]
                lines += _one_per_line(decode(content, f"{member} of {archive.address}"))
            write_lines(lines, folder / name)


def _one_per_line(text: str) -> Iterator[str]:
    """Yield trees without their line breaks."""
    depth, parts = 0, []
    for line in text.split("\n"):
        if line.strip():
            depth += line.count("(") - line.count(")")
            parts.append(line.strip())
            if depth == 0:
                yield " ".join(parts)
                parts = []
