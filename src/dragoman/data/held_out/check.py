"""Checks of validation sets against the training corpora: overlap, languages, order of the sides, and sizes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.base.log import info, warn
from dragoman.base.progress import Progress
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.files.lines import has_broken_utf8
from dragoman.data.held_out.association import Association, features
from dragoman.data.held_out.mixed import MixedSidesDetector
from dragoman.data.held_out.overlap import OverlapCounter
from dragoman.data.held_out.shifts import ShiftDetector
from dragoman.data.held_out.sides import Sides
from dragoman.text.languages.detector import Detector, release_model
from dragoman.text.scripts import dominant_system, main_script, script_name

FEW_PAIRS, FEW_WORDS, FEW_EXAMPLES = 1000, 10_000, 20
"""Numbers of training pairs, words and labelled examples below which a corpus is questioned."""

_SAMPLE = 2000
"""Maximum number of texts of a corpus whose language is determined."""

_SAMPLE_EVERY = 16
_SHORTEST_LINE = 20
"""Minimum number of characters of the lines of plain text that are compared. Shorter lines, such as headings and short
replies, occur in many texts."""

_CERTAIN = 95.0
"""Minimum confidence in percent of a detected language."""

_DETECTED = 50
"""Maximum number of texts whose language is detected."""

_FEWEST_LETTERS = 500
"""Minimum number of letters of a sample whose language is detected, which takes a second and 90 MB."""


_CHINESE, _LONG_CHINESE = "Hani", "Hanb"
"""Writing systems of short and of long Chinese texts (`writing_system`), which are compared as one."""


class PairSet(NamedTuple):
    """A validation set of pairs. name: its name in messages. language: its target language, if it is named."""

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    language: str | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs, in order."""
        return list(zip(self.sources, self.targets, strict=True))


class TextSet(NamedTuple):
    """A validation set of documents. name: its name in messages."""

    name: str
    documents: Sequence[str]


class Finding(NamedTuple):
    """A result of a check. is_warning: False for a number that is only reported."""

    message: str
    is_warning: bool = True


def report(findings: Iterable[Finding]) -> None:
    """Print findings as warnings or messages, and free the memory of language detection."""
    for finding in findings:
        (warn if finding.is_warning else info)(finding.message)
    release_model()


@dataclass
class _Sample:
    """A sample of the items of a corpus: all of the first, then every n-th."""

    items: list[tuple[str, ...]] = field(default_factory=list)
    count: int = 0

    def add(self, item: tuple[str, ...]) -> None:
        """Add an item, or ignore it."""
        is_chosen = len(self.items) < _SAMPLE // 2 or self.count % _SAMPLE_EVERY == 0
        self.count += 1
        if is_chosen and len(self.items) < _SAMPLE:
            self.items.append(item)

    def side(self, side: int) -> list[str]:
        """Return the texts of one side."""
        return [item[side] for item in self.items]


def check_pairs(
    corpora: Sequence[CorpusConfig],
    sets: Sequence[PairSet],
    languages: tuple[str | None, str | None] = (None, None),
    *,
    overlaps: bool = True,
) -> Iterator[Finding]:
    """Yield the problems of validation sets and of the order of both sides of the training corpora.

    languages: of the source and the target, as named in the settings. A corpus or a set can name another target
    language. overlaps: whether to count pairs that are also training pairs.

    Raises DataError if a corpus cannot be read.
    """
    source_language, target_language = languages
    counters = [OverlapCounter(held_out.pairs if overlaps else ()) for held_out in sets]
    total, samples = 0, []
    with Progress("Comparing with the validation sets", "pairs") as progress:
        for corpus in corpora:
            sample, shifts, mixed = _Sample(), ShiftDetector(), MixedSidesDetector()
            for pair in mixed.watch(_readable_pairs(corpus)):
                for counter in counters:
                    counter.add(pair.texts)
                shifts.add(*pair.texts)
                sample.add(pair.texts)
                progress.update(progress.done + 1)
            total += sample.count
            samples.append(sample)
            if (shift := shifts.finish()) is not None:
                yield Finding(f"{corpus}: {shift.describe()}. Check the alignment of its lines")
            if (exchanged := mixed.finish()) is not None:
                yield Finding(f"{corpus}: {exchanged.describe()}")
    yield from _few(total, FEW_PAIRS, "pairs", "A translation model learns from many thousands of pairs")
    for corpus, sample in zip(corpora, samples, strict=True):
        expected = source_language, corpus.target_language or target_language
        yield from _unexpected_languages(str(corpus), (sample.side(0), sample.side(1)), expected)
    for held_out, counter in zip(sets, counters, strict=True):
        overlap = counter.result()
        if (message := overlap.describe("pairs", held_out.name)) is not None:
            yield Finding(message, overlap.is_serious)
        comparable = [
            (item[0], item[1])
            for corpus, sample in zip(corpora, samples, strict=True)
            if corpus.target_language == held_out.language
            for item in sample.items
        ]
        shifts = ShiftDetector(Association([(features(source), features(target)) for source, target in comparable]))
        for source, target in held_out.pairs:
            shifts.add(source, target)
        if (shift := shifts.finish()) is not None:
            yield Finding(f"{held_out.name}: {shift.describe()}. Check the alignment of its lines")
        yield from _compare_sides(held_out, comparable, source_language, held_out.language or target_language)


