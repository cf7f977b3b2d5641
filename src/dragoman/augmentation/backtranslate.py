"""`backtranslate`: makes synthetic training pairs from monolingual target-language text (Sennrich et al. 2016).

Sampling, plain or among the k most likely tokens, gives a stronger training signal than beam search if there is enough
parallel text (Edunov et al. 2018). Synthetic sources are tagged (Caswell et al. 2019).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.augmentation.filters import FilterConfig
from dragoman.augmentation.synthesis import KEPT, LINES, Line, Synthesis, account, exists
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.journal import work_folder
from dragoman.base.log import info, quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import parse_settings
from dragoman.data.corpora.lines import count_lines, open_lines
from dragoman.translation.request import Request, Sampling
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class BackTranslation(Synthesis):
    """Back-translated pairs: the translation of a line is the source, the line itself is the target.

    text: a file with one target-language sentence per line.
    """

    model: Path
    text: Path
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int = 64

    @property
    def origin(self) -> Path:
        """The text file."""
        return self.text

    def read(self) -> Iterator[Line]:
        """Yield the lines of the text file."""
        return map(Line, open_lines(self.text))

    def count(self) -> int:
        """Return the number of lines."""
        return count_lines(self.text)

    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Return the translation, which is the source, and the line, which is the target."""
        return translation, line.text


def check(text: Path, output: Path) -> None:
    """Check the files before a model is loaded.

    Raises DataError if the text is empty, unreadable or not a regular file, and ConfigError if the output exists or its
    folder does not.
    """
    if text.exists() and not text.is_file():
        raise DataError(f"{text} is not a regular file; save it to a file first, so that a killed run can be resumed")
    if next(open_lines(text), None) is None:
        raise DataError(f"{text} is empty; give a file with at least one line")
    if not output.parent.is_dir():
        raise ConfigError(f"the output folder {output.parent} does not exist; create it first")
    if output.exists() and not work_folder(output).exists():
        raise exists(output)


BEAM_MIN_SCORE = -1.5
"""Default minimum score of translations found by beam search, in nats per token."""

COPIED_SHARE = 0.2
"""If more than this share of the translations copy their line, the model may translate in the wrong direction."""

TAG = "bt"
"""The tag of synthetic sources (Caswell et al. 2019)."""


@dataclass(frozen=True)
class SyntheticPairs:
    """Result of `backtranslate`.

    path: a file with lines of synthetic source TAB target. counts: numbers of lines read, kept, and dropped by each
    rule. language: the language of the targets, if known.
    """

    path: Path
    counts: Mapping[str, int]
    language: str | None

    @property
    def lines(self) -> int:
        """The number of lines read."""
        return self.counts.get(LINES, 0)

    @property
    def kept(self) -> int:
        """The number of pairs in the file."""
        return self.counts.get(KEPT, 0)

    @property
    def corpus(self) -> dict[str, Any]:
        """The entry for these pairs in a recipe's `data.train`."""
        return {"tsv": str(self.path), "tags": [TAG]}

    def recipe(self) -> str:
        """Return a YAML snippet of a recipe that contains this entry in its list of corpora."""
        language = self.language
        several = (
            ""
            if language is None
            else f"    # target_language: {language}   (if the model has several target languages)\n"
        )
        return (
            f"# Add these pairs to the corpora of a recipe; set weights or data.temperature to balance them.\n"
            f"data:\n  train:\n  - source: …\n    target: …\n{several}"
            f"  - tsv: {json.dumps(str(self.path), ensure_ascii=False)}\n    tags: [{TAG}]"
        )

    def __str__(self) -> str:
        return account(self.counts)


def backtranslate(
    model: str | Path,
    text: str | Path,
    output: str | Path,
    *,
    language: str | None = None,
    sampling: Sampling | None = None,
    beam: int | None = None,
    length_penalty: float | str | None = None,
    to: str | None = None,
    tags: Iterable[str] = (),
    filters: Mapping[str, Any] | None = None,
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> SyntheticPairs:
    """Generate source sentences for target-language text with a reverse model, as `dragoman backtranslate` does.

    model: folder of a model whose source language is that of the text. text, output: files, plain or compressed.
    Repeating an interrupted call resumes it. language: language of the text, checked against the model's source
    language. sampling: sample translations instead of using beam search. filters: settings of `FilterConfig`;
    `min_score` defaults to -1.5 for beam search. Other arguments are those of `Translator.request` and
    `Translator.load`.

    Raises ConfigError for invalid settings, for a model of the wrong direction, and if the interrupted call had other
    settings or another text; DataError if the text cannot be read; and all errors of `Translator`.
    """
    use_threads(threads)
    model, text, output = Path(model), Path(text), Path(output)
    defaults = {"min_score": BEAM_MIN_SCORE} if sampling is None else {}
    rules = parse_settings({**defaults, **(filters or {})}, FilterConfig, "filters")
    check(text, output)
    with quietly(quiet):
        translator = Translator.load(model, device, threads=threads)
        translator.report_cut = False  # the filters count truncated translations
        _check_direction(translator, language)
        request = translator.request(beam=beam, length_penalty=length_penalty, sampling=sampling, to=to, tags=tags)
        counts = BackTranslation(model, text, output, request, rules, batch_size).run(translator)
        result = SyntheticPairs(output, counts, language or translator.meta.source_language)
        _warn(result)
        return result


def _check_direction(translator: Translator, language: str | None) -> None:
    """Raise ConfigError if the text is not in the language that the model reads."""
    reads, writes = translator.meta.source_language, translator.meta.target_language
    if translator.tokenizers.reads_vectors:
        raise ConfigError("this model reads feature vectors; back-translation needs a model that reads text")
    if language is not None and reads is not None and language != reads:
        raise ConfigError(
            f"the text is in {language!r}, but the model reads {reads!r}: back-translation needs a model of the "
            f"reverse direction, which reads {language!r}"
        )
    if reads is not None:
        info(f"The model reads {reads}{f' and writes {writes}' if writes else ''}: the text must be in {reads}.")


def _warn(result: SyntheticPairs) -> None:
    """Warn about suspicious counts."""
    if result.counts.get("copied", 0) > COPIED_SHARE * result.lines:
        warn("Many translations repeat their line: is this a model of the reverse direction? It must read the text.")
    if not result.kept:
        warn(
            f"{result.path} is empty: no pair was kept. `dragoman backtranslate --help` lists the options that change "
            "the filters."
        )
