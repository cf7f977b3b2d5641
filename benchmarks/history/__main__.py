"""The history of machine translation in one table and picture: the quality and the training time of each system.

    python benchmarks/history                                  # every system on every corpus, 20 minutes per run
    python benchmarks/history --corpus multi30k --only rnn rnn-attention transformer
    python benchmarks/history --minutes 44 --out runs/history-44
    python benchmarks/history --report runs/history            # table.md and history.png of the finished systems

The corpora are Multi30k and Tatoeba, English to German, and WikiText-2 for language models, all from $DRAGOMAN_DATA.
`--list` prints the systems with their settings. Each system is trained by one `dragoman train` command with one thread.
Neural systems have the time limit --minutes; statistical systems and n-gram models are estimated from counts and end by
themselves. Each system is evaluated by one `dragoman evaluate` command on the test set (Multi30k: test_2016_flickr;
Tatoeba: test) or, for language models, on the validation set, with the search settings of the model. The settings are
fixed in systems.py, so no decision depends on a test set. Validation sets are used for training curves, early stopping
and the weights of statistical systems.

A finished system is a line of results.jsonl in --out and is not repeated. If the benchmark was killed, the same command
continues with the unfinished system at its last checkpoint. The table reports minutes of training, which depend on the
other programs of the machine, and CPU minutes of the processes, which hardly do.
"""

import argparse
from pathlib import Path

from report import draw, table
from runs import finished, measure
from systems import CORPORA, Corpus, System


def main() -> None:
    """Measure the missing systems, then write the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", nargs="+", choices=list(CORPORA), default=list(CORPORA), help="corpora (default: all)"
    )
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="systems to measure (default: all)")
    parser.add_argument("--minutes", type=float, default=20.0, help="time limit of a training run (20)")
    parser.add_argument("--out", type=Path, default=Path("runs/history"), help="folder of the runs and results")
    parser.add_argument("--list", action="store_true", help="print the systems with their settings")
    parser.add_argument("--report", type=Path, metavar="FOLDER", help="write the table and the picture of FOLDER")
    arguments = parser.parse_args()
    pairs = _selected(parser, arguments.corpus, arguments.only)
    if arguments.list:
        for corpus, system in pairs:
            print(f"{corpus.name} {system.name}: dragoman train {system.recipe} {' '.join(map(repr, system.settings))}")
        return
    folder = arguments.report or arguments.out
    if arguments.report is None:
        for corpus, system in pairs:
            measure(corpus, system, arguments.minutes, folder)
    lines = finished(folder)
    if not lines:
        parser.error(f"{folder} contains no results")
    (folder / "table.md").write_text(table(lines) + "\n", encoding="utf-8")
    draw(lines, folder / "history.png")
    print(table(lines))


def _selected(
    parser: argparse.ArgumentParser, corpora: list[str], only: list[str] | None
) -> list[tuple[Corpus, System]]:
    pairs = [(CORPORA[name], system) for name in corpora for system in CORPORA[name].systems]
    names = {system.name for _, system in pairs}
    if unknown := [name for name in only or () if name not in names]:
        parser.error(f"no such system: {', '.join(unknown)}; --list prints all")
    return [(corpus, system) for corpus, system in pairs if only is None or system.name in only]


if __name__ == "__main__":
    main()
