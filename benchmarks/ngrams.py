"""n-gram language models on WikiText-2: perplexity, seconds and memory of orders 1 to 5, queries per second, and a
comparison with KenLM's lmplz.

    python benchmarks/ngrams.py OUT [--orders 1 2 3 4 5] [--lmplz PATH] [--prune 0 0 1]

DRAGOMAN_DATA must name the folder that contains wikitext-2/. Each model is trained in its own process, whose CPU
seconds and peak memory include the start of Python, the vocabulary and the validation. Cleaning is switched off, so
that all lines are counted. --lmplz compares every probability and back-off weight with those of that program, for text
in which `<unk>` is an ordinary word, because lmplz rejects the symbol, without pruning and with --prune.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import dragoman
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import load_model_folder
from dragoman.models.kinds.ngram import NgramModel, NgramTable
from dragoman.statistical.ngrams.arpa_reader import read_arpa
from dragoman.statistical.ngrams.counts import NgramCounts, count_ngrams
from dragoman.statistical.ngrams.kneser_ney import ModifiedKneserNeyConfig, adjusted_counts, interpolate
from dragoman.statistical.ngrams.query import NgramQuery
from dragoman.statistical.ngrams.tables import build_tables
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS
from dragoman.text.vocabularies.whitespace import WhitespaceConfig

_STAND_IN = "unknown-word"
_MIB = 2**10
"""Kibibytes per mebibyte; `ru_maxrss` is in KiB."""


def main() -> None:
    """Parse the arguments, run the measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--lmplz", type=Path)
    parser.add_argument("--prune", type=int, nargs="*", default=[])
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    texts = {name: _unpack(name, out) for name in ("train", "valid", "test")}
    print("order  n-grams      CPU s  wall s  MiB    valid   test")
    for order in arguments.orders:
        print(_measure(order, texts, out), flush=True)
    print(_query_speed(out / f"order-{max(arguments.orders)}", texts["test"]))
    print(_largest_deviation(out / f"order-{max(arguments.orders)}", texts["test"]))
    if arguments.lmplz is not None:
        text = out / "ordinary.txt"
        text.write_text(texts["train"].read_text(encoding="utf-8").replace("<unk>", _STAND_IN), encoding="utf-8")
        for order in arguments.orders:
            for prune in [[], arguments.prune[:order]] if arguments.prune else [[]]:
                print(_compare(order, text, out / "lmplz.arpa", arguments.lmplz, prune), flush=True)


def _unpack(name: str, out: Path) -> Path:
    source = Path(os.environ["DRAGOMAN_DATA"]) / "wikitext-2" / f"wiki.{name}.tokens.gz"
    path = out / f"{name}.txt"
    path.write_bytes(gzip.decompress(source.read_bytes()))
    return path


def _train(order: int, train: Path, valid: Path, folder: Path) -> tuple[float, float, float]:
    """Train a model. Returns CPU seconds, wall seconds and peak MiB."""
    recipe = {
        "task": {"kind": "ngram_language_model"},
        "data": {"train": {"text": str(train)}, "valid": {"text": str(valid)}, "cleaning": {"enabled": False}},
        "text": {"subword": {"kind": "whitespace"}, "normalization": "none"},
        "model": {"order": order},
        "out": str(folder),
    }
    path = folder.parent / f"{folder.name}.yaml"
    path.write_text(dump_yaml(recipe), encoding="utf-8")
    command = [sys.executable, "-m", "dragoman", "train", str(path)]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the training of {folder} failed")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / _MIB


def _measure(order: int, texts: dict[str, Path], out: Path) -> str:
    folder = out / f"order-{order}"
    cpu, wall, memory = _train(order, texts["train"], texts["valid"], folder)
    model = dragoman.LanguageModel.load(folder, "cpu")
    perplexities = [dragoman.score(model, texts[name], batch_size=256).total.per_word for name in ("valid", "test")]
    sizes = sum(len(table.keys) for table in load_model_folder(folder, torch.device("cpu")).model.tables)
    return (
        f"{order:5}  {sizes:>9,}  {cpu:7.1f} {wall:7.1f} {memory:5.0f}  {perplexities[0]:7.2f} {perplexities[1]:7.2f}"
    )


def _query_speed(folder: Path, text: Path) -> str:
    loaded = load_model_folder(folder, torch.device("cpu"))
    lines = loaded.tokenizers.target.encode_batch(text.read_text(encoding="utf-8").splitlines())
    ids = [[BOS, *line, EOS] for line in lines]
    query = NgramQuery(loaded.model)
    started = time.process_time()
    scores = query.score_texts(ids)
    seconds = time.process_time() - started
    model, count = dragoman.LanguageModel(loaded.model, loaded.tokenizers.target), sum(map(len, scores))
    started = time.process_time()
    model.score(text.read_text(encoding="utf-8").splitlines(), batch_size=256)
    whole = time.process_time() - started
    return json.dumps(
        {
            "queries": count,
            "C library, queries per CPU second": round(count / seconds),
            "LanguageModel.score with tokenisation, tokens per CPU second": round(count / whole),
        }
    )


