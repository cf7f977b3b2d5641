"""Minutes of training to a validation BLEU: dragoman beside other programs' own recipes, on one machine.

    python benchmarks/time_to_quality                          # all that are installed, 44 minutes of updates each
    python benchmarks/time_to_quality --only dragoman plain    # of these; --list shows them
    python benchmarks/time_to_quality --python joey=venv/bin/python --python fairseq=venv/bin/python
    python benchmarks/time_to_quality --only fairseq joey --minutes 240    # peers go on where 44 minutes left them
    python benchmarks/time_to_quality --report [OTHER/results.jsonl …]     # table and picture again, also of others

Multi30k, English to German, from $DRAGOMAN_DATA/multi30k: train to learn from, val to be scored on, no test set. Who
takes part, each with its own recipe:

dragoman           `dragoman train` with two files and their validation files, and --minutes as train.max_minutes
dragoman-912dc44   the Multi30k recipe as it stood at commit 912dc44 (recipes/ has it with all settings filled in)
fairseq            fairseq 0.12.2, or fairseq-fixed 0.12.3.1 for Python 3.11: the IWSLT'14 command of its
                   examples/translation/README.md, transformer_iwslt_de_en
joey               Joey NMT 2.3.0 (configs/iwslt14_deen_bpe.yaml of its version 2): width 256, 6 + 6 layers, plateau
plain, plain-0.3   a loop around torch.nn.Transformer's layers as in benchmarks/training (width 256, 3 + 3 layers, Adam,
                   warm-up of 400 updates to 1e-3, inverse square root, 4096 tokens), dropout 0.1, torch's default, or
                   0.3; bfloat16 where dragoman would choose it

The peers' recipes are for small corpora of another language pair. What had to be decided: case is kept, since cased
BLEU is scored; fairseq, Joey NMT and the plain loop have the same 10,000 joint sentencepieces (fairseq's recipe: 10,000
joint merges after Moses' tokeniser; Joey NMT's: 32,000, which would be words on this corpus). Each is one process with
--threads threads of a CPU, and with tcmalloc where it is installed.

The clock counts updates alone, waiting for data included: no start, no preparation of data, no vocabulary, no
checkpoint, no validation, for nobody. What a program's own validations take beside that is reported as their share of
the two ("own validations"): of dragoman, and of Joey NMT, whose schedule needs them; fairseq and the plain loop make
none here. dragoman's limit has its own validations and checkpoints in it, so its updates end before the others'; it may
also end by its patience. Its learning rate is fitted to the limit, so each limit is a run and a row of its own. Several
sittings add up; what a kill destroyed and is made again counts once.

A point of the curve is made every --every minutes, later every tenth of the time, for all alike, outside the clock: the
program stores a checkpoint, and translates val by itself, greedily. For dragoman these are the parameters that it
validates (the moving average, if there is one); its last point is the model that it leaves. All are scored by the same
call: sacreBLEU of detokenised, cased text. Minutes to a threshold are read off the straight line between two points; a
dash says that no point has it. Target tokens a second are of the program's own pieces, so they compare speed roughly.
"Cores busy" is CPU time over time: where it is far below the threads, something else ran on the machine, and the
minutes are not worth writing down. In brackets: how many times dragoman's minutes, those of its first row.

Killed, by whatever signal, and started again with the same options, it goes on from the newest checkpoints. Joey NMT
then begins its epoch anew, as it always does. A finished run is not made again; its result is a line of results.jsonl
in --out, where table.md and curves.png are, too.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from contenders import CONTENDERS, chosen
from machine import machine
from picture import draw
from results import add, read
from table import table


def main() -> None:
    """Make the runs that are not done, then the table and the picture."""
    arguments = options().parse_args()
    if arguments.list:
        print("\n".join(f"{each.name:18} {each.title}" for each in CONTENDERS))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    complete = make(arguments) if arguments.report is None else True
    lines = read([arguments.out / "results.jsonl", *(arguments.report or [])])
    text = table(lines)
    (arguments.out / "table.md").write_text(text + "\n", "utf-8")
    draw(lines, arguments.out / "curves.png")
    print(text)
    sys.exit(not complete)


def options() -> argparse.ArgumentParser:
    """Of the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/time_to_quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=[each.name for each in CONTENDERS])
    parser.add_argument("--list", action="store_true", help="show who takes part, and run nothing")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH", help="its interpreter")
    parser.add_argument("--minutes", type=float, default=44.0, help="of updates, a run (44)")
    parser.add_argument("--every", type=float, default=0.5, help="minutes between points of the curve at least (0.5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="CPU threads (one a core)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/time_to_quality"))
    parser.add_argument(
        "--report", nargs="*", type=Path, metavar="FILE", help="run nothing; also read these files of results"
    )
    return parser


def make(arguments: argparse.Namespace) -> bool:
    """One contender after the other; one that fails is told, and the next one begins. Gives whether all got there."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))
    import torch
    from pieces import write_corpus
    from sitting import Conditions, Failed, Run, interpreter

    from dragoman.training.machine.precision import choose_precision

    if "DRAGOMAN_DATA" not in os.environ:
        sys.exit("set DRAGOMAN_DATA to the folder that holds multi30k/")
    if find_spec("sentencepiece") is None:
        sys.exit(f"sentencepiece is not installed for {sys.executable}: pip install 'dragoman[hf]'")
    write_corpus(arguments.out / "corpus", Path(os.environ["DRAGOMAN_DATA"]) / "multi30k")
    torch.set_num_threads(arguments.threads)
    bf16 = choose_precision("auto", torch.device("cpu")) == torch.bfloat16
    conditions = Conditions(
        arguments.out / "corpus",
        machine(),
        arguments.threads,
        arguments.minutes,
        arguments.every,
        arguments.seed,
        bf16,
    )
    pythons = dict(each.split("=", 1) for each in arguments.python)
    complete = True
    for contender in chosen(arguments.only):
        try:
            run = Run(contender, conditions, arguments.out)
            if not run.done:
                print(f"{contender.name}: {contender.title}", flush=True)
                run.sit(interpreter(pythons, contender))
        except Failed as why:
            print(f"FAILED {contender.name}: {why}", flush=True)
            complete = False
            continue
        add(run.line(), arguments.out / "results.jsonl")
    return complete


if __name__ == "__main__":
    main()
