"""A probabilistic context-free grammar, estimated from a treebank by NLTK, beside trained parsers.

    python benchmarks/parsing --sentences 100
    python benchmarks/parsing --models runs/wsj-parsing runs/wsj-chart
    python benchmarks/parsing --train "$DRAGOMAN_DATA/craft-treebank/train.mrg.xz" \
        --test "$DRAGOMAN_DATA/craft-treebank/test.mrg.xz" --sentences 100

By default, the treebank is the 10% sample of the Penn Treebank in $DRAGOMAN_DATA: files 0001 to 0169 for training, and
0170 to 0199 for the test. The grammar has Chomsky normal form with horizontal Markov order 2 and the label of the
parent. Words that occur once are replaced by classes of their shape. grammar.py parses with it by CKY, because NLTK's
own parsers try every rule for every span, and keeps the best 40 labels of each span. --sentences parses only the first
N test sentences, and --longest leaves out longer ones, for all systems alike. A sentence that the grammar does not
cover is a right-branching tree. All systems are scored as by EVALB with the parameters of COLLINS.prm.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from grammar import GrammarParser

from dragoman.data.labelled.corpus import TreebankCorpusConfig
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.data.labelled.read import read_parsed
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.predictor import Predictor
from dragoman.metrics.labels.parsing import parsing_report


def main() -> None:
    """Print the metrics of the grammar and of the models on the same sentences."""
    arguments = options()
    longest = arguments.longest or float("inf")
    chosen = [each for each in read(arguments.test, arguments.tag) if len(each.words) <= longest]
    chosen = chosen[: arguments.sentences]
    gold = [each.tree for each in chosen if each.tree is not None]
    print(f"{len(gold):,} test sentences with {sum(len(each.words) for each in chosen):,} words")
    for folder in arguments.models:
        started = time.process_time()
        predictions = [each for each in Predictor.load(folder).predict(chosen) if isinstance(each, TreePrediction)]
        print(f"\n{folder}: {time.process_time() - started:.1f} s of processor time")
        repairs = [each.repairs for each in predictions]
        print(parsing_report(gold, [each.tree for each in predictions], repairs=repairs).text())
    if arguments.no_grammar:
        return
    started = time.process_time()
    parser = GrammarParser([each.tree for each in read(arguments.train, None) if each.tree is not None])
    print(f"\ngrammar: {parser.rules:,} rules, estimated in {time.process_time() - started:.1f} s of processor time")
    started = time.process_time()
    trees = [parser.parse(each.words) for each in chosen]
    print(f"parsed in {time.process_time() - started:.1f} s; not covered: {parser.failures:,} sentences")
    print(parsing_report(gold, trees).text())


def read(paths: Sequence[Path], tag: str | None) -> list[ParsedSentence]:
    """Return the sentences of treebanks."""
    return read_parsed([TreebankCorpusConfig(path=path, tag=tag) for path in paths])


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/parsing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = Path(os.environ.get("DRAGOMAN_DATA", "data")) / "treebank/treebank.zip/treebank/combined"
    train, test = ["wsj_00??.mrg", "wsj_01[0-6]?.mrg"], ["wsj_017?.mrg", "wsj_01[89]?.mrg"]
    parser.add_argument("--train", nargs="+", type=Path, default=[folder / name for name in train])
    parser.add_argument("--test", nargs="+", type=Path, default=[folder / name for name in test])
    parser.add_argument("--models", nargs="*", type=Path, default=[], help="folders of trained parsers")
    parser.add_argument("--tag", help="tag of the treebank, for models that were trained with tags")
    parser.add_argument("--sentences", type=int, help="number of test sentences (all)")
    parser.add_argument("--longest", type=int, help="maximum length of a test sentence in words")
    parser.add_argument("--no-grammar", action="store_true", help="score only the models")
    return parser.parse_args()


if __name__ == "__main__":
    main()