def _largest_deviation(folder: Path, text: Path) -> str:
    """Return the largest deviation of Σ p from 1 in 1,000 random contexts of a text."""
    loaded = load_model_folder(folder, torch.device("cpu"))
    model, lines = loaded.model, loaded.tokenizers.target.encode_batch(text.read_text(encoding="utf-8").splitlines())
    ids = torch.tensor([[token for line in lines for token in (BOS, *line)]])
    generator = torch.Generator().manual_seed(1)
    chosen = torch.randint(ids.size(1), (1_000,), generator=generator)
    contexts = model.contexts(ids, None)[0, chosen]
    sums = torch.cat([(10 ** model.distributions(part).double()).sum(1) for part in contexts.split(50)])
    return json.dumps({"largest deviation of the sum from 1 in 1,000 contexts": float((sums - 1).abs().max())})


def _compare(order: int, text: Path, arpa: Path, lmplz: Path, prune: list[int]) -> str:
    """Return the largest differences between the estimates and those of lmplz for the same text, in log10.

    "corrected" also counts as lmplz does: its statistics for the discounts contain the last n-gram of each order below
    the highest with its number of occurrences instead of its adjusted count.
    """
    lines = text.read_text(encoding="utf-8").split("\n")[:-1]
    tokenizer = WhitespaceConfig().learn(lines)
    tokens = np.array([token for ids in tokenizer.encode_batch(lines) for token in (BOS, *ids, EOS)])
    options = ["--prune", *map(str, prune)] if prune else []
    with text.open("rb") as source, arpa.open("wb") as target:
        command = [lmplz, "-o", str(order), "-S", "20%", *options]
        process = subprocess.Popen(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("lmplz failed")
    ids = {word: number for number, word in enumerate(tokenizer.symbols) if number >= len(SPECIAL_SYMBOLS)}
    theirs = NgramModel.of(read_arpa(arpa, ids, tokenizer.size).tables)
    started = time.process_time()
    counts = count_ngrams(tokens, order, tokenizer.size)
    own = NgramModel.of(ModifiedKneserNeyConfig(prune=tuple(prune)).estimate(counts))
    seconds = time.process_time() - started
    corrected = NgramModel.of(_estimate_as_lmplz(counts, tokens, prune))
    result = {
        "order": order,
        "prune": prune,
        "same n-grams": all(torch.equal(a.keys, b.keys) for a, b in zip(own.tables, theirs.tables, strict=True)),
        "probabilities": _largest(own, theirs, 1),
        "weights": _largest(own, theirs, 2),
        "corrected probabilities": _largest(corrected, theirs, 1),
        "corrected weights": _largest(corrected, theirs, 2),
        "counting and estimation, CPU s": round(seconds, 1),
        "lmplz, CPU s": round(usage.ru_utime + usage.ru_stime, 1),
    }
    return json.dumps(result)


def _estimate_as_lmplz(counts: NgramCounts, tokens: NDArray[np.int64], prune: list[int]) -> list[NgramTable]:
    """Return the tables with discounts from the statistics of lmplz."""
    config, adjusted = ModifiedKneserNeyConfig(prune=tuple(prune)), adjusted_counts(counts)
    discounts = []
    for index, (order, values) in enumerate(zip(counts.orders, adjusted, strict=True)):
        values = values.copy()
        ngram = _last_ngram(tokens, len(counts.orders))[-index - 1 :]
        if index < len(counts.orders) - 1 and BOS not in ngram:
            number = 0
            for position, table in zip(ngram, counts.orders, strict=False):
                number = int(np.searchsorted(table.keys, number * counts.vocabulary + position))
            values[number] = order.counts[number]
        discounts.append(config.discounts(values) or config.fallback)
    thresholds = [prune[min(index, len(prune) - 1)] if prune and index else 0 for index in range(len(adjusted))]
    keep = [order.counts > limit for order, limit in zip(counts.orders, thresholds, strict=True)]
    return build_tables(counts, *interpolate(counts, adjusted, discounts, keep), keep)


def _last_ngram(tokens: NDArray[np.int64], order: int) -> list[int]:
    """Return the n-gram that lmplz processes last: that with the largest last token, next-to-last token, and so on.

    lmplz numbers words by their first occurrence. n-grams of texts with fewer tokens are padded with BOS.
    """
    ids, first = np.unique(tokens, return_index=True)
    rank = {int(token): position for token, position in zip(ids, first, strict=True)} | {BOS: -2, EOS: -1}
    last = max(rank, key=lambda token: rank[token])
    ngrams = []
    for end in np.flatnonzero(tokens == last).tolist():
        ngram = tokens[max(0, end - order + 1) : end + 1].tolist()
        start = max((index for index, token in enumerate(ngram) if token == BOS), default=0)
        ngrams.append([BOS] * (order - len(ngram) + start) + ngram[start:])
    return max(ngrams, key=lambda ngram: [rank[token] for token in reversed(ngram)])


def _largest(own: NgramModel, theirs: NgramModel, column: int) -> list[float]:
    """Return the largest difference of each order. column: 1 for probabilities, 2 for back-off weights."""
    pairs = zip(own.tables, theirs.tables, strict=True)
    return [float(f"{(a[column] - b[column]).abs().max():.1e}") for a, b in pairs if a[column] is not None]


if __name__ == "__main__":
    main()
