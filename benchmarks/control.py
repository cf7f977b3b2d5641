"""Controlled translation: presence of required phrases and kept spans, BLEU with and without control, and speed.

    python benchmarks/control.py runs/multi30k --source newstest2013.en.gz --reference newstest2013.de.gz

Of the first sentences with at most --words words, a quarter each gets a URL in brackets, markup around its first word,
an emoji before its end, or a placeholder at its beginning, on both sides; numbers occur anyway. The artificial glossary
of a sentence contains its longest word, with the longest word of the reference as its translation. Each configuration
translates the same lines. A phrase is present if the translation contains it, a span if the translation contains it
exactly as often as the source. `own pieces` are the kept spans without placeholders. Nothing is trained.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.files.lines import open_lines
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.keep import KINDS, KeepRules
from dragoman.inference.control.phrase import Phrase
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU

Required = tuple[Phrase, ...]


class Sentence(NamedTuple):
    """A source and its reference with the same span inserted into both, and a term with its translation."""

    source: str
    reference: str
    term: str
    translation: str


def made(source: str, reference: str, number: int) -> Sentence:
    """Insert a span, whose kind depends on the number."""
    term, translation = (max(text.split(), key=len).strip(".,;:!?()\"'") for text in (source, reference))
    address = f"https://www.example.com/{number}/page?id={number % 7}&q=a"
    ways = {
        0: lambda text: f"{text.rstrip(' .')} ({address}).",
        1: lambda text: "<b>{}</b> {}".format(*(text.split(" ", 1) if " " in text else (text, ""))),
        2: lambda text: f"{text.rstrip(' .')} 🎉.",
        3: lambda text: f"{{user_{number}}}: {text}",
    }
    put = ways[number % 4]
    return Sentence(put(source), put(reference), term, translation)


def read(source: Path, reference: Path, count: int, words: int) -> list[Sentence]:
    """Return the first `count` sentences."""
    pairs = zip(open_lines(source), open_lines(reference), strict=True)
    short = (pair for pair in pairs if 0 < len(pair[0].split()) <= words and pair[1].strip())
    return [made(*pair, number) for number, pair in enumerate(islice(short, count))]


def shares(sentences: Sequence[Sentence], translations: Sequence[str], required: Sequence[Required]) -> list[str]:
    """Return the numbers of present and of required phrases, and of present and of kept spans."""
    keep = KeepRules.of(["all"])
    assert keep is not None
    there = spans = kept = 0
    for sentence, translation, phrases in zip(sentences, translations, required, strict=True):
        there += sum(any(form in translation for form in phrase.alternatives) for phrase in phrases)
        found = Counter(span.text for span in keep.find(translation))
        for span, times in Counter(span.text for span in keep.find(sentence.source)).items():
            spans += 1
            kept += found[span] == times
    wanted = sum(map(len, required))
    return [f"{there}/{wanted}" if wanted else "–", f"{kept}/{spans}"]


def main() -> None:
    """Translate in every configuration and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--words", type=int, default=30, help="maximum number of words of a source (30)")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--show", type=int, default=0, help="print the first N translations of each configuration")
    arguments = parser.parse_args()
    sentences = read(arguments.source, arguments.reference, arguments.sentences, arguments.words)
    texts = [sentence.source for sentence in sentences]
    references = [sentence.reference for sentence in sentences]
    translator, pieces = (Translator.load(arguments.model, device="cpu", engine="torch") for _ in range(2))
    pieces.codec.constraints._placeholders._numbers = lambda _: iter(())  # type: ignore[method-assign]
    terms = Glossary.of({sentence.term: sentence.translation for sentence in sentences})
    phrases = [(Phrase((sentence.translation,)),) for sentence in sentences]
    found = [Control(glossary=terms).requirements(text).required for text in texts]
    nothing: list[Required] = [()] * len(texts)
    beam, every = arguments.beam, list(KINDS)

    def same(**settings: Any) -> list[Request]:
        return [translator.request(beam=beam, **settings)] * len(texts)

    required = [translator.request(beam=beam, constraints=[each.alternatives for each in some]) for some in phrases]
    ways: dict[str, tuple[Translator, list[Request], Sequence[Required]]] = {
        "plain": (translator, same(), found),
        "keep all": (translator, same(keep=every), nothing),
        "keep all, own pieces": (pieces, same(keep=every), nothing),
        "phrases of the reference": (translator, required, phrases),
        "glossary": (translator, same(glossary=terms), found),
        "glossary, keep all": (translator, same(glossary=terms, keep=every), found),
    }
    translator.translate(texts[:4], beam=beam)
    print("| configuration | phrases | spans | assembled | BLEU | seconds |\n| --- | --- | --- | --- | --- | --- |")
    for name, (by, requests, asked) in ways.items():
        begun = time.perf_counter()
        best = [each[0] for each in by.translate_nbest(texts, requests)]
        seconds = time.perf_counter() - begun
        translations = [each.text for each in best]
        score = BLEU().score(translations, references)
        cells = [name, *shares(sentences, translations, asked), str(sum(each.patched for each in best))]
        print("| " + " | ".join([*cells, f"{score.value:.2f}", f"{seconds:.1f}"]) + " |", flush=True)
        for text, translation in islice(zip(texts, translations, strict=True), arguments.show):
            print(f"    {text}\n    {translation}", file=sys.stderr)
    print(f"\n{len(texts)} sentences, beam {beam}, {score.signature}")


if __name__ == "__main__":
    main()