def check_texts(corpora: Sequence[TextCorpusConfig], sets: Sequence[TextSet]) -> Iterator[Finding]:
    """Yield the problems of validation sets of plain text. Lines of at least 20 characters are compared.

    Raises DataError if a corpus cannot be read.
    """
    counters = [OverlapCounter(_long_lines(held_out.documents)) for held_out in sets]
    words, sample = 0, _Sample()
    with Progress("Comparing with the validation sets", "passages") as progress:
        for corpus in corpora:
            for passage in read_passages(corpus):
                if has_broken_utf8(passage.text):
                    continue
                words += passage.text.count(" ") + 1
                for line in _long_lines([passage.text]):
                    for counter in counters:
                        counter.add(line)
                    sample.add(line)
                progress.update(progress.done + 1)
    yield from _few(words, FEW_WORDS, "words", "A language model learns from many thousands of words")
    for held_out, counter in zip(sets, counters, strict=True):
        overlap = counter.result()
        if (message := overlap.describe("lines", held_out.name)) is not None:
            yield Finding(message, overlap.is_serious)
        lines = [line for (line,) in _long_lines(held_out.documents)[:_SAMPLE]]
        yield from _differing_language(held_out.name, "text", lines, sample.side(0))


def check_examples(train: Sequence[Sequence[str]], valid: Sequence[Sequence[str]], name: str) -> Iterator[Finding]:
    """Yield the problems of the validation examples of a task with labels.

    train, valid: the texts of each example, without its labels. name: of the validation set, in messages.
    """
    counter = OverlapCounter([tuple(texts) or ("",) for texts in valid])
    counter.add_all(tuple(texts) or ("",) for texts in train)
    overlap = counter.result()
    yield from _few(len(train), FEW_EXAMPLES, "examples", "A model learns little from them")
    if (message := overlap.describe("examples", name)) is not None:
        yield Finding(message, overlap.is_serious)
    sample = [" ".join(texts) for texts in valid[:_SAMPLE]]
    yield from _differing_language(name, "text", sample, [" ".join(texts) for texts in train[:_SAMPLE]])


def _readable_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    """Yield the complete pairs of a corpus; cleaning reports all others."""
    for pair in read_pairs(corpus):
        if pair.complete and not (has_broken_utf8(pair.source) or has_broken_utf8(pair.target)):
            yield pair


def _long_lines(documents: Iterable[str]) -> list[tuple[str]]:
    lines = (line for document in documents for line in document.split("\n"))
    return [(line,) for line in lines if len(line) >= _SHORTEST_LINE]


def _few(count: int, minimum: int, unit: str, reason: str) -> Iterator[Finding]:
    if count < minimum:
        yield Finding(
            f"data.train has only {count:,} {unit}. {reason}. Check that data.train is the whole corpus, and not "
            "exchanged with data.valid"
        )


