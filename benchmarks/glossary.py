r"""Glossaries: how many terms a translation contains, where they stand, and what they cost in BLEU and chrF.

    python benchmarks/glossary.py MODEL --source test.en --reference test.de \
        --train-source train.en --train-target train.de

The setting of Dinu et al. 2019 ("Training Neural Machine Translation to Apply Terminology Constraints", section 4): a
term list is made from word alignments of the training corpus, and a sentence has the terms of the list that occur both
in its source and in its reference. In addition, one term per sentence gets another translation: a word of the list with
the same ending. The reference is changed accordingly, so that no model produces the term by itself.

Rows: no glossary; constraints only, as the search finds them; terms in the places of their source words. Columns: terms
in the output, terms after the end of the sentence, BLEU, chrF, and seconds for all sentences.
"""

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dragoman import align
from dragoman.data.files.lines import open_lines
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.translation.rounds import term_placement
from dragoman.inference.translation.rounds.term_placement import TermPlacement
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.chrf import ChrF
from dragoman.text.words import split_units

_LEAST_LETTERS, _LEAST_COUNT, _LEAST_SHARE = 4, 3, 0.1
"""Terms have at least 4 letters, are linked at least 3 times, and at least in a tenth of the links of their source."""


@dataclass(frozen=True)
class Example:
    """A sentence with its glossary. reference: contains the translation of each term."""

    source: str
    reference: str
    terms: dict[str, str]


def words(text: str) -> list[str]:
    """Return the words and marks of a text."""
    return [text[start:end] for start, end in split_units(text) if not text[start:end].isspace()]


def term_list(sources: Sequence[str], targets: Sequence[str]) -> dict[str, set[str]]:
    """Return the translations of each term, by alignments of a corpus."""
    pairs = [(words(source), words(target)) for source, target in zip(sources, targets, strict=True)]
    aligned = align([" ".join(each) for each, _ in pairs], [" ".join(each) for _, each in pairs], quiet=True)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), links in zip(pairs, aligned.alignments, strict=True):
        times = Counter(link[0] for link in links)
        for one, other in links:
            if times[one] == 1:
                counts[source[one]][target[other]] += 1
    return {
        source: found
        for source, translations in counts.items()
        if is_term(source)
        and (
            found := {
                target
                for target, count in translations.items()
                if is_term(target) and count >= max(_LEAST_COUNT, _LEAST_SHARE * translations.total())
            }
        )
    }


def is_term(word: str) -> bool:
    """Return whether a word is long enough for a term."""
    return len(word) >= _LEAST_LETTERS and word.isalpha()


def examples(
    pairs: Iterator[tuple[str, str]], terms: dict[str, set[str]], most: int, others: random.Random | None
) -> Iterator[Example]:
    """Yield the sentences with terms. others: replaces the translations by other words of the list."""
    pool = sorted({target for found in terms.values() for target in found})
    for source, reference in pairs:
        seen, own = Counter(words(reference)), Counter(words(source))
        found = {
            word: translation
            for word in own
            for translation in sorted(terms.get(word, ()))
            if own[word] == 1 == seen[translation]
        }
        if others is not None:
            found = dict(islice(found.items(), 1))
        chosen = dict(islice(found.items(), most))
        if len(set(chosen.values())) < len(chosen) or not chosen:
            continue
        if others is not None:
            for word, translation in chosen.items():
                alike = [
                    each
                    for each in pool
                    if each[-1] == translation[-1]
                    and each[0].isupper() == translation[0].isupper()
                    and each not in reference
                    and each not in terms[word]
                ]
                if not alike:
                    break
                chosen[word] = others.choice(alike)
                reference = reference.replace(translation, chosen[word], 1)
            else:
                yield Example(source, reference, chosen)
            continue
        yield Example(source, reference, chosen)


def report(name: str, translator: Translator, cases: Sequence[Example], placed: bool | None, beam: int) -> None:
    """Translate all sentences and print a row of the table. placed: None for no glossary."""
    glossaries = [Glossary.of(case.terms) for case in cases]
    texts = [case.source for case in cases]
    requests = [
        translator.request(beam=beam) if placed is None else translator.request(beam=beam, glossary=glossary)
        for glossary in glossaries
    ]
    original = TermPlacement.applies_to
    if placed is False:
        TermPlacement.applies_to = lambda *_: False  # type: ignore[method-assign]
    started = time.perf_counter()
    found = translator.translate(texts, requests=requests)
    seconds = time.perf_counter() - started
    TermPlacement.applies_to = original  # type: ignore[method-assign]
    present = late = total = 0
    for text, translation, glossary in zip(texts, found, glossaries, strict=True):
        requirements = Control(glossary=glossary).requirements(text)
        total += len(requirements.terms)
        present += sum(term.phrase.times(translation) > 0 for term in requirements.terms)
        late += len(term_placement.terms_after_end(requirements, translation))
    references = [case.reference for case in cases]
    bleu, chrf = BLEU().score(found, references).value, ChrF().score(found, references).value
    share = f"{100 * present / total:.1f}%"
    print(f"| {name} | {present}/{total} ({share}) | {late} | {bleu:.2f} | {chrf:.2f} | {seconds:.0f} |", flush=True)


def main() -> None:
    """Make the term list, translate in every configuration, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    for name in ("source", "reference", "train-source", "train-target"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--terms", type=int, default=3, help="maximum number of terms of a sentence (3)")
    parser.add_argument("--beam", type=int, default=5)
    arguments = parser.parse_args()
    train = [list(open_lines(path)) for path in (arguments.train_source, arguments.train_target)]
    terms = term_list(*train)
    translator = Translator.load(arguments.model, device="cpu")

    def test() -> Iterator[tuple[str, str]]:
        return zip(open_lines(arguments.source), open_lines(arguments.reference), strict=True)

    ways = {"of the reference": None, "other translations": random.Random(1)}
    for title, others in ways.items():
        cases = list(islice(examples(test(), terms, arguments.terms, others), arguments.sentences))
        count = sum(len(case.terms) for case in cases)
        print(f"\nTerms: {title}. {len(cases)} sentences with {count} terms, beam {arguments.beam}\n")
        print("| glossary | terms | after the end | BLEU | chrF | seconds |\n| --- | --- | --- | --- | --- | --- |")
        for name, placed in {"none": None, "constraints only": False, "placed": True}.items():
            report(name, translator, cases, placed, arguments.beam)


if __name__ == "__main__":
    main()
