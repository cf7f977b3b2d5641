"""The choice of a device on machines with GPUs that PyTorch can use, and with others. No test needs a GPU."""

import itertools
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from simulated_gpus import AMPERE, CU126, PASCAL, PYPI, TURING, VOLTA, Gpu, simulate
from tiny_model import SOURCES, write_tiny_model
from torch import nn
from training_runs import SETTINGS, write_corpus

from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.machine import gpu
from dragoman.base.machine.device import choose_device
from dragoman.cli.main import main
from dragoman.engines.choice import EngineTask, supporting
from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.machine.precision import choose_precision
from dragoman.training.ranks.group import _own_device
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.run.memory import check_memory

CPU = torch.device("cpu")
V100 = (
    "this PyTorch (2.13.0+cu130) has no kernels for the GPU Tesla V100-SXM2-16GB of compute capability 7.0, only for "
    "7.5, 8.0, 8.6, 9.0, 10.0, 12.0: pip install 'torch==2.13.0+cu126' --index-url "
    "https://download.pytorch.org/whl/cu126"
)
OLD_DRIVER = (
    "the driver of the GPU supports CUDA 12.4, but this PyTorch (2.13.0+cu130) needs CUDA 13.0: update NVIDIA's "
    "driver, or pip install 'torch==2.13.0+cu126' --index-url https://download.pytorch.org/whl/cu126"
)


