"""`--profile`: parts add up, operators are grouped, and the result of the run is unchanged."""

import json
import re
from contextlib import chdir
from pathlib import Path

import pytest
import torch
from training_runs import RUN, SETTINGS, Server, differences, outcome, write_corpus

from dragoman.cli.main import main
from dragoman.training.profiling.operators import operator_group
from dragoman.training.profiling.profile import JSON_FILE, TEXT_FILE
from dragoman.training.profiling.stopwatch import Stopwatch

SHORT = ["train.max_steps=34", "train.validate_every=32", "train.checkpoint_every=33"]


def trained(folder: Path, *options: str) -> Path:
    folder.mkdir()
    with chdir(folder):
        assert main(["train", *SETTINGS, *SHORT, *write_corpus(Path()), *options]) == 0
    return folder


def test_a_profile_adds_up_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiled, plain = trained(tmp_path / "profiled", "--profile"), trained(tmp_path / "plain")
    text = (profiled / RUN / TEXT_FILE).read_text(encoding="utf-8")
    values = json.loads((profiled / RUN / JSON_FILE).read_text(encoding="utf-8"))
    parts = {tuple(each["part"]): each["seconds"] for each in values["parts"]}
    assert values["updates"] == 20
    assert values["traced_updates"] == 5
    outermost = sum(seconds for path, seconds in parts.items() if len(path) == 1)
    assert outermost == pytest.approx(values["update_seconds"], rel=1e-6)
    for parent in {path[:-1] for path in parts} - {()}:
        inside = sum(seconds for path, seconds in parts.items() if path[:-1] == parent)
        assert inside == pytest.approx(parts[parent], rel=1e-6)
    assert {("waiting for data",), ("forward",), ("backward",), ("clipping",), ("optimiser",)} <= parts.keys()
    for inner in ("embedding", "self-attention", "attention over the source", "feed-forward"):
        assert parts["forward", "decoder", inner] > 0, inner
    assert values["groups"]["matrix products"] > 0
    assert values["separate_seconds"].keys() == {"validation", "checkpoint"}
    assert "matrix products" in text
    assert re.search(r"validation: \d+\.\d\d s each", text)
    assert "part of an update" in capsys.readouterr().err
    found = {name: value for name, value in outcome(profiled).items() if name not in (TEXT_FILE, JSON_FILE)}
    assert differences(found, outcome(plain)) == []
    assert not (plain / RUN / TEXT_FILE).exists()


def test_the_profiler_is_quiet(server: Server, tmp_path: Path) -> None:
    program = (
        "import torch; from dragoman.training.profiling.operators import Tracer; "
        "tracer = Tracer(torch.device('cpu')); tracer.start(); torch.ones(2) + 1; assert tracer.stop(1)"
    )
    (tmp_path / "trace.py").write_text(program, encoding="utf-8")
    # in a separate process, because the profiler's library reads its log level only once
    process = server.start(tmp_path, "trace.py")
    assert process.wait() == 0, process.said
    assert process.said + (tmp_path / "stdout").read_text(encoding="utf-8") == ""


def test_a_run_that_ends_too_early_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = trained(tmp_path / "short", "--profile", "train.max_steps=3")
    assert not (folder / RUN / TEXT_FILE).exists()
    assert "There is no profile: the run ended before update 6" in capsys.readouterr().err


def test_a_stopwatch_counts_parts_inside_parts_and_only_while_it_runs() -> None:
    watch = Stopwatch(torch.device("cpu"))
    ticks = iter(range(100))
    watch.now = lambda: float(next(ticks))  # type: ignore[method-assign]
    with watch.part("ignored"):
        pass
    watch.running = True
    with watch.part("outer"), watch.part("inner"):
        pass
    with pytest.raises(KeyError), watch.part("outer"):
        raise KeyError
    assert watch.seconds == {("outer",): 3 + 1, ("outer", "inner"): 1}


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("aten::addmm", "matrix products"),
        ("aten::bmm", "matrix products"),
        ("aten::mkldnn_linear", "matrix products"),
        ("aten::_softmax_backward_data", "softmax and loss"),
        ("aten::random_", "dropout and random numbers"),
        ("aten::native_layer_norm_backward", "norms"),
        ("aten::copy_", "copies, casts and fills"),
        ("aten::add_", "element-wise"),
        ("aten::sum", "sums and means"),
        ("aten::embedding_dense_backward", "embedding and look-up"),
        ("aten::_fused_adamw_", "optimiser and clipping"),
        ("aten::_foreach_norm", "optimiser and clipping"),
        ("aten::_scaled_dot_product_flash_attention", "fused attention"),
        ("autograd::engine::evaluate_function: MulBackward0", "views, bookkeeping, others"),
        ("c10d::allreduce_", "communication between processes"),
        ("aten::view", "views, bookkeeping, others"),
        ("aten::transpose", "views, bookkeeping, others"),
    ],
)
def test_operators_are_grouped_by_name(name: str, group: str) -> None:
    assert operator_group(name) == group
