"""n-gram language models on WikiText-2: perplexity, seconds and memory of orders 1 to 5, queries per second, and a
comparison with KenLM's lmplz.

    python benchmarks/ngrams.py OUT [--orders 1 2 3 4 5] [--lmplz PATH] [--prune 0 0 1]

DRAGOMAN_DATA must name the folder that contains wikitext-2/. Each model is trained in its own process, whose CPU
seconds and peak memory include the start of Python, the vocabulary and the validation. Cleaning is switched off, so
that all lines are counted. --lmplz compares every probability and back-off weight with those of that program, for text
in which `<unk>` is an ordinary word, because lmplz rejects the symbol. --prune applies to this comparison.
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

import dragoman
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import load_model_folder
from dragoman.models.ngram import NgramModel
from dragoman.ngrams.arpa_reader import read_arpa
from dragoman.ngrams.query import NgramQuery
from dragoman.text.symbols import BOS, EOS, SPECIAL_SYMBOLS

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
        for order in arguments.orders:
            print(_compare(order, texts["train"], out, arguments.lmplz, arguments.prune), flush=True)


def _unpack(name: str, out: Path) -> Path:
    source = Path(os.environ["DRAGOMAN_DATA"]) / "wikitext-2" / f"wiki.{name}.tokens.gz"
    path = out / f"{name}.txt"
    path.write_bytes(gzip.decompress(source.read_bytes()))
    return path


def _train(order: int, train: Path, valid: Path, folder: Path, prune: list[int]) -> tuple[float, float, float]:
    """Train a model unless it exists. Returns CPU seconds, wall seconds and peak MiB."""
    recipe = {
        "task": {"kind": "ngram_language_model"},
        "data": {"train": {"text": str(train)}, "valid": {"text": str(valid)}, "cleaning": {"enabled": False}},
        "text": {"subword": {"kind": "whitespace"}, "normalization": "none"},
        "model": {"order": order},
        "smoothing": {"kind": "modified_kneser_ney", "prune": prune},
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
    cpu, wall, memory = _train(order, texts["train"], texts["valid"], folder, [])
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


def _compare(order: int, train: Path, out: Path, lmplz: Path, prune: list[int]) -> str:
    """Return the largest differences between a model and the one that lmplz estimates from the same text."""
    text = out / "ordinary.txt"
    text.write_text(train.read_text(encoding="utf-8").replace("<unk>", _STAND_IN), encoding="utf-8")
    thresholds = prune[:order]
    folder, arpa = out / f"lmplz-{order}-{'-'.join(map(str, thresholds))}", out / f"lmplz-{order}.arpa"
    own = _train(order, text, text, folder, thresholds)
    options = ["--prune", *map(str, thresholds)] if thresholds else []
    with text.open("rb") as source, arpa.open("wb") as target:
        process = subprocess.Popen([lmplz, "-o", str(order), "-S", "20%", *options], stdin=source, stdout=target)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("lmplz failed")
    loaded = load_model_folder(folder, torch.device("cpu"))
    tokenizer = loaded.tokenizers.target
    ids = {word: number for number, word in enumerate(tokenizer.symbols) if number >= len(SPECIAL_SYMBOLS)}
    theirs = NgramModel.of(read_arpa(arpa, ids, tokenizer.size).tables)
    same = all(torch.equal(a.keys, b.keys) for a, b in zip(loaded.model.tables, theirs.tables, strict=True))
    result = {
        "order": order,
        "prune": thresholds,
        "same n-grams": same,
        "probabilities": [_largest(a, b) for a, b in zip(*_values(loaded.model, theirs, 1), strict=True)]
        if same
        else [],
        "back-off weights": [_largest(a, b) for a, b in zip(*_values(loaded.model, theirs, 2), strict=True)]
        if same
        else [],
        "dragoman CPU s": round(own[0], 1),
        "lmplz CPU s": round(usage.ru_utime + usage.ru_stime, 1),
    }
    return json.dumps(result)


def _values(own: NgramModel, theirs: NgramModel, column: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    columns = ([table[column] for table in model.tables if table[column] is not None] for model in (own, theirs))
    first, second = columns
    return first, second


def _largest(own: torch.Tensor, theirs: torch.Tensor) -> float:
    return float(np.abs(own.double().numpy() - theirs.double().numpy()).max(initial=0.0))


if __name__ == "__main__":
    main()
