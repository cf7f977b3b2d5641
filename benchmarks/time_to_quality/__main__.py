"""Minutes of training to a validation BLEU: dragoman compared with other programs' own recipes, on one machine.

    python benchmarks/time_to_quality                          # all installed programs, 44 minutes of updates each
    python benchmarks/time_to_quality --only dragoman plain    # only these; --list shows all
    python benchmarks/time_to_quality --python joey=venv/bin/python --python fairseq=venv/bin/python
    python benchmarks/time_to_quality --only fairseq joey --minutes 240    # continues the peers after 44 minutes
    python benchmarks/time_to_quality --report [OTHER/results.jsonl …]     # table and picture, also of other results

Multi30k, English to German, from $DRAGOMAN_DATA/multi30k: trained on train, scored on val, without a test set. The
programs, each with its own recipe:

dragoman           `dragoman train` with two files and their validation files, and --minutes as train.max_minutes
dragoman-912dc44   the Multi30k recipe of commit 912dc44 (in recipes/, with all settings)
fairseq            fairseq 0.12.2, or fairseq-fixed 0.12.3.1 for Python 3.11: the IWSLT'14 command of its
                   examples/translation/README.md, transformer_iwslt_de_en
joey               Joey NMT 2.3.0 (configs/iwslt14_deen_bpe.yaml of its version 2): width 256, 6 + 6 layers, plateau
plain, plain-0.3   a loop around torch.nn.Transformer's layers as in benchmarks/training (width 256, 3 + 3 layers, Adam,
                   warm-up of 400 updates to 1e-3, inverse square root, 4096 tokens), dropout 0.1, torch's default, or
                   0.3; bfloat16 if dragoman would choose it

The peers' recipes are for small corpora of another language pair. Deviations from them: case is kept, because cased
BLEU is scored; fairseq, Joey NMT and the plain loop use the same 10,000 joint SentencePiece units (fairseq's recipe:
10,000 joint merges after Moses tokenisation; Joey NMT's: 32,000, which would be words on this corpus). Each program is
one process with --threads CPU threads, with tcmalloc if it is installed.

The clock counts only updates, including waiting for data: for all programs alike it excludes start-up, data
preparation, vocabularies, checkpoints and validations. The time of a program's own validations is reported relative to
the sum ("own validations"): dragoman makes them, and Joey NMT, whose schedule needs them; fairseq and the plain loop
make none here. dragoman's limit includes its own validations and checkpoints, so its updates end before the others'; it
may also end by its patience. Its learning rate is fitted to the limit, so each limit is a separate run and row. The
times of several sessions are summed; updates repeated after a kill count once.

A point of the curve is measured every --every minutes, later every tenth of the elapsed time, at the same minutes for
all, outside the clock: the program saves a checkpoint and translates val itself, greedily. dragoman uses the parameters
that it validates (the moving average, if there is one); its last point is its final model. All are scored by the same
call: sacreBLEU of detokenised, cased text. Minutes to a threshold are interpolated linearly between two points; a dash
means that no point reaches it. Target tokens per second are of each program's own units, so they compare speed only
roughly. "Cores busy" is CPU time over wall time: if it is far below the number of threads, the machine was busy
otherwise and the minutes are not reliable. In brackets: the ratio to dragoman's minutes in its first row.

A benchmark that was killed by any signal and started again with the same options continues from the newest checkpoints.
Joey NMT then restarts its epoch, as it always does. Finished runs are not repeated; each result is a line of
results.jsonl in --out, which also contains table.md and curves.png.
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
    """Make the missing runs, then the table and the picture."""
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
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/time_to_quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=[each.name for each in CONTENDERS])
    parser.add_argument("--list", action="store_true", help="list the programs without running any")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH", help="its interpreter")
    parser.add_argument("--minutes", type=float, default=44.0, help="of updates, a run (44)")
    parser.add_argument(
        "--every", type=float, default=0.5, help="minimum number of minutes between points of the curve (0.5)"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="CPU threads (one per core)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/time_to_quality"))
    parser.add_argument(
        "--report", nargs="*", type=Path, metavar="FILE", help="run nothing; also read these result files"
    )
    return parser


def make(arguments: argparse.Namespace) -> bool:
    """Run one contender after another; failures are reported. Returns whether all succeeded."""
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