def _compare_sides(
    held_out: PairSet,
    train: Sequence[tuple[str, str]],
    source_language: str | None,
    target_language: str | None,
) -> Iterator[Finding]:
    """Yield the problems of the languages of a validation set. train: comparable training pairs."""
    name = held_out.name
    reversal = Sides(train).compare(held_out.pairs[:_SAMPLE]) if train else None
    description = None if reversal is None else reversal.describe()
    if reversal is not None and reversal.is_swapped:
        yield Finding(f"{name}: {description}. Check the order of its files or columns")
        return
    sides = held_out.sources[:_SAMPLE], held_out.targets[:_SAMPLE]
    scripts = tuple(map(_script, sides))
    own_scripts = tuple(_script([pair[side] for pair in train]) for side in (0, 1))
    if None not in scripts and scripts == own_scripts[::-1] != own_scripts:
        names = " and ".join(map(script_name, filter(None, scripts)))
        yield Finding(
            f"{name}: source and target seem to be swapped: they are written in {names} letters, and the training "
            "corpora in the reverse order. Check the order of its files or columns"
        )
        return
    findings = list(_unexpected_languages(name, sides, (source_language, target_language)))
    if not findings:
        for side, texts, own in zip(("source", "target"), sides, zip(*train, strict=True), strict=False):
            findings += _differing_language(name, side, texts, own)
    if not findings and description is not None:
        findings = [Finding(f"{name}: {description}. Check its files")]
    yield from findings


def _unexpected_languages(
    name: str, sides: Sequence[Sequence[str]], expected: Sequence[str | None]
) -> Iterator[Finding]:
    """Yield the sides that are almost certainly not in the languages that the settings name."""
    for side, texts, language in zip(("source", "target"), sides, expected, strict=True):
        detected = None if language is None else _detect(texts, [language])
        if detected is not None and detected[0] != language:
            yield Finding(
                f"{name}: the {side} is probably {detected[0]} (confidence {detected[1]:.0f}%), not {language} as "
                f"data.{side}_language says. Check the order of its files or columns"
            )


def _differing_language(name: str, side: str, texts: Sequence[str], train: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding if texts are in another script or language than the training texts."""
    script, own_script = _script(texts), _script(train)
    if script is not None and own_script is not None and script != own_script:
        yield Finding(
            f"{name}: the {side} is mostly written in {script_name(script)} letters, but that of the "
            f"training corpora in {script_name(own_script)} letters. Check the files"
        )
        return
    own = _detect(train, []) if _has_enough_letters(texts) else None
    if own is None:
        return
    other = _detect(texts, [own[0]])
    if other is not None and other[0] != own[0]:
        yield Finding(
            f"{name}: the {side} is probably {other[0]} (confidence {other[1]:.0f}%), but that of the training corpora "
            f"{own[0]} ({own[1]:.0f}%). Check the files"
        )


def _script(texts: Sequence[str]) -> str | None:
    """Return the main script of most texts, an ISO 15924 code; None if there is no such script."""
    systems = [system for text in texts if (system := dominant_system(text)) is not None]
    counts = Counter(_CHINESE if system == _LONG_CHINESE else main_script(system) for system in systems)
    if not counts:
        return None
    ((script, count),) = counts.most_common(1)
    return script if 2 * count > counts.total() else None


def _detect(texts: Sequence[str], expected: Sequence[str]) -> tuple[str, float] | None:
    """Return the language of texts and the confidence in percent; None if it is unclear.

    expected: languages that are preferred. Returns None if the library for language detection is not installed or does
    not support them.
    """
    if not _has_enough_letters(texts):
        return None
    try:
        detector = Detector(expected)
        if detector.undetected:
            return None
        detection = detector.most_probable("\n".join(_detected_texts(texts)))
    except (ConfigError, DataError, ResourceError):
        return None
    return detection if detection is not None and detection.confidence >= _CERTAIN else None


def _has_enough_letters(texts: Sequence[str]) -> bool:
    return sum(map(str.isalpha, "".join(_detected_texts(texts)))) >= _FEWEST_LETTERS


def _detected_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts whose language is detected, evenly spaced."""
    return texts[:: max(1, len(texts) // _DETECTED)][:_DETECTED]
