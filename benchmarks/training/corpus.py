"""The tokens that all programs train on, and batches of them for plain loops."""

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.files.lines import open_lines
from dragoman.data.preparation.prepare import prepare
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

_VALID = 200


def corpus(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Return the two files to train on: --source and --target, or Multi30k's."""
    if arguments.source and arguments.target:
        return arguments.source, arguments.target
    if "DRAGOMAN_DATA" not in os.environ:
        sys.exit("give --source and --target, or set DRAGOMAN_DATA to the folder that holds multi30k/")
    folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    return folder / "train.en.gz", folder / "train.de.gz"


def tokenise(source: Path, target: Path, pieces: int) -> tuple[list[list[int]], list[list[int]], int]:
    """Return the ids of both sides with a joint vocabulary learned from them, and its size."""
    sources, targets = list(open_lines(source)), list(open_lines(target))
    tokenizer = train_tokenizers(TextConfig(subword=BPEConfig(size=pieces), shared=True), sources, targets).source
    return tokenizer.encode_batch(sources), tokenizer.encode_batch(targets), tokenizer.size


def write_corpus(folder: Path, source: Path, target: Path, pieces: int) -> dict[str, Any]:
    """Prepare the corpus as `dragoman train` does, without cleaning, and write it for programs that read ids as words.

    Returns the content of corpus.json. train.source, train.target: one sentence of ids per line. valid.*: the first of
    them, for programs that require a validation set.
    """
    text = TextConfig(subword=BPEConfig(size=pieces), shared=True)
    given = CorpusConfig(source=source.resolve(), target=target.resolve())
    prepared = prepare(given, CleaningConfig(enabled=False), text, folder / "dragoman" / "prepared")
    pairs = [prepared.dataset[row] for row in range(len(prepared.dataset))]
    sources, targets = ([pair[side].tolist() for pair in pairs] for side in (0, 1))
    size = prepared.tokenizers.target.size
    for side, sentences in (("source", sources), ("target", targets)):
        lines = [" ".join(map(str, ids)) + "\n" for ids in sentences]
        (folder / f"train.{side}").write_text("".join(lines), "utf-8")
        (folder / f"valid.{side}").write_text("".join(lines[:_VALID]), "utf-8")
    for side, path in (("source", source), ("target", target)):
        raw = "".join(line + "\n" for line, _ in zip(open_lines(path), range(_VALID), strict=False))
        (folder / f"valid.{side}.txt.gz").write_bytes(gzip.compress(raw.encode()))
    facts = {
        "size": size,
        "pad": PAD,
        "bos": BOS,
        "eos": EOS,
        "unk": UNK,
        "source": str(source.resolve()),
        "target": str(target.resolve()),
        "pairs": len(sources),
        "source_tokens": sum(map(len, sources)) + len(sources),
        "target_tokens": sum(map(len, targets)) + len(targets),
    }
    (folder / "corpus.json").write_text(json.dumps(facts, indent=1), "utf-8")
    return facts


def lengths(folder: Path) -> np.ndarray:
    """(N, 2) int32: tokens of source and target, without special symbols."""
    sides = [[len(line.split()) for line in (folder / f"train.{side}").open()] for side in ("source", "target")]
    return np.array(sides, np.int32).T


def make_batches(sources: list[list[int]], targets: list[list[int]], tokens: int) -> list[Batch]:
    """Yield batches of sentences of similar length, of at most `tokens` (sentences × longer side), in random order."""
    sizes = np.array([(len(source), len(target)) for source, target in zip(sources, targets, strict=True)], np.int32)
    plan = plan_epoch(sizes, BatchConfig(tokens=tokens), seed=1, epoch=0)
    return [collate([sources[row] for row in rows], [targets[row] for row in rows], rows) for rows in plan.batches]


def windows(batches: list[Batch], steps: int) -> Iterator[list[Batch]]:
    """Yield groups of `steps` batches, repeated forever."""
    start = 0
    while True:
        yield [batches[(start + step) % len(batches)] for step in range(steps)]
        start += steps
