"""Memory and speed of `dragoman translate` on a file of many distinct lines, and resuming after kills.

    python benchmarks/big_file.py --lines 10000 1000000 --kills 3

The lines are generated, all different, and the model is random: width 8, one layer per side, a different translation
for each line. The benchmark measures everything around the model, which a larger model would only slow down. Each size
is translated in a separate process, whose peak resident memory (ru_maxrss) and time are reported. The largest file is
translated again, killed (SIGKILL) at random times and resumed each time; the result must equal that of the undisturbed
run, byte by byte. Randomly sampled lines are also translated on their own and must be in the right position.
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
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.tokenizers import TextConfig, train_tokenizers

SYLLABLES = [one + two for one in "bdfgklmnprst" for two in ("a", "e", "i", "o", "u")]
SPREAD = 3.0
"""Scale of the random parameters, large enough that translations depend on their source."""
DRAWN = 200


class Ended(NamedTuple):
    """A finished process. code: its exit status; peak: its peak resident memory in MiB; stderr: its messages."""

    code: int
    peak: float
    seconds: float
    stderr: str


def main() -> None:
    """Measure each size, then kill and resume the largest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1, help="random seed of the kill times")
    parser.add_argument("--folder", type=Path, default=None, help="folder of the temporary files (default: TMPDIR)")
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
            assert ended.code == 0, ended.stderr
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
        print(f"{places} of {DRAWN} sampled lines are in the right position")
        sys.exit(not equal or places != DRAWN)


def write_model(folder: Path) -> None:
    """Write a Transformer with random parameters and its own vocabulary."""
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    config = ModelConfig.model_validate({"preset": "tiny", "width": 8, "encoder": stack, "decoder": stack})
    texts = [line(number) for number in range(2000)]
    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": {"size": 400}}), texts, texts)
    torch.manual_seed(1)
    model = config.build(tokenizers.source.size, tokenizers.target.size)
    parameters = {name: tensor.detach() * SPREAD for name, tensor in model_parameters(model).items()}
    section = "\n".join(f"  {each}" for each in dump_settings(config).splitlines())
    search = "search:\n  length_factor: 1.0\n  length_margin: 2\n"  # otherwise nearly all would have the maximum length
    write_model_folder(folder, parameters, f"model:\n{section}\n{search}", tokenizers, Meta(step=0))


def write_lines(path: Path, count: int) -> None:
    """Return the first `count` lines."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(line(number) + "\n")


def line(number: int) -> str:
    """Return a unique line for a number: its digits in base 60 as syllables, in words of one to three syllables."""
    syllables = []
    rest = number * 2654435761 % 2**32  # a bijection
    for _ in range(6):
        rest, digit = divmod(rest, len(SYLLABLES))
        syllables.append(SYLLABLES[digit])
    cut = 1 + number % 5
    return "".join(syllables[:cut]) + " " + "".join(syllables[cut:]) + "." * (number % 3)


def run(command: list[str], growing: Path | None = None, kill_at: float = 0.0) -> Ended:
    """Run a command in a separate process; kill it when the file `growing` has `kill_at` bytes."""
    began = time.monotonic()
    with open("stderr", "w+", encoding="utf-8") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
        if growing is not None:
            while not _over(process.pid) and (not growing.exists() or growing.stat().st_size < kill_at):
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        return Ended(process.returncode, usage.ru_maxrss / 1024, time.monotonic() - began, stderr.read())


def _over(pid: int) -> bool:
    """Return whether a process has ended; its status can still be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill(command: list[str], size: int, arguments: argparse.Namespace) -> float:
    """Run a command that writes this many bytes, with kills and resumes; returns the total time in seconds."""
    draw, total = random.Random(arguments.seed), 0.0
    for number in range(arguments.kills + 1):
        place = (number + draw.uniform(0.1, 1)) / (arguments.kills + 1) * size
        last = number == arguments.kills
        ended = run(command, None if last else Path("killed.out.partial/text"), place)
        total += ended.seconds
        assert ended.code == (0 if last else -signal.SIGKILL), ended.stderr
        found = re.search(r"Resuming after line ([\d,]+)", ended.stderr)
        print(
            f"run {number + 1}: from line {found[1] if found else 0}, {ended.seconds:.1f} s, peak memory "
            f"{ended.peak:.1f} MiB, {'ended' if last else 'killed'}",
            flush=True,
        )
    return total


def check_lines(source: Path, output: Path, count: int, engine: str) -> int:
    """Return the number of lines with the same translation, and about the same score, as when translated alone."""
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
