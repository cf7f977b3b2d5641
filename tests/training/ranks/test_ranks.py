"""Several processes train the same parameters as one, for all models; a lost process does not cause a hang."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from made_once import made_once
from training_runs import (
    RUN,
    SETTINGS,
    Process,
    Server,
    differences,
    log_lines,
    outcome,
    process_environment,
    reached,
    wait_until_reached,
    write_corpus,
)
from waiting import PATIENCE, wait_until

from dragoman.checkpoint.tensors import load_tensors

# Gradients that are zero up to rounding (keys' biases) must not become steps, so epsilon is large.
PLAIN = [
    *("model.dropout=0", "train.optimiser.epsilon=0.001", "train.max_steps=4"),
    *("train.validate_every=2", "train.checkpoint_every=2", "train.log_every=1"),
]


def run(server: Server, folder: Path, ranks: int, *settings: str, base: list[str] = SETTINGS) -> Path:
    """Return a finished run."""
    folder.mkdir(exist_ok=True)
    command = ["train", *write_corpus(folder), *base, *PLAIN, *settings]
    processes = server.start_ranks(ranks, folder, *command) if ranks > 1 else [server.start(folder, *command)]
    finish(processes)
    return folder


@pytest.fixture
def alone(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Returns the folder of a one-process run with given settings, with which several tests compare."""

    def made(*settings: str, base: list[str] = SETTINGS) -> Path:
        name = hashlib.sha256(repr((settings, base)).encode()).hexdigest()[:12]
        return made_once(tmp_path_factory, f"alone-{name}", lambda folder: run(server, folder, 1, *settings, base=base))

    return made


def finish(processes: list[Process]) -> None:
    codes = [process.wait() for process in processes]
    assert codes == [0] * len(processes), "\n".join(process.said for process in processes)


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    return load_tensors(max((folder / RUN / "checkpoints").iterdir()) / "model.safetensors")[0]


def assert_equal_runs(one: Path, other: Path) -> None:
    """Compare parameters, losses and validations up to rounding."""
    first, second = parameters(one), parameters(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        torch.testing.assert_close(second[name], value, rtol=1e-3, atol=2e-5, msg=name)
    for line, same in zip(log_lines(one), log_lines(other), strict=True):
        for key in ("step", "epoch", "target_tokens", "loss", "gradient_norm", "valid_loss", "valid_bleu", "experts"):
            if key in line:
                assert same[key] == pytest.approx(line[key], rel=1e-3), (line, same)
        assert same.get("valid_sets", {}).keys() == line.get("valid_sets", {}).keys()
        for name, judged in line.get("valid_sets", {}).items():
            assert same["valid_sets"][name] == pytest.approx(judged, rel=1e-3)


SHARES = {
    "cut": (2, ["train.accumulate=1"]),
    "whole and cut": (2, ["train.accumulate=3", "train.ema=0.9"]),
    "four": (4, ["train.accumulate=1"]),
}
"""Numbers of processes, and how they divide the batches of an update."""


@pytest.mark.parametrize(
    ("share", "parallel"),
    [
        ("whole and cut", "ddp"),  # with FSDP, the runs below that change the number of ranks are compared
        pytest.param("whole and cut", "fsdp", marks=pytest.mark.slow),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(("cut", "four"), ("ddp", "fsdp"))),
    ],
)
def test_ranks_train_what_one_process_trains(
    server: Server, alone: Callable[..., Path], tmp_path: Path, share: str, parallel: str
) -> None:
    ranks, settings = SHARES[share]
    one = alone(*settings)
    several = run(server, tmp_path / "several", ranks, f"train.parallel={parallel}", *settings)
    assert_equal_runs(one, several)
    nothing_is_pickled(several, parallel)


def nothing_is_pickled(folder: Path, parallel: str) -> None:
    shards = sorted((folder / RUN / "training").rglob("*shard*"))
    assert bool(shards) == (parallel == "fsdp")
    kinds = {path.suffix for path in (folder / RUN).rglob("*") if path.is_file() and path.name != ".lock"}
    assert kinds == {".safetensors", ".json", ".jsonl", ".yaml", ".md", ".png"}
    for path in (folder / RUN).rglob("*.safetensors"):
        load_tensors(path)


