"""The systemd unit: checked by systemd's own programs, and a server runs under its restrictions."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import address_families
import httpx
import pytest
import sandbox
from sandbox import ROOT, Sandbox
from tiny_model import write_tiny_model
from waiting import PATIENCE, is_ready, wait_until

from dragoman.addons.serving.config import ServeConfig
from dragoman.base.settings.load import load_settings
from dragoman.native.build import compiled_library
from dragoman.native.compiler import INSTRUCTION_SETS

UNIT = ROOT / "deploy" / "dragoman.service"
USER = 61999  # among those that systemd gives to DynamicUser

EMULATED = {
    "ExecStart", "DynamicUser", "WorkingDirectory", "StateDirectory", "CacheDirectory", "Environment", "ReadOnlyPaths",
    "LimitNOFILE", "KillMode", "TimeoutStopSec", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp",
    "PrivateDevices", "RestrictAddressFamilies", "CapabilityBoundingSet", "UMask",
}  # fmt: skip
OF_THE_MANAGER = {"Type", "Restart", "RestartPreventExitStatus", "RestartSec"}
OF_THE_KERNEL = {
    "ProtectProc", "ProtectClock", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelTunables",
    "ProtectKernelModules", "ProtectControlGroups", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
    "LockPersonality", "SystemCallArchitectures",
}  # fmt: skip
"""They forbid system calls and files of the kernel that no part of the server uses; they are not emulated."""


def service() -> dict[str, str]:
    """Return the settings of the section [Service]."""
    section = UNIT.read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    return dict(re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    unit = tmp_path / "dragoman.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert found.returncode == 0 and not found.stderr.strip(), found.stderr


def test_every_setting_is_emulated_or_listed() -> None:
    assert set(service()) == EMULATED | OF_THE_MANAGER | OF_THE_KERNEL


@pytest.mark.slow
@pytest.mark.skipif(sandbox.obstacle() is not None, reason=f"no sandbox: {sandbox.obstacle()}")
def test_a_server_under_the_restrictions_of_the_unit(tmp_path: Path) -> None:
    """It compiles its engine into the cache folder, translates, and ends in time after SIGTERM."""
    unit, example = service(), load_settings(ROOT / "deploy" / "serve.yaml", (), ServeConfig)
    (tmp_path / "root").mkdir()
    write_tiny_model(tmp_path / "model")
    subprocess.run(["chmod", "-R", "a+rX", str(tmp_path / "model")], check=True)
    cache, state = f"/var/cache/{unit['CacheDirectory']}", f"/var/lib/{unit['StateDirectory']}"
    assert (unit["ProtectSystem"], unit["ProtectHome"], unit["CapabilityBoundingSet"]) == ("strict", "yes", "")
    box = Sandbox(
        tmp_path / "root",
        visible={str(example.models[0].path): tmp_path / "model"},
        tmpfs={"/tmp": "mode=1777", "/var/tmp": "mode=1777"},
        writable=(cache, state),
        is_read_only=True,
        user=USER,
    )
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    settings = (ROOT / "deploy" / "serve.yaml").read_text(encoding="utf-8").replace("port: 5000", f"port: {port}")
    box.path("etc/dragoman").mkdir()
    box.path("etc/dragoman/serve.yaml").write_text(settings, encoding="utf-8")
    start = unit["ExecStart"].split()
    box.add_program(start[0], f'exec {sys.executable} -m dragoman "$@"')
    # a compiler that needs no time
    shutil.copy(compiled_library(INSTRUCTION_SETS[-1]), box.path("compiled.so"))
    box.add_program("/cc", 'while [ "$1" != -o ]; do shift; done; cp /compiled.so "$2"')
    environment = dict(each.split("=", 1) for each in unit["Environment"].split())
    environment |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}  # systemd's own
    environment |= {"PYTHONPATH": str(ROOT / "src"), "CC": "/cc", "OMP_NUM_THREADS": "1"}
    limits = f'umask {unit["UMask"]}; ulimit -n {unit["LimitNOFILE"]}; exec "$@"'
    families = ",".join(unit["RestrictAddressFamilies"].split())
    program = ["sh", "-c", limits, "sh", sys.executable, address_families.__file__, families, *start]
    command = box.command(program, environment, unit["WorkingDirectory"])
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: process.poll() is not None or is_ready(url), interval=0.1)
            fields = {"q": "a dog", "source": "en", "target": "de"}
            translated = (
                httpx.post(f"{url}/translate", json=fields, timeout=PATIENCE) if process.poll() is None else None
            )
            status = Path(f"/proc/{process.pid}/status").read_text() if process.poll() is None else ""
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=float(unit["TimeoutStopSec"]))
        finally:
            process.kill()
    assert translated is not None and translated.status_code == 200, log
    assert process.returncode == 0 and "Native engine: compiled" in log and "warning" not in log, log
    assert sorted(path.suffix for path in box.path(cache).iterdir()) == [".so"]
    assert not list(box.path(state).iterdir())
    assert re.search(r"CapEff:\s+0+\n", status) and re.search(r"NoNewPrivs:\s+1\n", status)
    if os.geteuid() == 0:
        assert re.search(rf"Uid:\s+{USER}\s", status)


def test_the_time_to_stop_is_sufficient_for_documents() -> None:
    limits = load_settings(ROOT / "deploy" / "serve.yaml", (), ServeConfig).limits
    assert float(service()["TimeoutStopSec"]) > limits.shutdown_seconds + 5
    assert limits.shutdown_seconds >= limits.file_seconds
