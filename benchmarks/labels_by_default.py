"""What a classifier gets that is trained with the defaults, beside the simple tool: TF-IDF and a linear model.

    python benchmarks/labels_by_default.py [trec sst2 imdb] --out runs/labels-by-default [KEY=VALUE ...]

The data sets are read from $DRAGOMAN_DATA. The command is `dragoman train task.kind=classification` with training data,
and with validation data where the data set has them; otherwise the run holds out its own. The peers are scikit-learn's
TF-IDF of words and pairs of words with a linear SVM and with logistic regression, on the same training texts; they
need no validation set, so they also read what the run holds out. KEY=VALUE settings, such as
model.preset=tiny, are passed to the training. Seconds are processor time, which hardly depends on other programs.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dragoman
from dragoman.checkpoint.folder import read_config
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.read import read_labelled

SETS = {
    "trec": ("trec/train.txt.gz", None, "trec/test.txt.gz"),
    "sst2": ("sst2/train.tsv.gz", "sst2/dev.tsv.gz", "sst2/test.tsv.gz"),
    "imdb": ("imdb5k/train.jsonl.gz", "imdb5k/dev.jsonl.gz", "imdb5k/test.jsonl.gz"),
}
_MARKS = {"sublinear_tf": True, "token_pattern": r"\w+|[^\w\s]"}
PEERS = {
    "linear SVM": ({}, LinearSVC),
    "linear SVM, with punctuation and 1 + log tf": (_MARKS, LinearSVC),
    "logistic regression": ({}, LogisticRegression),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"any of {', '.join(SETS)} (all)")
    parser.add_argument("--out", type=Path, required=True)
    chosen, settings = parser.parse_known_args()
    names = [each for each in chosen.sets if "=" not in each] or list(SETS)
    settings += [each for each in chosen.sets if "=" in each]
    data = Path(os.environ["DRAGOMAN_DATA"])
    print("| data set | system | test accuracy | seconds |\n| --- | --- | ---: | ---: |")
    for name in names:
        train, valid, test = (None if path is None else data / path for path in SETS[name])
        assert train is not None and test is not None
        out = chosen.out / name
        command = [sys.executable, "-m", "dragoman", "train", "task.kind=classification", f"data.train={train}"]
        command += [] if valid is None else [f"data.valid={valid}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*command, f"out={out}", *settings], check=True, stdout=sys.stderr)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        report = dragoman.evaluate_labels(out, test=test, quiet=True).reports[0]
        accuracy = next(score for score in report.scores if score.key == "accuracy").value
        print(f"| {name} | dragoman: {read_config(out)['model']['preset']} | {accuracy:.1f} | {seconds:.0f} |")
        (texts, labels), (test_texts, test_labels) = read(train), read(test)
        for title, (settings_of_words, peer) in PEERS.items():
            started = time.process_time()
            words = TfidfVectorizer(ngram_range=(1, 2), **settings_of_words)
            model = make_pipeline(words, peer()).fit(texts, labels)
            accuracy = 100 * model.score(test_texts, test_labels)
            seconds = time.process_time() - started
            print(f"| {name} | TF-IDF, {title} | {accuracy:.1f} | {seconds:.0f} |", flush=True)


def read(path: Path) -> tuple[list[str], list[str]]:
    """Return the texts and the labels of a file."""
    examples = read_labelled(LabelledCorpusConfig(path=path))
    return [each.texts[0] for each in examples], [str(each.label) for each in examples]


if __name__ == "__main__":
    main()
