"""`lexicon` extracts a bilingual dictionary with counts and probabilities from a word-aligned text."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import regex

from dragoman.base.companion import atomic_companion
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info, quietly
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.corpora.inputs import Lines, read_parallel
from dragoman.statistical.alignment.estimation.words import WordsConfig
from dragoman.statistical.alignment.links import Alignment
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner

DictionaryFormat = Literal["tsv", "glossary"]

_LETTER = regex.compile(r"\p{L}")
_LONGEST = 3
"""Largest number of words of a translation."""


@dataclass(frozen=True)
class Entry:
    """A source word and a translation of one to three words.

    count: number of occurrences in which they are linked. forward: p(target | source), the fraction of the linked
    occurrences of the source word that have this translation. reverse: p(source | target).
    """

    source: str
    target: str
    count: int
    forward: float
    reverse: float


@dataclass(frozen=True)
class Dictionary:
    """Entries in the order of the frequency of their source words, each with its most frequent translations first."""

    entries: tuple[Entry, ...]

    def tsv(self) -> str:
        """Return lines with source, target, p(target | source), p(source | target) and count, separated by tabs."""
        header = "# source\ttarget\tp(target|source)\tp(source|target)\tcount\n"
        rows = (
            f"{each.source}\t{each.target}\t{each.forward:.4f}\t{each.reverse:.4f}\t{each.count}\n"
            for each in self.entries
        )
        return header + "".join(rows)

    def glossary(self) -> str:
        """Return the entries in the format of glossary files: one line per source word with all its translations.

        Every translation of a word is an accepted alternative. Words that would have another meaning in a glossary,
        because they start with # or =, are left out.
        """
        targets: dict[str, list[str]] = defaultdict(list)
        for each in self.entries:
            if each.source[0] not in "#=":
                targets[each.source].append(each.target)
        return "".join("\t".join([source, *found]) + "\n" for source, found in targets.items())


def lexicon(
    source: Lines,
    target: Lines,
    output: str | Path | None = None,
    *,
    model: str | Path | None = None,
    format: DictionaryFormat = "tsv",
    min_count: int = 3,
    min_probability: float = 0.1,
    translations: int = 3,
    overrides: Overrides = (),
    threads: int | None = None,
    quiet: bool = False,
) -> Dictionary:
    """Extract a dictionary from a parallel text, as `dragoman lexicon` does.

    The text is aligned with `grow-diag-final-and`. An entry is a source word and the adjacent target words that are
    linked with it and with no other word. source, target: files or lists of texts, as in `align`. output: a file for
    the dictionary. model: the folder of a trained aligner; None trains an aligner on the text itself, with the settings
    `overrides`. format: tsv, or glossary for `--glossary`. min_count, min_probability: smallest count, and smallest
    value of both probabilities, of an entry. translations: largest number of translations per word.

    Raises ConfigError for invalid arguments, and the errors of `align`.

    >>> from dragoman import lexicon
    >>> dictionary = lexicon(["the dog", "the cat", "a dog"], ["der Hund", "die Katze", "ein Hund"], min_count=2)
    >>> dictionary.entries
    (Entry(source='dog', target='Hund', count=2, forward=1.0, reverse=1.0),)
    """
    if format not in get_args(DictionaryFormat):
        raise ConfigError(f"there is no dictionary format '{format}': choose tsv or glossary")
    if min_count < 1 or translations < 1 or not 0 <= min_probability <= 1:
        raise ConfigError(
            "a dictionary needs --min-count and --translations of at least 1, and --min-probability from 0 to 1"
        )
    given = all_overrides(overrides)
    if model is not None and given:
        raise ConfigError("--model is already trained: remove the settings, or train an aligner without --model")
    config = load_settings({}, all_overrides(given, {"symmetrization": "grow-diag-final-and"}), AlignerConfig)
    with quietly(quiet):
        sources, targets = read_parallel(("source", source), ("target", target))
        if model is None:
            aligner, aligned = WordAligner.train(sources, targets, config, threads)
        else:
            aligner = WordAligner.load(model)
            aligned = aligner.align_pairs(sources, targets, config.symmetrization, threads)
        dictionary = extract_dictionary(
            sources,
            targets,
            aligned.alignments,
            aligner.config.words,
            min_count=min_count,
            min_probability=min_probability,
            translations=translations,
        )
        if not dictionary.entries:
            raise DataError(
                f"no word has a translation that occurs {min_count} times: use a larger text or a smaller --min-count"
            )
        info(f"The dictionary has {len(dictionary.entries):,} entries")
        if output is not None:
            with atomic_companion(Path(output)) as file:
                file.write(dictionary.tsv() if format == "tsv" else dictionary.glossary())
    return dictionary


def extract_dictionary(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[Alignment],
    words: WordsConfig,
    *,
    min_count: int,
    min_probability: float,
    translations: int,
) -> Dictionary:
    """Count the translations of the source words in aligned texts. The other arguments are those of `lexicon`.

    words: which words are the same. A word is written in its most frequent form.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    forms: tuple[_Forms, _Forms] = _Forms(words), _Forms(words)
    for source, target, alignment in zip(sources, targets, alignments, strict=True):
        source_words, target_words = source.split(), target.split()
        for position, span in _translated_spans(alignment):
            key = forms[0].key([source_words[position]])
            translation = forms[1].key(target_words[span[0] : span[1]])
            if key and translation:
                pairs[key, translation] += 1
    totals: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for (key, translation), count in pairs.items():
        totals[0][key] += count
        totals[1][translation] += count
    entries: dict[str, list[Entry]] = defaultdict(list)
    for (key, translation), count in pairs.items():
        forward, reverse = count / totals[0][key], count / totals[1][translation]
        if count >= min_count and min(forward, reverse) >= min_probability:
            entries[key].append(Entry(forms[0].common(key), forms[1].common(translation), count, forward, reverse))
    ordered = sorted(entries, key=lambda key: (-totals[0][key], key))
    return Dictionary(
        tuple(
            entry
            for key in ordered
            for entry in sorted(entries[key], key=lambda each: (-each.count, each.target))[:translations]
        )
    )


def _translated_spans(alignment: Alignment) -> list[tuple[int, tuple[int, int]]]:
    """Return the source words whose links are adjacent target words without other links, and these words' ranges."""
    of_source: dict[int, list[int]] = defaultdict(list)
    of_target: Counter[int] = Counter()
    for i, j in alignment:
        of_source[i].append(j)
        of_target[j] += 1
    spans = []
    for i, linked in of_source.items():
        first, last = min(linked), max(linked) + 1
        is_adjacent = last - first == len(linked) <= _LONGEST
        if is_adjacent and all(of_target[j] == 1 for j in linked):
            spans.append((i, (first, last)))
    return spans


class _Forms:
    """The forms in which the words of one side occur."""

    def __init__(self, words: WordsConfig) -> None:
        self._words, self._cased = words, words.model_copy(update={"lowercase": False})
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def key(self, words: Sequence[str]) -> str:
        """Return the canonical form of one or more words, and count their form; empty without a letter in each word."""
        cased = [self._cased.canonical(word) for word in words]
        if not all(_LETTER.search(word) for word in cased):
            return ""
        key = " ".join(self._words.canonical(word) for word in words)
        self._counts[key][" ".join(cased)] += 1
        return key

    def common(self, key: str) -> str:
        """Return the most frequent form; the first one in alphabetical order among equally frequent forms."""
        counts = self._counts[key]
        return min(counts, key=lambda form: (-counts[form], form))
