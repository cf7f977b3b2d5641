"""What a guard found in lines, told of with what else had to be done about lines."""

from collections.abc import Iterable, Iterator

from dragoman.translation.files.noted_lines import NotedLines
from dragoman.translation.result import Translation


def guarded_lines(found: Iterable[list[Translation]], first: int, noted: NotedLines) -> Iterator[list[Translation]]:
    """Gives `found`, the translations of each line, and notes each kind of what was wrong with a line's best one.

    first: the number of the first line.
    """
    for line, translations in enumerate(found, start=first):
        guarded = translations[0].guarded
        if guarded is not None:
            for what, mended in guarded.outcomes().items():
                noted.note(f"{what}: {'mended by another search' if mended else 'no other search mended them'}", line)
        yield translations
