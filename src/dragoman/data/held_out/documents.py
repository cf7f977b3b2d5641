"""`HeldOutDocuments`: the validation and test texts that were held out from plain text, in JSON Lines."""

import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.progress import Progress
from dragoman.data.cleaning.rules import TextRules
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.documents import read_passages, read_texts
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.texts import RankedTexts, TextKeys

VALID, TEST = "valid.documents.jsonl", "test.documents.jsonl"


@dataclass(frozen=True)
class HeldOutDocuments:
    """The documents of a validation and a test set. Either can be empty, if the recipe names that set."""

    valid: tuple[str, ...]
    test: tuple[str, ...]

    @classmethod
    def choose(
        cls,
        corpora: Sequence[TextCorpusConfig],
        config: HeldOutConfig,
        rules: Callable[[TextCorpusConfig], TextRules],
        *,
        only_test: bool = False,
        known: Container[int] = frozenset(),
    ) -> "HeldOutDocuments":
        """Choose documents by their text, as cleaning repairs them. Blank and dropped ones are not chosen.

        rules: returns the cleaning rules of a corpus. only_test: whether only a test set is needed. known: keys of
        texts that are not chosen. Raises DataError if the corpora cannot be read or are too small, and ConfigError as
        `HeldOutConfig.sizes` does.
        """
        most, count = sum(config.sizes(10**9, "", "documents")), 0
        ranked = RankedTexts(most, config.seed)
        with Progress("Holding out documents", "documents") as progress:
            for corpus in corpora:
                checks = rules(corpus)
                for passage in read_passages(corpus):
                    if passage.begins and passage.ends and (checked := checks.check(passage)).rule is None:
                        text = checked.item.text
                        if text.strip() and (key := sentence_key(text)) not in known:
                            ranked.add(key, text)
                            count += 1
                    progress.update(progress.done + passage.ends)
        sizes = config.sizes(count, ", ".join(map(str, corpora)), "documents")
        return cls(*ranked.choose(Sizes(0 if only_test else sizes.valid, sizes.test)))

    @classmethod
    def load(cls, folder: Path) -> "HeldOutDocuments | None":
        """Read the sets in a folder; None if there are none. Raises DataError if a file is damaged."""
        if not (folder / TEST).is_file():
            return None
        valid = (folder / VALID).is_file()
        read = [tuple(read_texts(TextCorpusConfig(jsonl=folder / name))) for name in (VALID, TEST)[not valid :]]
        return cls(*read) if valid else cls((), *read)

    def save(self, folder: Path) -> None:
        """Write the sets into a folder, unless it has them."""
        folder.mkdir(exist_ok=True, parents=True)
        for name, texts in ((VALID, self.valid), (TEST, self.test)):
            if texts and not (folder / name).exists():
                lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
                (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @property
    def sizes(self) -> Sizes:
        """The numbers of documents."""
        return Sizes(len(self.valid), len(self.test))

    @property
    def keys(self) -> TextKeys:
        """The keys of the documents of both sets, which must not be in the training text."""
        return TextKeys(*(frozenset(map(sentence_key, texts)) for texts in (self.valid, self.test)))

    def __str__(self) -> str:
        parts = ((len(self.valid), "validation"), (len(self.test), "testing"))
        return ", ".join(f"{count:,} documents for {name}" for count, name in parts if count)