VARIANTS = {
    "experts": ["model.encoder.experts.count=3", "model.decoder.experts.count=3", "train.accumulate=4"],
    "recurrent": ["model.encoder.kind=recurrent", "model.decoder.kind=recurrent"],
    "convolutional": ["model.encoder.kind=convolutional", "model.decoder.kind=bytenet"],
    # large enough for FSDP to shard the decoder's feed-forward networks separately, whose outputs are views
    "wide": ["model.encoder.feedforward=2048", "model.decoder.feedforward=2048"],
    "validation sets": [
        "data.valid=[{source: valid.a, target: valid.b}, {name: other, source: valid.b, target: valid.a}]"
    ],
    "muon": ["train.optimiser.kind=muon"],
    "apart": [
        "model.tie_projection=false",
        "model.projection_bias=true",
        "train.objective.prior=unigram",
        "train.clip=null",
    ],
}
VARIANTS["experts, muon, wide, validation sets"] = [
    *(setting for name in ("experts", "muon", "wide", "validation sets") for setting in VARIANTS[name])
]
VARIANTS["convolutional to recurrent, apart"] = [
    *("model.encoder.kind=convolutional", "model.decoder.kind=recurrent"),
    *VARIANTS["apart"],
]


@pytest.mark.parametrize(
    ("variant", "parallel"),
    [
        *(pytest.param(variant, "ddp", marks=pytest.mark.slow) for variant in ("experts", "recurrent", "muon")),
        *(pytest.param(variant, "fsdp", marks=pytest.mark.slow) for variant in VARIANTS),
    ],
)
def test_variants_train_alike(
    server: Server, alone: Callable[..., Path], tmp_path: Path, variant: str, parallel: str
) -> None:
    changed = {setting.partition("=")[0].rpartition(".")[0] for setting in VARIANTS[variant] if ".kind=" in setting}
    own = [each for each in SETTINGS if not any(each.startswith(f"{side}.") for side in changed)]
    settings = [*VARIANTS[variant], "train.max_steps=2"]
    one = alone(*settings, base=own)
    several = run(server, tmp_path / "several", 2, f"train.parallel={parallel}", *settings, base=own)
    assert_equal_runs(one, several)
    assert ("valid_sets" in str(log_lines(one))) == ("validation sets" in variant)
    assert "Warning" not in (several / "stderr0").read_text() + (several / "stderr1").read_text()


APART = """
import torch
from torch import nn
from dragoman.training.ranks.group import open_ranks
from dragoman.training.ranks.parallel import Replicated

torch.set_num_threads(1)
with open_ranks("cpu") as ranks:
    model = nn.Linear(300, 7)
    parallel = Replicated(model, lambda *_: None, ranks, False)
    parallel.check_equal()  # DDP has broadcast the first rank's parameters
    if ranks.rank == 1:
        with torch.no_grad():
            model.weight[3, 200] = torch.nextafter(model.weight[3, 200], torch.tensor(9.0))
    parallel.check_equal()
    parallel.check_equal()
"""

