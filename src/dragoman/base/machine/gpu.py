"""GPUs that PyTorch can use, and why it cannot use others: an old driver, or missing kernels."""

import re
import warnings
from functools import cache
from pathlib import Path

import torch

from dragoman.base.log import warn

_WHEELS = {"cu126": (50, 60, 70, 75, 80, 86, 90), "cu130": (75, 80, 86, 90, 100, 120)}
"""Compute capabilities of the kernels in PyTorch's wheels for x86-64, by folder of its package index. The first is also
that for old drivers. Source: `PYTORCH_RELEASES_CODE_CC` in torch.cuda of PyTorch 2.13."""

_INTEGRATED = {53, 62, 72, 87, 101}
"""Capabilities of NVIDIA's systems on a chip, which share no compiled kernels with other GPUs."""

_OLDEST_CUDA = 12
"""The oldest major version of CUDA for which there are wheels."""

_INDEX = "https://download.pytorch.org/whl"


def find_gpu() -> torch.device | None:
    """Return the first GPU that PyTorch can use, or None. Warns once if there is one that it cannot use."""
    if not is_available():
        return None
    count = torch.cuda.device_count()
    usable = next((index for index in range(count) if gpu_problem(index) is None), None)
    if usable is None:
        _warn_once(f"computing on the CPU, because {gpu_problem(0)}")
        return None
    if usable > 0:
        _warn_once(f"computing on cuda:{usable}, because {gpu_problem(0)}")
        return torch.device("cuda", usable)
    return torch.device("cuda")


@cache
def _warn_once(message: str) -> None:
    warn(message)


@cache
def gpu_problem(index: int = 0) -> str | None:
    """Return why PyTorch cannot use a GPU that it lists, with the remedy; None if it can use it.

    The same answer for a machine without any listed GPU is `driver_problem`.
    """
    if torch.version.cuda is None:  # AMD's GPUs, whose names of architectures are not compared here
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of missing kernels in several lines
            name = torch.cuda.get_device_name(index)
            major, minor = torch.cuda.get_device_capability(index)
    except RuntimeError as error:
        return f"the GPU cannot be used ({_first_line(error)}): `nvidia-smi` shows its state"
    capability = 10 * major + minor
    codes = torch.cuda.get_arch_list()
    if not codes or any(_runs(code, capability) for code in codes):
        return None
    has = ", ".join(f"{number // 10}.{number % 10}" for number in sorted({_number(code) for code in codes}))
    return (
        f"this PyTorch ({torch.__version__}) has no kernels for the GPU {name} of compute capability {major}.{minor}, "
        f"only for {has}: {_other_wheel(capability)}"
    )


def _runs(code: str, capability: int) -> bool:
    """Return whether a GPU runs kernels compiled for `code`, an entry of `torch.cuda.get_arch_list`.

    Compiled kernels (sm) run on GPUs of the same major version and at least the same minor version; intermediate code
    (compute) is compiled for newer GPUs by the driver (CUDA C++ Programming Guide, sections 3.1.2 and 3.1.3).
    """
    number = _number(code)
    if code.startswith("compute_"):
        return capability >= number
    if {capability, number} & _INTEGRATED:
        return capability == number
    return capability // 10 == number // 10 and capability >= number


def _number(code: str) -> int:
    """Return the compute capability of sm_90, sm_100a or compute_120 as a number: 90, 100 or 120."""
    return int(re.sub(r"\D", "", code))


def _other_wheel(capability: int) -> str:
    """Return how to install kernels for a compute capability."""
    for folder, numbers in _WHEELS.items():
        if any(_runs(f"sm_{number}", capability) for number in numbers):
            return _install(folder)
    return "no PyTorch that dragoman supports has them"


def _install(folder: str) -> str:
    """Return the command. The version names the folder, because pip would keep the installed one otherwise."""
    return f"pip install 'torch=={torch.__version__.partition('+')[0]}+{folder}' --index-url {_INDEX}/{folder}"


def is_available() -> bool:
    """Return whether PyTorch lists a GPU. Warns once if there is one, but it cannot be used."""
    found, problem = _search()
    if problem is not None:
        _warn_once(f"computing on the CPU, because {problem}")
    return found


def driver_problem() -> str | None:
    """Return why PyTorch lists no GPU although there is one, with the remedy, or None."""
    return _search()[1]


@cache
def _search() -> tuple[bool, str | None]:
    """Return whether PyTorch lists a GPU, and the problem of its driver.

    PyTorch warns of the driver once per process, when it is first asked, and advises to install another version.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = torch.cuda.is_available()
    messages = [str(each.message).removeprefix("CUDA initialization:").strip() for each in caught]
    return found, _driver_problem(messages[0]) if messages and not found else None


def _driver_problem(message: str) -> str:
    """Return the problem and the remedy for a warning of PyTorch."""
    old = re.search(r"driver on your system is too old \(found version (\d+)\)", message)
    if old is None:
        reason = re.split(r"\.\s|\s\(Triggered", message.partition("\n")[0])[0].rstrip(".")
        return f"{_cards()} cannot be used ({reason}): `nvidia-smi` shows the state of the driver"
    version = int(old[1])
    update = "update NVIDIA's driver"
    remedy = f"{update}, or {_install(next(iter(_WHEELS)))}" if version // 1000 >= _OLDEST_CUDA else update
    return (
        f"the driver of {_cards()} supports CUDA {version // 1000}.{version % 1000 // 10}, but this PyTorch "
        f"({torch.__version__}) needs CUDA {torch.version.cuda}: {remedy}"
    )


def _cards(root: Path = Path("/proc/driver/nvidia/gpus")) -> str:
    """Return the names of the GPUs, which NVIDIA's driver writes to files."""
    names = []
    for path in sorted(root.glob("*/information")):
        model = re.search(r"^Model:\s*(.+)$", path.read_text(errors="replace"), re.MULTILINE)
        if model is not None:
            names.append(model[1].strip())
    return f"the GPU {', '.join(dict.fromkeys(names))}" if names else "the GPU"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
