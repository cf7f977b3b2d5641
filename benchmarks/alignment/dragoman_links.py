"""Aligns a text with dragoman: `dragoman_links.py METHOD SOURCE TARGET OUT SEED`.

Writes OUT.forward (each target word has at most one link) and OUT.reverse, both as source-target links from 0. The
texts are tokenised and in lower case, so words are compared as they are. All other settings are the defaults.
"""

import sys
from itertools import pairwise
from pathlib import Path

from dragoman.base.settings.load import load_settings
from dragoman.statistical.alignment.estimation.method import TrainingData
from dragoman.statistical.alignment.estimation.pairs import WordPairs
from dragoman.statistical.alignment.estimation.words import WordsConfig, WordVocabulary
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.word_aligner import AlignerConfig


def main() -> None:
    """Align both directions."""
    method, source, target, out, seed = sys.argv[1:]
    settings = {"method.kind": method, **({"method.seed": int(seed)} if method == "fertility" else {})}
    config = load_settings({}, settings, AlignerConfig).method
    words = WordsConfig(lowercase=False, strip_punctuation=False, normalization="none")
    vocabularies = WordVocabulary(words), WordVocabulary(words)
    texts = [
        [vocabulary.extend(line) for line in Path(path).read_text("utf-8").rstrip("\n").split("\n")]
        for path, vocabulary in zip((source, target), vocabularies, strict=True)
    ]
    pairs, sizes = WordPairs.of(*texts), tuple(map(len, vocabularies))
    with Workers(1) as workers:
        for name, sides, counts in (("forward", pairs, sizes), ("reverse", pairs.swapped(), sizes[::-1])):
            _, links = config.train(TrainingData(sides, counts, workers))
            with Path(f"{out}.{name}").open("w") as file:
                for first, last in pairwise(sides.target_starts.tolist()):
                    found = [(i, j) for j, i in enumerate(links.positions[first:last].tolist()) if i >= 0]
                    file.write(" ".join(f"{i}-{j}" if name == "forward" else f"{j}-{i}" for i, j in found) + "\n")


if __name__ == "__main__":
    main()
