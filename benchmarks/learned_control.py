"""Learned placeholders and terms, compared with a model trained without them for the same time.

    python benchmarks/learned_control.py runs --minutes 20 --threads 1
    python benchmarks/learned_control.py runs --source newstest2013.en.gz --reference newstest2013.de.gz

Trains recipes/multi30k-en-de.yaml twice into the folder, as it is (`plain`) and with `data.placeholders` and
`data.terminology` (`learned`), each for --minutes; existing runs are not trained again. Then both models translate the
first sentences of Multi30k's validation set (or of --source), with an inserted URL, markup, emoji or placeholder as in
benchmarks/control.py. The glossary is extracted from the training data: pairs of words with a high Dice coefficient of
the sentences that contain them. Every second source word is used for training, the others for the test: in each
sentence, the longest word that its reference translates as in the glossary; that translation is required.

A term is present if the translation contains the required phrase, a span if the translation contains it as often as the
source. `at first` is the best hypothesis of the first search, before other searches and assembly. `forced` uses the
symbols and enforces them in the first search, as is done for the model without training for them.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from control import Sentence, read, shares

from dragoman.data.files.lines import open_lines
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Row
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.keep import KINDS
from dragoman.inference.control.phrase import Phrase
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.tasks.train import train
from dragoman.text.words import split_units

RECIPE = Path(__file__).resolve().parents[1] / "recipes" / "multi30k-en-de.yaml"
DATA = Path(os.environ.get("DRAGOMAN_DATA", ".")) / "multi30k"
PLACEHOLDERS = {"words": 1.0, "added": 0.5, "share": 0.3, "symbols": 4}
TERMINOLOGY_SHARE = 0.3
LEAST_COUNT, LEAST_DICE = 4, 0.3

Required = tuple[Phrase, ...]


def words(text: str) -> set[str]:
    """Return the words of four or more letters."""
    return {text[start:end] for start, end in split_units(text) if end - start >= 4 and text[start:end].isalpha()}


def dictionary(source: Path, target: Path) -> dict[str, list[str]]:
    """Return for each lowercased source word the target words with a high enough Dice coefficient, best first."""
    pairs = [
        ({word.lower() for word in words(each)}, words(other))
        for each, other in zip(open_lines(source), open_lines(target), strict=True)
    ]
    sources = Counter(word for own, _ in pairs for word in own)
    targets = Counter(word for _, other in pairs for word in other)
    together = Counter(
        (one, two)
        for own, other in pairs
        for one in own
        if sources[one] >= LEAST_COUNT
        for two in other
        if targets[two] >= LEAST_COUNT
    )
    found: dict[str, list[tuple[float, str]]] = {}
    for (one, two), count in together.items():
        if count >= LEAST_COUNT and (dice := 2 * count / (sources[one] + targets[two])) >= LEAST_DICE:
            found.setdefault(one, []).append((dice, two))
    return {word: [two for _, two in sorted(found[word], key=lambda each: (-each[0], each[1]))] for word in found}


def write_glossary(terms: dict[str, list[str]], path: Path) -> None:
    """Write a glossary for `Glossary.read`."""
    path.write_text("".join("\t".join([word, *forms]) + "\n" for word, forms in terms.items()), encoding="utf-8")


def with_term(sentence: Sentence, terms: dict[str, list[str]]) -> Sentence:
    """Return the longest term that the reference translates as in the glossary; empty if there is none."""
    there = words(sentence.reference)
    fitting = [
        (word, next(form for form in terms[word.lower()] if form in there))
        for word in sorted(words(sentence.source), key=lambda word: (-len(word), word))
        if not there.isdisjoint(terms.get(word.lower(), []))
    ]
    term, translation = fitting[0] if fitting else ("", "")
    return sentence._replace(term=term, translation=translation)


def trained(folder: Path, settings: dict[str, Any], minutes: float, steps: int | None, threads: int) -> Path:
    """Train a run unless it exists; returns its folder."""
    if not (folder / "model.safetensors").exists():
        limits = (
            {"train.max_minutes": minutes} if steps is None else {"train.max_steps": steps, "train.max_minutes": None}
        )
        train(RECIPE, {**settings, **limits, "train.threads": threads, "train.device": "cpu", "out": str(folder)})
    return folder


class Way(NamedTuple):
    """forced: whether the search enforces what the model has learned."""

    translator: Translator
    keeps: bool
    knows_terms: bool
    forced: bool = False


def requests(way: Way, sentences: Sequence[Sentence], beam: int) -> list[Request]:
    """Return one request per sentence."""
    kept: list[str] = list(KINDS) if way.keeps else []
    return [
        way.translator.request(
            beam=beam,
            keep=kept,
            glossary=Glossary.of({each.term: each.translation}) if way.knows_terms and each.term else None,
        )
        for each in sentences
    ]


def at_first(translator: Translator, texts: Sequence[str], asked: Sequence[Request]) -> list[str]:
    """Return the results of the first search, with the spans restored at their symbols."""
    codec, engine = translator.codec, translator.engine
    rows = codec.encode_rows(list(zip(texts, asked, strict=True)), range(1, len(texts) + 1))
    best = {place: found[0] for place, found in engine.hypotheses(rows, 64)}
    return [
        codec.decode(best[place], row.expected.constraints or row.constraints).text for place, row in enumerate(rows)
    ]


def measured(way: Way, sentences: Sequence[Sentence], beam: int) -> list[str]:
    """Return the cells of a table row."""
    translator, texts = way.translator, [each.source for each in sentences]
    writer = translator.codec.constraints._placeholders
    mask = type(writer).mask
    if way.forced:
        writer.mask = lambda requirements: replace(mask(writer, requirements), learned=False)  # type: ignore[method-assign]
    asked = requests(way, sentences, beam)
    required: list[Required] = [(Phrase((each.translation,)),) if each.term else () for each in sentences]
    searched: list[Row] = []
    search = translator.engine.hypotheses

    def watched(rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        searched.extend(rows)
        return search(rows, batch_size)

    begun = time.perf_counter()
    with patch.object(translator.engine, "hypotheses", watched):
        found = [each[0] for each in translator.translate_nbest(texts, asked)]
    seconds = time.perf_counter() - begun
    expected = {row.number for row in searched if row.expected.constraints}
    repeated = len({row.number for row in searched if row.constraints} & expected)
    outputs = [each.text for each in found]
    first = shares(sentences, at_first(translator, texts, asked), required)
    vars(writer).pop("mask", None)
    patched = sum(each.patched for each in found)
    score = BLEU().score(outputs, [each.reference for each in sentences])
    there = shares(sentences, outputs, required)
    return [*first, *there, str(repeated), str(patched), f"{score.value:.2f}", f"{seconds:.1f}"]


def main() -> None:
    """Train missing runs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=20, help="of each training (20)")
    parser.add_argument("--steps", type=int, help="updates of each training, instead of minutes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=("plain", "learned"), help="train only this model, without measuring")
    parser.add_argument("--source", type=Path, default=DATA / "val.en.gz")
    parser.add_argument("--reference", type=Path, default=DATA / "val.de.gz")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--words", type=int, default=30, help="maximum number of words of a source (30)")
    parser.add_argument("--beam", type=int, default=5)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    known = dictionary(DATA / "train.en.gz", DATA / "train.de.gz")
    learned_terms, tested = ({word: known[word] for word in sorted(known)[half::2]} for half in (0, 1))
    glossary = arguments.folder / "glossary.tsv"
    write_glossary(learned_terms, glossary)
    print(f"{len(known):,} terms, {len(learned_terms):,} of them for training", flush=True)
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "learned": {
            "data.placeholders": PLACEHOLDERS,
            "data.terminology": {"glossary": str(glossary), "share": TERMINOLOGY_SHARE},
        },
    }
    limits = arguments.minutes, arguments.steps, arguments.threads
    names = [arguments.only] if arguments.only else list(settings)
    models = {name: trained(arguments.folder / name, settings[name], *limits) for name in names}
    if arguments.only:
        return
    sentences = [
        with_term(each, tested)
        for each in read(arguments.source, arguments.reference, arguments.sentences, arguments.words)
    ]
    print(f"{len(sentences)} sentences, {sum(bool(each.term) for each in sentences)} of them with a term")
    columns = "model | required | terms at first | spans at first | terms | spans | again | assembled | BLEU"
    print(f"| {columns} | seconds |")
    print("| --- " * 10 + "|")
    for name, folder in models.items():
        translator = Translator.load(folder, device="cpu", engine="torch")
        translator.translate([each.source for each in sentences[:4]], beam=arguments.beam)
        ways = {
            "nothing": Way(translator, False, False),
            "keep all": Way(translator, True, False),
            "glossary": Way(translator, False, True),
            "both": Way(translator, True, True),
        }
        if name == "learned":
            forced = {
                f"{asked}, forced": way._replace(forced=True) for asked, way in ways.items() if asked != "nothing"
            }
            ways |= forced
        for asked, way in ways.items():
            print("| " + " | ".join([name, asked, *measured(way, sentences, arguments.beam)]) + " |", flush=True)


if __name__ == "__main__":
    main()
