"""`TextSets`, the held-out text of a run: the validation sets that it names, or documents of its training corpora."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.log import info
from dragoman.data.cleaning.rules import TextRules
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.documents import VALID, HeldOutDocuments
from dragoman.data.held_out.sets import FOLDER
from dragoman.data.held_out.texts import NO_KEYS, TextKeys
from dragoman.tasks.corpora.config import TextCorporaConfig
from dragoman.tasks.corpora.held_out_text import HeldOutText
from dragoman.training.run.folder import contains_run


@dataclass(frozen=True)
class TextSets:
    """The held-out text of a run.

    corpora, texts: the validation sets, and their documents. folder: where documents are stored that are held out from
    the training corpora. stored: these documents, or None.
    """

    corpora: tuple[TextCorpusConfig, ...]
    texts: Sequence[HeldOutText]
    folder: Path
    stored: HeldOutDocuments | None = None

    @classmethod
    def open(
        cls,
        data: TextCorporaConfig,
        named: Sequence[HeldOutText],
        out: Path,
        *,
        task: str | None = None,
        known: TextKeys = NO_KEYS,
    ) -> "TextSets":
        """Open the sets of a run, and choose documents first if the run is new. named: the sets of the recipe.

        task: name of the task if the run has several, each of which has a folder. known: keys of other tasks, whose
        texts are not chosen. Raises DataError and ConfigError if documents cannot be held out.
        """
        folder = out / FOLDER if task is None else out / FOLDER / task
        if not data.holds_out:
            return cls(data.valid_sets, named, folder)
        stored = HeldOutDocuments.load(folder) if contains_run(out) else None
        if stored is None:
            cleaning = data.cleaning.with_languages(data.language)
            stored = HeldOutDocuments.choose(
                data.corpora,
                data.held_out or HeldOutConfig(),
                lambda corpus: TextRules(cleaning, str(corpus), single_lines=corpus.jsonl is not None),
                only_test=bool(named),
                known=known.all,
            )
        if named:
            return cls(data.valid_sets, named, folder, stored)
        name = f"{len(stored.valid):,} documents held out from {data.corpus_names}"
        corpus = TextCorpusConfig(jsonl=folder / VALID, name=name)
        return cls((corpus,), [HeldOutText(name, list(stored.valid))], folder, stored)

    @property
    def keys(self) -> TextKeys:
        """The keys of the documents that are left out of training."""
        return NO_KEYS if self.stored is None else self.stored.keys

    def complete(self, data: TextCorporaConfig) -> TextCorporaConfig:
        """Return the `data` section with the sizes of the held-out sets instead of null."""
        return data if self.stored is None else data.with_sizes(self.stored.sizes)

    def store(self) -> None:
        """Write the documents that are held out into the folder of the run, and log where they are."""
        if self.stored is not None:
            self.stored.save(self.folder)
            info(f"Held out: {self.stored}, in {self.folder}")