RANDOM = {
    "hard, resampled, sampled": [
        "model.decoder.cross_attention={kind: hard, gradient: reinforce}",
        "text.subword.dropout=0.1",
        *("train.teacher_forcing.kind=constant", "train.teacher_forcing.value=0.5"),
    ],
    "reward": ["train.objective.kind=sequence_reward", "train.objective.metric=chrf", "train.objective.samples=2"],
    "r_drop": ["train.objective.kind=r_drop", "train.objective.alpha=1"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parallel"),
    [
        *product(RANDOM, ("ddp", "fsdp")),
    ],
)
def test_random_objectives_train_too(server: Server, tmp_path: Path, name: str, parallel: str) -> None:
    """Random numbers differ from those of one process: check that ranks end, and with DDP with equal parameters.

    A snapshot compares them and warns (the test below).
    """
    found = run(server, tmp_path / "run", 2, *RANDOM[name], "train.max_steps=2", f"train.parallel={parallel}")
    losses = [line["loss"] for line in log_lines(found) if "loss" in line]
    assert len(losses) == 2
    assert "the parameters of rank" not in (found / "stderr0").read_text()


def test_differing_parameters_of_ranks_are_reported(server: Server, tmp_path: Path) -> None:
    """Once, and only after they differ, by the last bit of one number."""
    (tmp_path / "apart.py").write_text(APART)
    processes = server.start_ranks(2, tmp_path, "apart.py")
    finish(processes)
    said = "".join(process.said for process in processes)
    assert said.count("warning: the parameters of rank 1 differ from those of rank 0") == 1, said


LONG = {
    "ddp": ["train.max_steps=10", "train.validate_every=5"],
    "fsdp": ["train.max_steps=8", "train.validate_every=4"],  # its updates take much longer
}
TRAINED = ["train", *SETTINGS, "train.checkpoint_every=4", "train.log_every=1", "train.accumulate=3"]


@pytest.fixture(scope="module", params=["ddp", "fsdp"])
def parallel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(server: Server, tmp_path_factory: pytest.TempPathFactory, parallel: str) -> Path:
    """Return the folder of an uninterrupted run of two processes, with dropout."""

    def make(folder: Path) -> None:
        finish(server.start_ranks(2, folder, *command(folder, parallel)))

    return made_once(tmp_path_factory, f"whole-{parallel}", make)


def command(folder: Path, parallel: str) -> list[str]:
    # Given because processes that are not forked would detect the languages, and estimate statistical models.
    given = ["data.source_language=en", "data.target_language=de", "systems=[]"]
    return [*TRAINED, *LONG[parallel], *write_corpus(folder), f"train.parallel={parallel}", *given]


@pytest.mark.parametrize(
    ("parallel", "lost"),
    [("ddp", None), *(pytest.param(*each, marks=pytest.mark.slow) for each in product(("ddp", "fsdp"), (0, 1)))],
    indirect=["parallel"],
)
def test_a_signal_to_one_rank_and_a_killed_rank_end_both_and_lose_nothing(
    server: Server, whole: Path, parallel: str, tmp_path: Path, lost: int | None
) -> None:
    """After the signal they are resumed, and after the kill restarted as by torchrun, without --resume.

    The result is that of an uninterrupted run. lost: the killed rank. None: nobody is killed, but the first rank is
    always killed below, while it writes.
    """
    processes = server.start_ranks(2, tmp_path, *command(tmp_path, parallel))
    wait_until_reached(processes[0], 2)
    processes[1].kill(signal.SIGTERM)
    processes[1].kill(signal.SIGTERM)  # torchrun forwards signals that a cluster may have sent to all
    assert [process.wait() for process in processes] == [128 + signal.SIGTERM] * 2
    assert "everything is saved" in processes[0].said
    assert processes[1].said == ""

    processes = server.start_ranks(2, tmp_path, *command(tmp_path, parallel), "--resume")
    if lost is None:
        finish(processes)
        assert "Resuming at step" in processes[0].said
        assert differences(outcome(tmp_path), outcome(whole)) == []
        return
    wait_until_reached(processes[0], reached(tmp_path) + 1)
    processes[lost].kill()
    assert processes[lost].wait() == -signal.SIGKILL
    wait_until(lambda: not processes[1 - lost].is_alive, "the other process hangs")
    assert processes[1 - lost].wait() == 1
    said = processes[1 - lost].said
    assert "another process of this run has ended" in said.splitlines()[-1]
    assert "Traceback" not in said

    again = server.start_ranks(2, tmp_path, *command(tmp_path, parallel), restarts=1)
    finish(again)
    assert "Resuming at step" in again[0].said
    assert again[1].said == ""
    assert differences(outcome(tmp_path), outcome(whole)) == []


CHANGES = {
    "more, whole to sharded": (1, "ddp", 2, "fsdp"),
    "fewer, sharded": (3, "fsdp", 2, "fsdp"),
    "whole, sharded so far": (2, "fsdp", 2, "ddp"),
    "fewer, sharded to whole": (2, "fsdp", 1, "ddp"),
}


@pytest.mark.parametrize(
    "change",
    [next(iter(CHANGES)), *(pytest.param(change, marks=pytest.mark.slow) for change in list(CHANGES)[1:])],
)
def test_other_numbers_of_ranks_resume_to_the_same_parameters(
    server: Server, alone: Callable[..., Path], tmp_path: Path, change: str
) -> None:
    """Equal up to rounding, with a warning."""
    ranks, first, others, later = CHANGES[change]
    settings = SHARES["whole and cut"][1]
    one = alone(*settings)
    halfway = run(server, tmp_path / "two", ranks, *settings, "train.max_steps=2", f"train.parallel={first}")
    again = ["train", "--resume", "--out", RUN, "train.max_steps=4", f"train.parallel={later}"]
    processes = server.start_ranks(others, halfway, *again) if others > 1 else [server.start(halfway, *again)]
    finish(processes)
    assert (f"the run was trained by {ranks} process(es) and continues with {others}" in processes[0].said) == (
        ranks != others
    )
    assert_equal_runs(one, halfway)
    if later == "fsdp":
        nothing_is_pickled(halfway, later)


REFUSED = {
    "gpus": (["train.device=cuda"], "is not available on this machine"),
    "one gpu for all": (["train.device=cuda:0"], "set auto, cuda or cpu"),
    "running statistics": (["model.encoder.normalisation.kind=batch"], "running statistics of whole batches"),
    "fewer batches than ranks": (["model.encoder.experts.count=3"], "set train.accumulate=2 or more"),
    "another folder": (["train.seed=2", "out=thirty"], "thirty already contains a training run"),
    "pairs": (["data.train.source=one", "data.train.target=one", "text.subword.size=270"], "only 1 examples"),
}


@pytest.mark.parametrize("reason", list(REFUSED))
def test_unsupported_settings_of_ranks_are_refused_by_one_message(server: Server, tmp_path: Path, reason: str) -> None:
    settings, message = REFUSED[reason]
    (tmp_path / "one").write_text("ein Haus\n")
    (tmp_path / "thirty" / "training").mkdir(parents=True)
    (tmp_path / "thirty" / "config.yaml").write_text("out: thirty\ndata: {train: {pairs: a}, valid: {pairs: b}}\n")
    processes = server.start_ranks(2, tmp_path, "train", *write_corpus(tmp_path), *SETTINGS, *settings)
    assert [process.wait() for process in processes] == [2, 2]
    said = "".join(process.said for process in processes)
    assert message in said
    assert "Traceback" not in said


def test_a_rank_killed_at_the_start_is_detected(server: Server, tmp_path: Path) -> None:
    """After they have connected, while the first rank prepares data and the other waits."""
    processes = server.start_ranks(2, tmp_path, "train", *write_corpus(tmp_path), *SETTINGS)
    wait_until((tmp_path / RUN).exists, "they have never met")
    processes[0].kill(signal.SIGKILL)
    assert processes[0].wait() == -signal.SIGKILL
    assert processes[1].wait() == 1
    assert "another process of this run has ended" in processes[1].said


@pytest.mark.parametrize(
    ("parallel", "kills"),
    [("ddp", (60,)), *(pytest.param(each, (30, 60), marks=pytest.mark.slow) for each in ("ddp", "fsdp"))],
    indirect=["parallel"],
)
def test_the_first_rank_killed_while_it_writes_loses_nothing(
    server: Server, whole: Path, parallel: str, tmp_path: Path, kills: tuple[int, ...]
) -> None:
    """During successive snapshots and checkpoints, with a restart after each kill."""
    for restarts, fatal in enumerate(kills):
        processes = server.start_ranks(2, tmp_path, *command(tmp_path, parallel), restarts=restarts, fatal=fatal)
        codes = [process.wait() for process in processes]
        assert codes == [-signal.SIGKILL, 1], "\n".join(process.said for process in processes)
    finish(server.start_ranks(2, tmp_path, *command(tmp_path, parallel), restarts=3))
    assert differences(outcome(tmp_path), outcome(whole)) == []


def test_the_first_ranks_clock_ends_the_run_for_all(server: Server, tmp_path: Path) -> None:
    """A cosine is fitted to the time limit, which decides the last step, though another rank's clock is faster."""
    clock = ["train.max_steps=null", "train.max_minutes=0.05", "train.schedule.kind=cosine", "train.log_every=1"]
    never = ["train.checkpoint_every=100000", "train.validate_every=100000"]
    given = ["train", *write_corpus(tmp_path), *SETTINGS, *clock, *never]
    finish(server.start_ranks(2, tmp_path, *given, ticks=(0.15, 1.0)))
    steps = [line["step"] for line in log_lines(tmp_path) if "loss" in line]
    assert 4 < steps[-1] < 20  # 3 readings of the other clock would be the limit


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["fsdp"], indirect=True)
def test_torchrun_restarts_what_was_killed(whole: Path, parallel: str, tmp_path: Path) -> None:
    """With torchrun itself: a rank is killed, all are restarted, and the result is that of an uninterrupted run."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    given = [*torchrun, "-m", "dragoman", *command(tmp_path, parallel)]
    with subprocess.Popen(given, cwd=tmp_path, env=process_environment(), stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: reached(tmp_path) >= 3 or process.poll() is not None)
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(ranks[1]), signal.SIGKILL)
        _, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, said
    assert "Resuming at step" in said
    assert "Traceback" not in said
    assert differences(outcome(tmp_path), outcome(whole)) == []