@pytest.mark.parametrize("version", ["2.11.0+cu130", "2.12.1+cu130", "2.13.0+cu130", "2.13.0+cu126"])
@pytest.mark.parametrize(
    ("capability", "precision"),
    [
        ((3, 7), None),
        ((5, 2), "float32"),
        ((6, 0), "float32"),
        ((6, 1), "float32"),
        ((7, 0), "float16"),
        ((7, 5), "float16"),
        ((8, 0), "bfloat16"),
        ((8, 6), "bfloat16"),
        ((8, 9), "bfloat16"),
        ((9, 0), "bfloat16"),
        ((10, 0), "bfloat16"),
        ((10, 3), "bfloat16"),
        ((12, 0), "bfloat16"),
        ((12, 1), "bfloat16"),
    ],
    ids=str,
)
def test_a_gpu_is_used_if_the_wheel_has_kernels_for_it(
    capability: tuple[int, int],
    precision: str | None,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Otherwise one line names the card, the cause, and a wheel that has them. The precision is as documented."""
    name, old = f"Card {capability[0]}.{capability[1]}", version.endswith("cu126")
    simulate(monkeypatch, [Gpu(name, capability)], kernels=CU126 if old else PYPI, version=version)
    runs = (5, 0) <= capability < (10, 0) if old else capability >= (7, 5)
    device = choose_device("auto")
    assert device == (torch.device("cuda") if runs else CPU)
    engine = next(kind for kind in supporting(EngineTask("translate")) if kind.computes_on(device))
    assert (engine.name, engine.serves["translate"].default) == (("cuda", "float16") if runs else ("native", "float32"))
    message = capsys.readouterr().err
    if runs:
        assert message == ""
        assert str(choose_precision("auto", device)) == f"torch.{precision}"
        assert choose_device("cuda:0") == torch.device("cuda", 0)
        return
    assert message.count("\n") == 1 and f"the GPU {name} of compute capability" in message
    folder = "cu130" if old else "cu126"
    exists = capability >= (5, 0)
    base = version.partition("+")[0]
    assert (f"pip install 'torch=={base}+{folder}' --index-url " in message) is exists
    assert ("no PyTorch that dragoman supports has them" in message) is not exists
    with pytest.raises(ConfigError) as refused:
        choose_device("cuda")
    cause = message.removeprefix("warning: computing on the CPU, because ").strip()
    assert str(refused.value) == f"the device 'cuda' cannot be used, because {cause}, or use cpu"


def test_batches_are_cut_to_fit_into_the_memory_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model whose parameters need 3.6 GiB in training, and whose batches 12 GiB."""
    tokens, needed = 4096, 12 * 2**30
    job: Any = SimpleNamespace(
        run=SimpleNamespace(train=LoopConfig(max_steps=10, ema=None)),
        lengths=np.full((9, 2), 60),
        batches_per_update=1,
        peak_tokens=lambda: tokens,
        activation_bytes=lambda model, count, free: needed * count // tokens,
    )
    model = nn.Linear(15_000, 16_000, device="meta")
    fixed = 4 * 4 * sum(each.numel() for each in model.parameters())
    cuts = []
    for memory in (4, 8, 16, 24, 40, 80):
        simulate(monkeypatch, [Gpu("Card", (8, 0), memory)])
        journal = Journal(tmp_path / f"{memory}.jsonl", owned=True)
        check_memory(job, model, journal, Ranks("auto"))
        cuts.append(journal.get("halvings of all", 0) or 0)
        assert fixed + needed // 2 ** cuts[-1] <= memory * 2**30
    assert cuts == sorted(cuts, reverse=True) and cuts[0] > cuts[2] and cuts[-1] == 0
    assert "Batches are computed in 4 parts, because only 8.0 GiB are free" in capsys.readouterr().err
    simulate(monkeypatch, [Gpu("Card", (8, 0), 3)])
    with pytest.raises(ResourceError, match=r"needs about 3.6 GiB .* but 3.0 GiB are free"):
        check_memory(job, model, Journal(tmp_path / "3.jsonl", owned=True), Ranks("auto"))


def test_kernels_run_on_the_gpus_of_pytorch_s_table() -> None:
    known = sorted(torch.cuda.DEVICE_REQUIREMENT)
    for code, capability in itertools.product(known, known):
        if code != 101:  # renamed to 110
            expected = torch.cuda._code_compatible_with_device(capability, code)
            assert gpu._runs(f"sm_{code}", capability) == expected, (code, capability)
    assert gpu._runs("compute_120", 130) and not gpu._runs("compute_120", 90)
    assert gpu._runs("sm_90a", 90) and gpu._number("sm_100f") == 100


def test_the_wheels_are_those_of_pytorch() -> None:
    released = torch.cuda.PYTORCH_RELEASES_CODE_CC
    for folder, numbers in gpu._WHEELS.items():
        assert released[f"{folder[2:4]}.{folder[4]}"]["x86_64"] == set(numbers)


def test_the_first_gpu_with_kernels_is_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(monkeypatch, [VOLTA, TURING, AMPERE])
    assert choose_device("auto") == torch.device("cuda", 1)
    assert capsys.readouterr().err == f"warning: computing on cuda:1, because {V100}\n"
    assert choose_device("auto") == torch.device("cuda", 1)
    assert capsys.readouterr().err == ""  # once per process
    assert choose_precision("auto", torch.device("cuda", 1)) == torch.float16
    assert choose_precision("auto", torch.device("cuda", 2)) == torch.bfloat16
    with pytest.raises(ConfigError, match="the device 'cuda:3' is not available on this machine"):
        choose_device("cuda:3")


@pytest.mark.parametrize(
    ("driver", "problem"),
    [
        (12040, OLD_DRIVER),
        (11080, OLD_DRIVER.replace("12.4", "11.8").partition(", or pip")[0]),  # too old for any wheel
    ],
)
def test_an_old_driver(
    driver: int, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyTorch's own warning, which does not name a version of PyTorch, is not shown."""
    simulate(monkeypatch, [AMPERE], driver=driver)
    monkeypatch.setattr(gpu, "_cards", lambda: "the GPU")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_device("auto") == CPU
        assert capsys.readouterr().err == f"warning: computing on the CPU, because {problem}\n"
        with pytest.raises(ConfigError) as refused:
            choose_device("cuda:1")
    assert str(refused.value) == f"the device 'cuda:1' cannot be used, because {problem}, or use cpu"


def test_other_failures_of_a_driver_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(monkeypatch, [AMPERE])

    def unknown() -> bool:
        warnings.warn(
            "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. "
            "changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero. "
            "(Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:119.)",
            stacklevel=1,
        )
        return False

    monkeypatch.setattr(torch.cuda, "is_available", unknown)
    assert choose_device("auto") == CPU
    message = capsys.readouterr().err
    assert "cannot be used (CUDA unknown error - this may be due to" in message and "nvidia-smi" in message
    assert message.count("\n") == 1 and "Triggered" not in message


def test_a_gpu_that_fails_is_not_chosen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def busy(device: object = None) -> str:
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nmore lines")

    simulate(monkeypatch, [AMPERE])
    monkeypatch.setattr(torch.cuda, "get_device_name", busy)
    assert choose_device("auto") == CPU
    assert "is/are busy or unavailable): `nvidia-smi`" in capsys.readouterr().err


def test_cards_are_named_by_the_driver_s_files(tmp_path: Path) -> None:
    assert gpu._cards(tmp_path) == "the GPU"
    for number, model in enumerate(("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-16GB", "Tesla T4")):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 134\nGPU UUID: \t GPU-1\n")
    assert gpu._cards(tmp_path) == "the GPU Tesla V100-SXM2-16GB, Tesla T4"


def test_the_processes_of_a_distributed_run_check_their_gpus(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(monkeypatch, [VOLTA, VOLTA])
    assert [_own_device("auto", rank, 2) for rank in range(2)] == [CPU, CPU]
    assert capsys.readouterr().err == f"warning: computing on the CPU, because {V100}\n"
    with pytest.raises(ConfigError, match=r"'cuda:1' cannot be used, because this PyTorch .* has no kernels"):
        _own_device("cuda", 1, 2)
    with pytest.raises(ConfigError, match=r"which has 2 GPU\(s\): start torchrun with --nproc-per-node 2"):
        _own_device("cuda", 2, 3)
    simulate(monkeypatch, [VOLTA], driver=12040)
    with pytest.raises(ConfigError, match="needs CUDA 13"):
        _own_device("cuda", 0, 2)


@pytest.mark.parametrize("card", [PASCAL, VOLTA], ids=lambda card: str(card.name))
def test_commands_go_on_on_the_cpu(
    card: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine whose GPU lacks kernels, `--device auto` works, and `--device cuda` is an error with a remedy."""
    simulate(monkeypatch, [card])
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "model")
    (tmp_path / "input").write_text("\n".join(SOURCES))
    translate = ["translate", "model", "-i", "input", "-o", "output"]
    assert main(translate) == 0
    said = capsys.readouterr().err
    assert said.count("computing on the CPU, because") == 1 and f"has no kernels for the GPU {card.name}" in said
    assert len((tmp_path / "output").read_text().splitlines()) == len(SOURCES)
    (tmp_path / "output").unlink()
    assert main([*translate, "--device", "cuda"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--index-url https://download.pytorch.org/whl/cu126" in said
    assert "bug" not in said
    options = [*write_corpus(tmp_path, 40), *SETTINGS, "train.max_steps=2", "--quiet"]
    assert main(["train", *options, "train.device=cuda"]) == 2
    assert "has no kernels for the GPU" in capsys.readouterr().err
    assert Ranks("auto").device == CPU
