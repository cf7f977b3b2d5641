"""Back-translation: text of the target language becomes pairs whose source a reverse model wrote (Sennrich et al. 2016)

Sampling, plain or among the k likeliest, gives a stronger training signal than beam search where there is enough
parallel text (Edunov et al. 2018); the tag of synthetic sources is of Caswell et al. 2019.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.backtranslation.filters import FilterConfig, Judged, broken_rule, unusable
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info
from dragoman.base.output.journal import OutputJournal, work_folder
from dragoman.base.output.members import member_writer
from dragoman.checkpoint.fingerprint import fingerprint
from dragoman.data.corpora.lines import has_broken_utf8, open_lines
from dragoman.translation.request import Request
from dragoman.translator import WINDOW_BATCHES, Translator

KEPT, LINES = "kept", "lines"


@dataclass(frozen=True)
class Task:
    """What to do: the text, where the pairs go, how to translate and which pairs stay.

    model: the translator's folder.
    """

    model: Path
    text: Path
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int = 64

    @property
    def window(self) -> int:
        """Lines between two commits."""
        return WINDOW_BATCHES * self.batch_size

    def settings(self) -> dict[str, Any]:
        """All that the output depends on beside the text, as plain values."""
        return {
            "model": fingerprint(self.model),
            "request": self.request.settings(),
            "filters": self.filters.model_dump(mode="json"),
            "batch_size": self.batch_size,
        }


def check(text: Path, output: Path) -> None:
    """Look at the files before a model is loaded. Raises ConfigError and DataError for what cannot go well."""
    if text.exists() and not text.is_file():
        raise DataError(f"{text} is no regular file; it is read again after a kill, so store it in a file first")
    if next(open_lines(text), None) is None:
        raise DataError(f"{text} is empty; give a file with at least one line")
    if not output.parent.is_dir():
        raise ConfigError(f"there is no folder {output.parent} for the output; make it first")
    if output.exists() and not work_folder(output).exists():
        raise _exists(output)


def backtranslate(
    task: Task, translator: Translator, tell: Callable[[Counter[str]], None] | None = None
) -> Counter[str]:
    """Write the pairs of `task`, going on where a killed run has stopped; gives what became of the lines, by rule.

    Output is source TAB target, in the order of the lines. tell: called after every window. Memory does not grow with
    the text; digests of its lines, against duplicates, lie on disk until the end. Raises ConfigError where the folder
    beside the output was begun with another text or other settings, and the errors of reading and translating.
    """
    compress = member_writer(task.output)
    with OutputJournal(task.output, task.settings()) as journal:
        if task.output.exists() and not journal.finished:
            raise _exists(task.output)
        if journal.kept:
            info(f"Going on after line {journal.kept:,} of {task.text}.")
        lines = journal.follow("text", open_lines(task.text), task.text)
        while not journal.finished:
            window = list(islice(lines, task.window))
            pairs, counts = _pairs(window, journal, task, translator)
            text = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
            last = len(window) < task.window
            # an empty file of no members would be none of its format
            data = compress(text) if text or (last and journal.counts[KEPT] == 0) else b""
            journal.write(len(window), data, counts)
            journal.commit(finished=last)
            if tell is not None:
                tell(journal.counts)
        counts = Counter(journal.counts)
    journal.publish()
    return counts


def _pairs(
    window: Sequence[str], journal: OutputJournal, task: Task, translator: Translator
) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The pairs that stay, and what became of the lines."""
    counts: Counter[str] = Counter({LINES: len(window)})
    texts = list(_readable(window, counts, task.filters))
    if task.filters.duplicates:
        texts = list(_first_ones(texts, journal, counts))
    texts = list(_short_enough(texts, counts, task, translator))
    found = translator.translate_window(texts, task.request, task.batch_size, journal.lines + 1)
    pairs = []
    for line, (best, *_) in zip(texts, found, strict=True):
        judged = Judged(line, best.text, best.finished, best.log_probability / (len(best.tokens) + 1))
        rule = broken_rule(judged, task.filters)
        counts[rule or KEPT] += 1
        if rule is None:
            pairs.append((best.text, line))
    return pairs, counts


def _readable(lines: Sequence[str], counts: Counter[str], filters: FilterConfig) -> Iterator[str]:
    for line in lines:
        if has_broken_utf8(line):
            counts["broken_utf8"] += 1
        elif unusable(line):
            counts["control_characters"] += 1
        elif filters.empty and not line.strip():
            counts["empty"] += 1
        else:
            yield line


def _first_ones(lines: Sequence[str], journal: OutputJournal, counts: Counter[str]) -> Iterator[str]:
    for line, new in zip(lines, journal.new(lines), strict=True):
        if new:
            yield line
        else:
            counts["duplicates"] += 1


def _short_enough(lines: Sequence[str], counts: Counter[str], task: Task, translator: Translator) -> Iterator[str]:
    most = [translator.engine.limits.source.tokens, task.filters.max_tokens]
    limit = min((number - len(task.request.tags) for number in most if number is not None), default=None)
    for line, ids in zip(lines, translator.tokenizers.source.encode_batch(lines), strict=True):
        if limit is not None and len(ids) > limit:
            counts["max_tokens"] += 1
        else:
            yield line


def _exists(output: Path) -> ConfigError:
    return ConfigError(f"{output} exists already: choose another --output, or delete it first")
