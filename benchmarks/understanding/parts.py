"""Writes the texts that the recipes read: plain text for pre-training, and parts of training sets without a dev set."""

import csv
import gzip
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

_HELD_OUT = 12
"""Every example with a number that this divides is held out of a training set without a dev set."""
_NEGATION = re.compile(r" (n't)\b")
_JOINED = re.compile(r" @([-,.])@ ")


def write_parts(data: Path, out: Path) -> None:
    """Write all parts into `out`, unless they are there. data: the folder DRAGOMAN_DATA.

    No text of a dev or test set is used, except that of dev sets for validation.
    """
    writers = {
        "wikitext.txt": lambda: wikitext(data),
        "tatoeba.txt": lambda: distinct(line.split("\t")[0] for line in lines(data / "tatoeba/train.en-de.tsv.gz")),
        "tasks.txt": lambda: task_texts(data),
        **{f"sst2-{part}.tsv": (lambda part=part: sst2(data, part)) for part in ("train", "dev", "test")},
        **{f"trec-{part}.txt": (lambda part=part: trec(data, part)) for part in ("train", "valid")},
        **{
            f"conll2000-{part}.txt": (lambda part=part: chunks(data, part))
            for part in ("all", "train", "valid", "test")
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, write in writers.items():
        if not (out / name).exists():
            (out / f"{name}.new").write_text("".join(f"{line}\n" for line in write()), "utf-8")
            (out / f"{name}.new").rename(out / name)


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file; only \\n ends a line."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text once, in the order of their first occurrences."""
    return iter(dict.fromkeys(texts))


def held_out(examples: Sequence[str], part: str) -> Iterator[str]:
    """Yield every twelfth example for `valid`, and the others for `train`."""
    return (each for number, each in enumerate(examples) if (number % _HELD_OUT == 0) == (part == "valid"))


def wikitext(data: Path) -> Iterator[str]:
    """Yield the paragraphs of WikiText-2 without headings, divided where sentences with unknown words are left out."""
    for line in lines(data / "wikitext-2/wiki.train.tokens.gz"):
        if line.lstrip().startswith("=") or not line.strip():
            continue
        run: list[str] = []
        for sentence in [*re.split(r"(?<= [.!?]) ", _JOINED.sub(r"\1", line.strip())), "<unk>"]:
            if "<unk>" not in sentence:
                run.append(sentence)
            elif run:
                yield " ".join(run)
                run = []


def sst2(data: Path, part: str) -> Iterator[str]:
    """Yield the lines of a part of SST-2, with contractions such as does n't joined as in other texts."""
    return (_NEGATION.sub(r"\1", line) for line in lines(data / f"sst2/{part}.tsv.gz"))


def trec(data: Path, part: str) -> Iterator[str]:
    """Yield the questions of a part of TREC's training set."""
    return held_out(list(lines(data / "trec/train.txt.gz")), part)


def chunks(data: Path, part: str) -> Iterator[str]:
    """Yield the lines of a part of CoNLL-2000, with a blank line after each sentence.

    part: test; all, the training set; train or valid, its parts.
    """
    with zipfile.ZipFile(data / "conll2000/conll2000.zip") as archive:
        text = archive.read(f"conll2000/{'test' if part == 'test' else 'train'}.txt").decode()
    sentences = [each for each in text.split("\n\n") if each.strip()]
    for sentence in sentences if part in ("all", "test") else held_out(sentences, part):
        yield from (*sentence.strip("\n").split("\n"), "")


def task_texts(data: Path) -> Iterator[str]:
    """Yield the distinct texts of the training sets without their labels.

    CoLA is left out, because its texts are not all acceptable. Parts of training sets that are held out are left out.
    """

    def texts() -> Iterator[str]:
        yield from (line.split("\t")[0] for line in sst2(data, "train"))
        with gzip.open(data / "stsb/train.csv.gz", "rt", encoding="utf-8", newline="") as file:
            yield from (text for row in csv.reader(file) for text in row[:2])
        yield from (text for line in lines(data / "sick/train.tsv.gz") for text in line.split("\t")[1:3])
        yield from (line.partition(" ")[2] for line in trec(data, "train"))
        yield from _sentences(chunks(data, "train"))
        yield from _sentences(lines(data / "wnut17/train.conll.gz"))
        for document in json.loads(gzip.decompress((data / "qamr/train.json.gz").read_bytes()))["data"]:
            for paragraph in document["paragraphs"]:
                yield paragraph["context"]
                yield from (question["question"] for question in paragraph["qas"])

    return distinct(text for text in texts() if text.strip())


def _sentences(columns: Iterable[str]) -> Iterator[str]:
    """Yield the words of the first column of each sentence, with spaces between them."""
    words: list[str] = []
    for line in chain(columns, [""]):
        if line.strip():
            words.append(line.split()[0])
        elif words:
            yield " ".join(words)
            words = []
