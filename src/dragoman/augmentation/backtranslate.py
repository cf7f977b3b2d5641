"""`backtranslate`: makes synthetic training pairs from text of the target language (Sennrich et al. 2016).

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
    """Pairs of a translation as the source and the line as the target. text: a file of sentences."""

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
        """Yield its lines."""
        return map(Line, open_lines(self.text))

    def count(self) -> int:
        """Return their number."""
        return count_lines(self.text)

    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Return translation and line."""
        return translation, line.text


def check(text: Path, output: Path) -> None:
    """Check the files before a model is loaded. Raises ConfigError and DataError."""
    if text.exists() and not text.is_file():
        raise DataError(f"{text} is not a regular file; it is read again after a kill, so store it in a file first")
    if next(open_lines(text), None) is None:
        raise DataError(f"{text} is empty; give a file with at least one line")
    if not output.parent.is_dir():
        raise ConfigError(f"there is no folder {output.parent} for the output; make it first")
    if output.exists() and not work_folder(output).exists():
        raise exists(output)


BEAM_MIN_SCORE = -1.5
"""Nats per token: the default minimum score of translations found by beam search."""

COPIED_SHARE = 0.2
"""Of the lines. If more translations copy their line, the model may be of the other direction."""

TAG = "bt"
"""The tag of synthetic sources (Caswell et al. 2019)."""


@dataclass(frozen=True)
class SyntheticPairs:
    """path: a file of synthetic source TAB line. counts: number of lines by rule. language: of the lines, if known."""

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
        """The entry for `data.train` of a recipe."""
        return {"tsv": str(self.path), "tags": [TAG]}

    def recipe(self) -> str:
        """Return the entry as YAML, in a list of corpora."""
        language = self.language
        several = (
            ""
            if language is None
            else f"    # target_language: {language}   (where one model writes several languages)\n"
        )
        return (
            f"# A recipe's list of corpora with these pairs; weight them, or give data.temperature, as you like.\n"
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
    """Translate a text with a model of the reverse direction to get its sources, as `dragoman backtranslate` does.

    model: a folder of a model that reads the text's language. text, output: files, plain or compressed. A call that was
    stopped goes on when it is made again. language: of the text, to be checked against the one that the model reads.
    sampling: draw translations instead of searching them. filters: settings of `FilterConfig`, which says what they
    are; `min_score` is -1.5 where translations are searched, unless it is given. The others are as in
    `Translator.request` and `Translator.load`.

    Raises ConfigError for settings that make no sense, for a model of the wrong direction and for work that was begun
    otherwise, DataError for a text that cannot be read, and what `Translator` raises.
    """
    use_threads(threads)
    model, text, output = Path(model), Path(text), Path(output)
    usual = {"min_score": BEAM_MIN_SCORE} if sampling is None else {}
    rules = parse_settings({**usual, **(filters or {})}, FilterConfig, "filters")
    check(text, output)
    with quietly(quiet):
        translator = Translator.load(model, device, threads=threads)
        translator.report_cut = False  # they are counted
        _check_direction(translator, language)
        request = translator.request(beam=beam, length_penalty=length_penalty, sampling=sampling, to=to, tags=tags)
        counts = BackTranslation(model, text, output, request, rules, batch_size).run(translator)
        found = SyntheticPairs(output, counts, language or translator.meta.source_language)
        _warn(found)
        return found


def _check_direction(translator: Translator, language: str | None) -> None:
    """Raise ConfigError if the text is not in the language that the model reads."""
    reads, writes = translator.meta.source_language, translator.meta.target_language
    if translator.tokenizers.reads_vectors:
        raise ConfigError("this model reads feature vectors, no text: back-translation needs one that reads text")
    if language is not None and reads is not None and language != reads:
        raise ConfigError(
            f"the text is in {language!r}, but the model reads {reads!r}: back-translation needs a model of the other "
            f"direction, one that reads {language!r}"
        )
    if reads is not None:
        info(f"The model reads {reads}{f' and writes {writes}' if writes else ''}: the text must be in {reads}.")


def _warn(found: SyntheticPairs) -> None:
    """Warn of suspicious counts."""
    if found.counts.get("copied", 0) > COPIED_SHARE * found.lines:
        warn("Many translations repeat their line: is this a model of the reverse direction? It must read the text.")
    if not found.kept:
        warn(
            f"{found.path} is empty: no pair was kept. The rules are options; `dragoman backtranslate --help` lists "
            "them."
        )
