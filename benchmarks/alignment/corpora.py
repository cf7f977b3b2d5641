"""Writes the three texts that the aligners are compared on: one sentence per line, tokenised, in lower case.

The test pairs with gold alignments are the last lines of each text, so every aligner is trained on them as well, but
without their alignments. The published figures of alignment-scripts are of the same kind. Training texts are tokenised
like the gold text.
"""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sacremoses import MosesTokenizer

_MARKUP = re.compile(r"</?s\b[^>]*>")


@dataclass(frozen=True)
class Corpus:
    """A parallel text and its test part. gold: alignment file, 1-based. tests: number of pairs at the end with gold."""

    name: str
    languages: tuple[str, str]
    gold: str
    tests: int

    def paths(self, out: Path) -> tuple[Path, Path]:
        """Return the paths of the source and the target."""
        return out / f"{self.name}.{self.languages[0]}", out / f"{self.name}.{self.languages[1]}"


CORPORA = (
    Corpus("europarl", ("de", "en"), "alignments/deen.talp.gz", 508),
    Corpus("europarl-tatoeba", ("de", "en"), "alignments/deen.talp.gz", 508),
    Corpus("hansards", ("en", "fr"), "alignments/enfr.talp.gz", 447),
)


def write_corpus(corpus: Corpus, data: Path, out: Path) -> None:
    """Write both sides of a corpus into `out`, unless they exist. data: the folder DRAGOMAN_DATA."""
    paths = corpus.paths(out)
    if all(path.exists() for path in paths):
        return
    pairs = [pair for pair in _PAIRS[corpus.name](data) if all(pair)]
    out.mkdir(parents=True, exist_ok=True)
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")


def _europarl(data: Path) -> Iterator[tuple[str, str]]:
    tokenize = {language: _tokenizer(language) for language in ("de", "en")}
    sides = [_lines(data / f"europarl20k/train.{language}.gz") for language in ("de", "en")]
    for german, english in zip(*sides, strict=True):
        yield tokenize["de"](german), tokenize["en"](english)
    yield from _gold_pairs(data / "alignments/test.de-en.gz")


def _europarl_tatoeba(data: Path) -> Iterator[tuple[str, str]]:
    tokenize = {language: _tokenizer(language) for language in ("de", "en")}
    for line in _lines(data / "tatoeba/train.en-de.tsv.gz"):
        english, german = line.split("\t")
        yield tokenize["de"](german), tokenize["en"](english)
    yield from _europarl(data)


def _hansards(data: Path) -> Iterator[tuple[str, str]]:
    folder = data / "alignments/hansards/train"
    for english in sorted(folder.glob("*.e.gz")):
        french = english.with_name(english.name.replace(".e.gz", ".f.gz"))
        for pair in zip(_lines(english), _lines(french), strict=True):
            yield tuple(" ".join(_MARKUP.sub(" ", side).lower().split()) for side in pair)
    yield from _gold_pairs(data / "alignments/test.en-fr.gz")


def _gold_pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line in _lines(path):
        first, second = (" ".join(side.lower().split()) for side in line.split("|||"))
        yield first, second


_PAIRS = {"europarl": _europarl, "europarl-tatoeba": _europarl_tatoeba, "hansards": _hansards}


def _tokenizer(language: str):
    moses = MosesTokenizer(language)
    return lambda line: moses.tokenize(line, escape=False, return_str=True).lower()


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").rstrip("\n").split("\n")
