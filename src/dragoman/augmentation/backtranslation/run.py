"""Back-translation: text of the target language becomes pairs whose source a reverse model wrote (Sennrich et al. 2016)

Sampling, plain or among the k likeliest, gives a stronger training signal than beam search where there is enough
parallel text (Edunov et al. 2018); the tag of synthetic sources is of Caswell et al. 2019.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.augmentation.backtranslation.filters import FilterConfig
from dragoman.augmentation.backtranslation.synthesis import Line, Synthesis, exists
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.journal import work_folder
from dragoman.data.corpora.lines import count_lines, open_lines
from dragoman.translation.request import Request


@dataclass(frozen=True)
class BackTranslation(Synthesis):
    """Pairs of a translation, the source, and the line itself, the target. text: a file of sentences."""

    model: Path
    text: Path
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int = 64

    @property
    def origin(self) -> Path:
        """The file."""
        return self.text

    def read(self) -> Iterator[Line]:
        """Its lines."""
        return map(Line, open_lines(self.text))

    def count(self) -> int:
        """How many there are."""
        return count_lines(self.text)

    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Translation, line."""
        return translation, line.text


def check(text: Path, output: Path) -> None:
    """Look at the files before a model is loaded. Raises ConfigError and DataError for what cannot go well."""
    if text.exists() and not text.is_file():
        raise DataError(f"{text} is no regular file; it is read again after a kill, so store it in a file first")
    if next(open_lines(text), None) is None:
        raise DataError(f"{text} is empty; give a file with at least one line")
    if not output.parent.is_dir():
        raise ConfigError(f"there is no folder {output.parent} for the output; make it first")
    if output.exists() and not work_folder(output).exists():
        raise exists(output)
