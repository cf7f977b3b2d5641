"""Pre-training and fine-tuning on the data sets of docs/how-to/models/classification.md, with several seeds.

    python benchmarks/understanding --list
    python benchmarks/understanding sst2 trec       # these rows, and before them the rows that they start from
    python benchmarks/understanding                 # all rows: several hours on two cores
    python benchmarks/understanding --report        # the table of all results so far

The data sets are read from $DRAGOMAN_DATA. recipes/ contains the settings of each row. --out is the folder of the
results: the texts that are derived from the data sets, the runs, and results.jsonl with one line per seed. Runs that
are complete are not repeated, and a run that was killed is resumed. Test sets are scored once per seed, after training;
training and the choice of a checkpoint use the other parts only.

"Minutes" is the CPU time of one training run, summed over threads, so it hardly depends on other programs. A text that
the benchmark derives from a data set differs from it as described in parts.py.
"""

import argparse
import os
from pathlib import Path

from parts import write_parts
from results import read, table
from rows import ROWS, by_name
from training import complete


def main() -> None:
    """Complete the chosen rows, and print the table."""
    parser = options()
    arguments = parser.parse_args()
    names = [row.name for row in ROWS]
    if unknown := [name for name in arguments.rows if name not in names]:
        parser.error(f"there is no row {unknown[0]}; the rows are {', '.join(names)}")
    if arguments.list:
        print("\n".join(f"{row.name:20} {row.title}" for row in ROWS))
        return
    out: Path = arguments.out.absolute()
    if not arguments.report:
        if "DRAGOMAN_DATA" not in os.environ:
            raise SystemExit("set DRAGOMAN_DATA to the folder that holds the data sets")
        data = Path(os.environ["DRAGOMAN_DATA"])
        write_parts(data, out)
        for name in arguments.rows or names:
            complete(by_name(name), data, out, arguments.seeds)
    print(table(read(out / "results.jsonl")))


def options() -> argparse.ArgumentParser:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/understanding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows to complete (all)")
    parser.add_argument("--list", action="store_true", help="list the rows without running any")
    parser.add_argument("--report", action="store_true", help="run nothing, and print the table")
    parser.add_argument("--seeds", type=int, help="number of seeds (5, or 3 for large data sets)")
    parser.add_argument("--out", type=Path, default=Path("runs/understanding"))
    return parser


if __name__ == "__main__":
    main()
