"""`PairSetsConfig`, settings of held-out sentence pairs, and `PairSets`, the sets that a run holds out."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from dragoman.base.log import info
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import Corpora, CorpusConfig
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.sets import FOLDER, HeldOutSets, HeldOutUnit, hold_out, left_out_keys
from dragoman.statistical.alignment.pair_scoring import pair_scoring
from dragoman.tasks.corpora.held_out_setting import HeldOutSetting
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.training.run.folder import contains_run


class PairSetsConfig(HeldOutSetting):
    """Base class of `data` sections of tasks that learn from sentence pairs. Subclasses list the sets."""

    held_out_unit: ClassVar[HeldOutUnit] = "sentences"

    if TYPE_CHECKING:
        cleaning: CleaningConfig
        source_language: str | None
        target_language: str | None

        @property
        def corpora(self) -> tuple[CorpusConfig, ...]:
            """The training corpora."""

        @property
        def valid_sets(self) -> tuple[CorpusConfig, ...]:
            """The validation sets that are named."""

    train: Corpora = Field(description="Training pairs: one corpus, or a list of corpora.")
    valid: Corpora | None = Field(
        None,
        description="Held-out pairs for validation, which determine early stopping and checkpoint selection: one set, "
        "or a list of sets over which the metrics are averaged; null: pairs that are held out from `train`.",
    )
    test: Corpora | None = Field(
        None,
        description="Test set, which `dragoman evaluate` scores without further arguments: one corpus, or a list of "
        "corpora; null: the test set that is held out, if any.",
    )

    @property
    def test_sets(self) -> tuple[CorpusConfig, ...]:
        """The test sets that are named."""
        return self.test if isinstance(self.test, tuple) else () if self.test is None else (self.test,)

    def cleaning_of(self, corpus: CorpusConfig) -> CleaningConfig:
        """Return the cleaning rules of a corpus."""
        return self.cleaning.with_languages(*corpus.languages(self.source_language, self.target_language))


@dataclass(frozen=True)
class PairSets:
    """The held-out sets of a run.

    valid: the validation sets, named or held out. stored: the sets that are held out from the training corpora, or
    None. keys: sentences that are left out of training, or None.
    """

    valid: tuple[CorpusConfig, ...]
    stored: HeldOutSets | None = None
    keys: SentenceKeys | None = None

    @classmethod
    def open(cls, data: PairSetsConfig, out: Path) -> "PairSets":
        """Open the sets of a run, and select them first if the run is new. out: folder of the run.

        Raises DataError and ConfigError if pairs cannot be held out.
        """
        stored = None
        if data.holds_out:
            stored = HeldOutSets.load(out / FOLDER) if contains_run(out) else None
        if data.holds_out and stored is None:
            stored = hold_out(
                data.corpora,
                data.held_out or HeldOutConfig(),
                data.cleaning_of,
                prepared_folder(out),
                named=(data.valid_sets, data.test_sets),
                scoring=pair_scoring(data.cleaning),
                unit=data.held_out_unit,
            )
        excluded = [] if stored is None else [*stored.valid, *stored.test]
        if data.cleaning.held_out:
            excluded += [*data.valid_sets, *data.test_sets]
        valid = data.valid_sets or (() if stored is None else stored.valid)
        return cls(valid, stored, left_out_keys(excluded, data.held_out_unit) if excluded else None)

    def complete(self, data: Any) -> Any:
        """Return the `data` section with the numbers of held-out pairs instead of null."""
        if self.stored is None:
            return data
        return data.with_sizes(self.stored.sizes)

    def report(self, reports: Iterable[CleaningReport]) -> None:
        """Log how many pairs are left out of training because they share a sentence with held-out pairs."""
        held_out = 0 if self.stored is None else sum(self.stored.sizes)
        alike = sum(each.counts.get("held_out", 0) for each in reports) - held_out
        if alike > 0:
            info(
                f"{alike:,} other pairs are left out of training, because their source or target is also held out, "
                "apart from case, punctuation, spaces and numbers."
            )

    def store(self, out: Path) -> None:
        """Copy the sets that are held out into the folder of the run, and log where they are."""
        if self.stored is not None:
            info(f"Held out: {self.stored.copy(out / FOLDER)}")
