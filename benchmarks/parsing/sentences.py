"""Sentences without trees, divided into words as in the Penn Treebank, from which a parser makes silver trees.

    python benchmarks/parsing/sentences.py > runs/sentences.txt
    dragoman predict runs/wsj-chart --input runs/sentences.txt --output runs/silver.mrg

The texts are the English sides of newstest2013, newstest2014 and europarl20k in $DRAGOMAN_DATA. The tokeniser of NLTK
divides them. Lines with fewer than 5 or more than 40 words, several sentences, or no end of a sentence, and repeated
lines, are left out.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nltk.tokenize import TreebankWordTokenizer

from dragoman.data.files.lines import open_lines

NEWS = [f"newstest/newstest{name}.en.gz" for name in ("2013", "2014.en-de", "2014.en-fr")]
SPEECHES = ["europarl20k/train.en.gz"]
SHORTEST, LONGEST = 5, 40
CHARACTERS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "--", "—": "--", "…": "..."})
SEVERAL = re.compile(r"[\w)]{2}[.?!]['\"]* +['\"]*[A-Z]")
APART = re.compile(r"(?<=\w)' s\b")  # in Europarl, the s of a genitive is often apart
END = re.compile(r"[.?!]['\"]*$")


def sentences(lines: Iterable[str]) -> Iterator[str]:
    """Yield the different sentences of lines, as words that are separated by spaces."""
    tokenizer = TreebankWordTokenizer()
    known: set[str] = set()
    for line in lines:
        text = APART.sub("'s", line.translate(CHARACTERS)).strip()
        if text in known or SEVERAL.search(text) or not END.search(text):
            continue
        known.add(text)
        words = tokenizer.tokenize(text, convert_parentheses=True)
        if SHORTEST <= len(words) <= LONGEST:
            yield " ".join(words)


def main() -> None:
    """Write the sentences to the standard output."""
    data = Path(os.environ.get("DRAGOMAN_DATA", "data"))
    lines = (line for name in (*NEWS, *SPEECHES) for line in open_lines(data / name))
    sys.stdout.writelines(f"{sentence}\n" for sentence in sentences(lines))


if __name__ == "__main__":
    main()
