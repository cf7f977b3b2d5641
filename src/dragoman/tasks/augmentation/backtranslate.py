"""`backtranslate`: generates synthetic training pairs from monolingual target-language text (Sennrich et al. 2016).

If there is enough parallel text, sampling from all tokens or from the k most likely tokens provides a stronger training
signal than beam search (Edunov et al. 2018). Synthetic sources are tagged (Caswell et al. 2019).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.journal import work_folder
from dragoman.base.log import info, quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides, load_settings
from dragoman.checkpoint.systems import NEURAL
from dragoman.data.files.lines import count_lines, open_lines
from dragoman.decode.decoding import Sampling
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.request import Request
from dragoman.tasks.augmentation.filters import FilterConfig
from dragoman.tasks.augmentation.synthesis import KEPT, LINES, Line, Synthesis, format_counts, output_exists
from dragoman.text.languages.codes import is_same_language


@dataclass(frozen=True)
class BackTranslation(Synthesis):
    """Generates back-translated pairs, whose source is the translation of a line and whose target is the line.

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
        """Return the translation as the source and the line as the target."""
        return translation, line.text


def check(text: Path, output: Path) -> None:
    """Check the files before a model is loaded.

    Raises DataError if `text` is empty, unreadable or not a regular file, and ConfigError if `output` already exists or
    its folder does not exist.
    """
    if text.exists() and not text.is_file():
        raise DataError(f"{text} is not a regular file: save it to a file first, so that an interrupted run can resume")
    if next(open_lines(text), None) is None:
        raise DataError(f"{text} is empty: choose a file with at least one line")
    if not output.parent.is_dir():
        raise ConfigError(f"the output folder {output.parent} does not exist: create it first")
    if output.exists() and not work_folder(output).exists():
        raise output_exists(output)


BEAM_MIN_SCORE = -1.5
"""Default minimum score of translations from beam search, in nats per token."""

COPIED_SHARE = 0.2
"""If more than this fraction of the translations repeat their line, a warning suggests that the direction is wrong."""

TAG = "bt"
"""The tag of synthetic sources (Caswell et al. 2019)."""


@dataclass(frozen=True)
class SyntheticPairs:
    """Result of `backtranslate`.

    path: a file with the synthetic source, a tab and the target in each line. counts: numbers of lines that were read,
    kept, and dropped by each rule. language: language of the targets, if known.
    """

    path: Path
    counts: Mapping[str, int]
    language: str | None

    @property
    def lines(self) -> int:
        """Number of lines read."""
        return self.counts.get(LINES, 0)

    @property
    def kept(self) -> int:
        """Number of pairs in the file."""
        return self.counts.get(KEPT, 0)

    @property
    def corpus(self) -> dict[str, Any]:
        """Entry for these pairs in the `data.train` list of a recipe."""
        return {"pairs": str(self.path), "tags": [TAG]}

    def recipe(self) -> str:
        """Return a YAML snippet of a recipe whose `data.train` list contains this entry."""
        language = self.language
        language_line = (
            ""
            if language is None
            else f"    # target_language: {language}   (if the model has several target languages)\n"
        )
        return (
            f"# Add these pairs to the corpora of a recipe; set weights or data.temperature to balance them.\n"
            f"data:\n  train:\n  - source: …\n    target: …\n{language_line}"
            f"  - pairs: {json.dumps(str(self.path), ensure_ascii=False)}\n    tags: [{TAG}]"
        )

    def __str__(self) -> str:
        return format_counts(self.counts)


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
    divide: bool = True,
    filters: Overrides = (),
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> SyntheticPairs:
    """Generate source sentences for target-language text with a reverse model, as `dragoman backtranslate` does.

    model: folder of a model whose source language is the language of the text. text, output: files, which may be
    compressed. language: language of the text, which is compared with the model's source language. sampling: how to
    sample translations; None for beam search. filters: settings of `FilterConfig`; `min_score` defaults to -1.5 for
    beam search. For the other arguments, see `Translator.request` and `Translator.load`. To resume an interrupted call,
    repeat it.

    Raises ConfigError for invalid settings, for a model of the wrong direction, and if the interrupted call had
    different settings or a different text; DataError if the text cannot be read; and all errors of `Translator`.

    >>> from dragoman import backtranslate
    >>> pairs = backtranslate("runs/ende", "test.en", "synthetic.tsv", beam=1, filters={"max_ratio": None})
    >>> pairs.kept <= pairs.lines
    True
    """
    use_threads(threads)
    model, text, output = Path(model), Path(text), Path(output)
    defaults = {"min_score": BEAM_MIN_SCORE} if sampling is None else {}
    rules = load_settings(defaults, filters, FilterConfig)
    check(text, output)
    with quietly(quiet):
        # The filters need probabilities of translations, which statistical models do not compute.
        translator = translator_of(model, device, precision=None, threads=threads, system=NEURAL)
        translator.warn_unfinished = False  # the filters count truncated translations
        _check_direction(translator, language)
        request = translator.request(
            beam=beam, length_penalty=length_penalty, sampling=sampling, to=to, tags=tags, divide=divide
        )
        counts = BackTranslation(model, text, output, request, rules, batch_size).run(translator)
        result = SyntheticPairs(output, counts, language or translator.meta.source_language)
        _warn(result)
        return result


def _check_direction(translator: SupportsLines, language: str | None) -> None:
    """Raise ConfigError if the language of the text is not the model's source language."""
    source, target = translator.meta.source_language, translator.meta.target_language
    if translator.tokenizers.reads_vectors:
        raise ConfigError("this model translates feature vectors: back-translation needs a model that translates text")
    if language is not None and source is not None and not is_same_language(language, source):
        raise ConfigError(
            f"the text is in {language!r}, but the model translates from {source!r}: back-translation needs a model of "
            f"the reverse direction, which translates from {language!r}"
        )
    if source is not None:
        into = f" into {target}" if target else ""
        info(f"The model translates from {source}{into}: the text must be in {source}.")


def _warn(result: SyntheticPairs) -> None:
    """Warn if many translations repeat their line or no pair was kept."""
    if result.counts.get("copied", 0) > COPIED_SHARE * result.lines:
        warn("Many translations repeat their line. Check that the model translates from the language of the text.")
    if not result.kept:
        warn(
            f"{result.path} is empty because no pair was kept. `dragoman backtranslate --help` lists the options that "
            "change the filters."
        )
