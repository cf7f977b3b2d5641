"""Memory, speed and kills of `dragoman translate` on a file of many distinct lines.

    python benchmarks/big_file.py --lines 10000 1000000 --kills 3

The lines are made here, no two alike, and so is the model: random parameters, 8 wide, one layer a side, in which every
line gives another translation. What is measured is all around the model, which a larger one would only slow down. Each
size is translated in a process of its own: its peak of resident memory (ru_maxrss), its time. The largest is translated
again, killed (SIGKILL) at random moments and resumed each time; its file must be the undisturbed one, byte by byte.
Lines drawn at random are translated once more, on their own, and must be where they belong.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman import Translator
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import model_parameters, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.tokenizers import TextConfig, train_tokenizers

SYLLABLES = [one + two for one in "bdfgklmnprst" for two in ("a", "e", "i", "o", "u")]
SPREAD = 3.0
"""What random parameters are multiplied by, so that translations depend on their source."""
DRAWN = 200


class Ended(NamedTuple):
    """A process that is over. code: as of subprocess; peak: of resident memory, in MiB; said: its stderr."""

    code: int
    peak: float
    seconds: float
    said: str


def main() -> None:
    """Measure each size, then kill and resume the largest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--folder", type=Path, default=None, help="where the files lie meanwhile (default: TMPDIR)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="dragoman-big-file-") as folder:
        os.chdir(folder)
        write_model(Path("model"))
        command = [sys.executable, "-m", "dragoman", "translate", "model", "--beam", "1", "--scores"]
        command += ["--engine", arguments.engine, "--batch-size", str(arguments.batch_size)]
        smallest = None
        for count in sorted(arguments.lines):
            write_lines(Path(f"{count}.in"), count)
            ended = run([*command, "-i", f"{count}.in", "-o", f"{count}.out"])
            assert ended.code == 0, ended.said
            smallest = smallest or ended
            print(
                f"{count:,} lines, {Path(f'{count}.in').stat().st_size / 1e6:.1f} MB: peak memory {ended.peak:.1f} MiB "
                f"({ended.peak - smallest.peak:+.1f}), {ended.seconds:.1f} s, {count / ended.seconds:,.0f} lines/s",
                flush=True,
            )
        size = Path(f"{count}.out").stat().st_size
        seconds = kill([*command, "-i", f"{count}.in", "-o", "killed.out", "--resume"], size, arguments)
        equal = Path("killed.out").read_bytes() == Path(f"{count}.out").read_bytes()
        print(f"after {arguments.kills} kills, {seconds:.1f} s: {'equal' if equal else 'DIFFERENT'}, byte by byte")
        places = check_lines(Path(f"{count}.in"), Path("killed.out"), count, arguments.engine)
        print(f"{places} of {DRAWN} lines drawn at random are where they belong")
        sys.exit(not equal or places != DRAWN)


def write_model(folder: Path) -> None:
    """A Transformer of random parameters with a vocabulary of its own."""
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    config = ModelConfig.model_validate({"preset": "tiny", "width": 8, "encoder": stack, "decoder": stack})
    texts = [line(number) for number in range(2000)]
    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": {"size": 400}}), texts, texts)
    torch.manual_seed(1)
    model = config.build(tokenizers.source.size, tokenizers.target.size)
    parameters = {name: tensor.detach() * SPREAD for name, tensor in model_parameters(model).items()}
    section = "\n".join(f"  {each}" for each in dump_settings(config).splitlines())
    search = "search:\n  length_factor: 1.0\n  length_margin: 2\n"  # else nearly all would be as long as is allowed
    write_model_folder(folder, parameters, f"model:\n{section}\n{search}", tokenizers, Meta(step=0))


def write_lines(path: Path, count: int) -> None:
    """The first `count` lines."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(line(number) + "\n")


def line(number: int) -> str:
    """Of that number: its digits to the base of 60 as syllables, so no two are alike, in words of one to three."""
    syllables = []
    rest = number * 2654435761 % 2**32  # a bijection
    for _ in range(6):
        rest, digit = divmod(rest, len(SYLLABLES))
        syllables.append(SYLLABLES[digit])
    cut = 1 + number % 5
    return "".join(syllables[:cut]) + " " + "".join(syllables[cut:]) + "." * (number % 3)


def run(command: list[str], growing: Path | None = None, kill_at: float = 0.0) -> Ended:
    """A command in a process of its own; killed when the file `growing` has `kill_at` bytes."""
    began = time.monotonic()
    with open("said", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stderr=said)
        if growing is not None:
            while not _over(process.pid) and (not growing.exists() or growing.stat().st_size < kill_at):
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return Ended(process.returncode, usage.ru_maxrss / 1024, time.monotonic() - began, said.read())


def _over(pid: int) -> bool:
    """Whether a process has ended; its status is still there to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill(command: list[str], size: int, arguments: argparse.Namespace) -> float:
    """Run a command that writes so many bytes, killed and resumed; gives the seconds that it took in all."""
    draw, total = random.Random(arguments.seed), 0.0
    for number in range(arguments.kills + 1):
        place = (number + draw.uniform(0.1, 1)) / (arguments.kills + 1) * size
        last = number == arguments.kills
        ended = run(command, None if last else Path("killed.out.partial/text"), place)
        total += ended.seconds
        assert ended.code == (0 if last else -signal.SIGKILL), ended.said
        found = re.search(r"Going on after line ([\d,]+)", ended.said)
        print(
            f"run {number + 1}: from line {found[1] if found else 0}, {ended.seconds:.1f} s, peak memory "
            f"{ended.peak:.1f} MiB, {'ended' if last else 'killed'}",
            flush=True,
        )
    return total


def check_lines(source: Path, output: Path, count: int, engine: str) -> int:
    """How many of some lines have the translation, and about the score, that they get alone."""
    numbers = sorted(random.Random(2).sample(range(count), min(count, DRAWN)))
    wanted = set(numbers)
    with source.open(encoding="utf-8") as one, output.open(encoding="utf-8") as other:
        both = [(a, b) for place, (a, b) in enumerate(zip(one, other, strict=True)) if place in wanted]
    translator = Translator.load("model", "cpu", engine)
    alone = translator.translate_nbest([text.rstrip("\n") for text, _ in both], translator.request(beam=1))
    found = [(float(score), text) for score, text in (pair[1].rstrip("\n").split("\t", 1) for pair in both)]
    return sum(
        best[0].text == text and abs(best[0].log_probability - score) < 1e-4
        for best, (score, text) in zip(alone, found, strict=True)
    )


if __name__ == "__main__":
    main()
