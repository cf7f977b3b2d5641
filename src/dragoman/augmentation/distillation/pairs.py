"""`TeacherPairs`: a corpus whose targets the teacher writes (Kim & Rush 2016, sections 3.2 and 3.3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.augmentation.backtranslation.filters import FilterConfig
from dragoman.augmentation.backtranslation.synthesis import Line, Synthesis
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.lines import count_lines
from dragoman.data.corpora.readers import read_pairs
from dragoman.tasks.translation.objectives.sequence_reward import sentence_rewards
from dragoman.translation.request import Request
from dragoman.translation.result import Translation


@dataclass(frozen=True)
class TeacherPairs(Synthesis):
    """Pairs of a source and its translation.

    closest: of the hypotheses that the request asks for, the one with the highest sentence BLEU against the corpus's
    own target is taken ("sequence-level interpolation", Kim & Rush 2016, section 3.3), else the most probable one.
    """

    model: Path
    corpus: CorpusConfig
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int
    closest: bool = False

    @property
    def origin(self) -> Path:
        """The corpus's first file."""
        return self.corpus.files[0]

    def read(self) -> Iterator[Line]:
        """Its sources."""
        for pair in read_pairs(self.corpus):
            yield Line(pair.source, pair.target if self.closest else "")

    def count(self) -> int | None:
        """How many sources there are; None where only reading all of it would tell."""
        return None if self.corpus.tmx is not None else count_lines(self.origin)

    def chosen(self, line: Line, translations: Sequence[Translation]) -> Translation:
        """The best, or the closest; of several that are as close the most probable."""
        if not line.reference.strip():
            return translations[0]
        near = sentence_rewards("bleu", [each.text for each in translations], [line.reference] * len(translations))
        return translations[near.index(max(near))]

    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Source, translation."""
        return line.text, translation
