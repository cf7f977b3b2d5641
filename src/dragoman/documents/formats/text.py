"""Plain text as a document: what is translated stands between line ends."""

from collections.abc import Iterator

from dragoman.documents.passage import Passage


def parts_of_text(text: str) -> Iterator[str | Passage]:
    """Each line, with its end."""
    for line in text.splitlines(keepends=True):
        yield Passage(line, line) if any(map(str.isalpha, line)) else line
