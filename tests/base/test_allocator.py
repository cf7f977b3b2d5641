"""Memory of tensors: large blocks are kept, and tcmalloc replaces glibc's allocator if it is installed."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from dragoman.base.machine.startup import find_tcmalloc, tolerate_missing_temporary_folder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other allocators")


def test_large_blocks_stay_on_the_heap() -> None:
    program = (
        "import resource, numpy as np\n"
        "from dragoman.base.machine.startup import keep_large_tensors_on_heap\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(10): np.ones(5_000_000)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "before = faults()\n"
        "if keep_large_tensors_on_heap():\n"
        "    faults()\n"
        "    print(faults() < before / 5, before)\n"
        "else:\n"
        "    print('True: not glibc')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert result.stdout.startswith("True"), result.stdout


RESTART = """
import json, os, sys
from dragoman.base.machine import startup
startup.find_library = lambda name: {found!r} if name == "tcmalloc" else None
startup.restart_on_tcmalloc()
told = {{key: os.environ.get(key) for key in ("LD_PRELOAD", "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "KEPT")}}
print(json.dumps([told, sys.argv[1:], sys.flags.utf8_mode]))
"""


def _restarted(found: str | None, **given: str) -> tuple[dict[str, str | None], list[str], int]:
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "KEPT": "yes", **given}
    command = [sys.executable, "-X", "utf8", "-c", RESTART.format(found=found), "train", "a b", "k='v'"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert result.stderr == ""
    told, arguments, utf8 = json.loads(result.stdout)
    return told, arguments, utf8


def test_a_restart_keeps_the_command_line_and_the_environment() -> None:
    told, arguments, utf8 = _restarted("libm.so.6")  # any library of the system serves as tcmalloc
    assert told["LD_PRELOAD"] == "libm.so.6"
    assert int(told["TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD"] or 0) > 2**35
    assert told["KEPT"] == "yes"
    assert (arguments, utf8) == (["train", "a b", "k='v'"], 1)


def test_without_tcmalloc_or_where_something_is_preloaded_nothing_restarts() -> None:
    assert _restarted(None)[0]["LD_PRELOAD"] is None
    assert _restarted("libm.so.6", LD_PRELOAD="")[0]["LD_PRELOAD"] == ""


@pytest.mark.slow
@pytest.mark.skipif(find_tcmalloc() is None, reason="tcmalloc is not installed")
def test_the_command_line_trains_on_tcmalloc() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    program = (
        "import runpy, sys\n"
        "sys.argv = ['dragoman', *sys.argv[1:]]\n"
        "try:\n"
        "    runpy.run_module('dragoman', run_name='__main__')\n"
        "finally:\n"
        "    print('tcmalloc' in open('/proc/self/maps').read())\n"
    )
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    for verb, expected in (("train", "True"), ("describe", "False")):
        result = subprocess.run(
            [sys.executable, "-c", program, verb, "--help"], capture_output=True, text=True, env=environment, check=True
        )
        assert result.stdout.splitlines()[-1] == expected


@pytest.mark.parametrize(("is_writable", "folder"), [(True, "/dev/shm"), (False, "/tmp")])
def test_a_machine_whose_usual_folders_for_temporary_files_are_not_writable(
    is_writable: bool, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_folder() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", no_folder)
    monkeypatch.setattr(os, "access", lambda *_: is_writable)
    tolerate_missing_temporary_folder()
    assert tempfile.tempdir == folder
