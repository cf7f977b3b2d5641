"""What a classifier or tagger gets that is trained with the defaults, beside the simple tool.

    python -m venv judges && judges/bin/pip install python-crfsuite
    python benchmarks/labels_by_default.py [SET …] --out runs/labels --judges judges/bin/python [KEY=VALUE …]

The data sets are read from $DRAGOMAN_DATA. The command is `dragoman train task.kind=classification` or `tagging` with
training data, and with validation data where the data set has them; otherwise the run holds out its own. The peers of
classifiers are scikit-learn's TF-IDF of words and pairs of words with a linear SVM and with logistic regression, that
of taggers a linear-chain CRF with hand-made features (`crf_tagger.py`), on the same training texts; they need no
validation set, so they also read what the run holds out. KEY=VALUE settings, such as model.preset=tiny, are passed to
the training. Seconds are processor time, which hardly depends on other programs.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dragoman
from dragoman.checkpoint.folder import read_config
from dragoman.data.labelled.corpus import LabelledCorpusConfig, TaggedCorpusConfig
from dragoman.data.labelled.read import read_labelled, read_tagged
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import tagging_report

SETS = {
    "trec": ("trec/train.txt.gz", None, "trec/test.txt.gz"),
    "sst2": ("sst2/train.tsv.gz", "sst2/dev.tsv.gz", "sst2/test.tsv.gz"),
    "imdb": ("imdb5k/train.jsonl.gz", "imdb5k/dev.jsonl.gz", "imdb5k/test.jsonl.gz"),
}
CHUNKS = {"train": "conll2000/train.txt", "test": "conll2000/test.txt"}
NAMES = {"train": "wnut17/train.conll.gz", "valid": "wnut17/dev.conll.gz", "test": "wnut17/test.conll.gz"}
TAGGED = {
    "conll2000": (CHUNKS, "word: 1, tag: 3", ["--columns=0"]),
    "conll2000-pos": (CHUNKS, "word: 1, tag: 3, features: [2]", ["--columns=1"]),
    "wnut17": (NAMES, "word: 1, tag: 2", ["--c1=0.1", "--c2=0.1", "--iterations=100"]),
}
_MARKS = {"sublinear_tf": True, "token_pattern": r"\w+|[^\w\s]"}
PEERS = {
    "linear SVM": ({}, LinearSVC),
    "linear SVM, with punctuation and 1 + log tf": (_MARKS, LinearSVC),
    "logistic regression": ({}, LogisticRegression),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"any of {', '.join((*SETS, *TAGGED))} (all)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--judges", help="Python interpreter of an environment with python-crfsuite")
    chosen, settings = parser.parse_known_args()
    names = [each for each in chosen.sets if "=" not in each] or [*SETS, *TAGGED]
    settings += [each for each in chosen.sets if "=" in each]
    data = Path(os.environ["DRAGOMAN_DATA"])
    print("| data set | system | test accuracy, or F1 of spans | seconds |\n| --- | --- | ---: | ---: |")
    for name in names:
        rows = (
            classifiers(name, data, chosen.out / name, settings)
            if name in SETS
            else taggers(name, data, chosen.out / name, settings, chosen.judges)
        )
        for system, score, seconds in rows:
            print(f"| {name} | {system} | {score:.1f} | {seconds:.0f} |", flush=True)


def train(out: Path, settings: list[str]) -> tuple[str, float]:
    """Train a model, and return its preset and the processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-m", "dragoman", "train", f"out={out}", *settings]
    subprocess.run(command, check=True, stdout=sys.stderr)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return f"dragoman: {read_config(out)['model']['preset']}", seconds


def value(report: Report, key: str) -> float:
    return next(score.value for score in report.scores if score.key == key)


def classifiers(name: str, data: Path, out: Path, settings: list[str]) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each system, its accuracy and its processor time."""
    train_path, valid, test = (None if path is None else data / path for path in SETS[name])
    assert train_path is not None and test is not None
    files = [f"data.train={train_path}", *([] if valid is None else [f"data.valid={valid}"])]
    system, seconds = train(out, ["task.kind=classification", *files, *settings])
    yield system, value(dragoman.evaluate_labels(out, test=test, quiet=True).reports[0], "accuracy"), seconds
    (texts, labels), (test_texts, test_labels) = read(train_path), read(test)
    for title, (settings_of_words, peer) in PEERS.items():
        started = time.process_time()
        words = TfidfVectorizer(ngram_range=(1, 2), **settings_of_words)
        model = make_pipeline(words, peer()).fit(texts, labels)
        accuracy = 100 * model.score(test_texts, test_labels)
        yield f"TF-IDF, {title}", accuracy, time.process_time() - started


def read(path: Path) -> tuple[list[str], list[str]]:
    """Return the texts and the labels of a file."""
    examples = read_labelled(LabelledCorpusConfig(path=path))
    return [each.texts[0] for each in examples], [str(each.label) for each in examples]


def taggers(
    name: str, data: Path, out: Path, settings: list[str], judges: str | None
) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each system, its F1 of spans as by conlleval, and its processor time."""
    parts, columns, peer = TAGGED[name]
    files = {part: out.with_name(f"{name}-{part}.conll") for part in parts}
    out.parent.mkdir(parents=True, exist_ok=True)
    for part, path in files.items():
        path.write_bytes(contents(data, parts[part]))
    known = [f"data.{part}={{path: {path}, {columns}}}" for part, path in files.items() if part != "test"]
    system, seconds = train(out, ["task.kind=tagging", *known, *settings])
    corpus = TaggedCorpusConfig.model_validate({"path": files["test"], **yaml.safe_load(f"{{{columns}}}")})
    test = read_tagged(corpus)
    gold = [list(each.tags or ()) for each in test]

    def f1(tags: list[list[str]]) -> float:
        return value(tagging_report(gold, tags, samples=0), "conlleval_f1")

    predicted: Any = dragoman.load(out).predict(test)
    yield system, f1([list(each.tags) for each in predicted]), seconds
    if judges is None:
        return
    found = out.with_name(f"{name}-crf.json")
    options = [*peer, *([f"--valid={files['valid']}"] if "valid" in files else [])]
    script = Path(__file__).with_name("crf_tagger.py")
    subprocess.run([judges, script, files["train"], files["test"], found, *options], check=True)
    result = json.loads(found.read_text())
    yield "CRF with hand-made features", f1(result["tags"]), result["seconds"]
    if "lowered" in result:
        yield "the same with a lower P(O)", f1(result["lowered"]), result["seconds"]


def contents(data: Path, path: str) -> bytes:
    """Return a file, decompressed."""
    if path.startswith("conll2000/"):
        with zipfile.ZipFile(data / "conll2000/conll2000.zip") as archive:
            return archive.read(path)
    return gzip.decompress((data / path).read_bytes())


if __name__ == "__main__":
    main()
