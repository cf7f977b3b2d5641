"""The core is complete without the add-ons: in a copy of the source without their folder, it trains and predicts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

ADDONS = ROOT / "src" / "dragoman" / "addons"
PROGRAM = """
import importlib, json, pkgutil, sys
import dragoman
from dragoman.cli.main import main
for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert not any(name.startswith("dragoman.addons") for name in sys.modules)
for command in json.loads(sys.argv[1]):
    print(f"== {command[0]}", flush=True)
    assert main(command) == 0, command
"""
"""Imports every module, and runs commands."""
PAIRS = ["a dog runs .\tein Hund rennt .", "two dogs sleep .\tzwei Hunde schlafen .", "a man runs .\tein Mann rennt ."]
LABELLED = ["a dog runs\tanimal", "two dogs sleep\tanimal", "a man runs\tperson", "two men sleep\tperson"]
STACK = {"layers": 1, "heads": 2, "feedforward": 16}
TRAIN = {"max_steps": 2, "validate_every": 2, "threads": 1, "device": "cpu", "precision": "float32"}
RECIPES = {
    "translator": {
        "data": {"train": {"pairs": "pairs.tsv"}, "valid": {"pairs": "pairs.tsv"}},
        "text": {"subword": {"kind": "character"}},
        "model": {"preset": "tiny", "width": 16, "encoder": STACK, "decoder": STACK},
    },
    "classifier": {
        "task": {"kind": "classification"},
        "data": {"train": "labelled.tsv", "valid": "labelled.tsv"},
        "text": {"subword": {"kind": "character"}},
        "model": {"preset": "mean", "width": 16},
    },
    "language-model": {
        "task": {"kind": "language_model"},
        "data": {"train": {"text": "text.txt"}, "valid": {"text": "text.txt"}},
        "text": {"subword": {"kind": "character"}},
        "model": {"preset": "tiny", "width": 16, "decoder": STACK},
    },
}


def hide_entry_points(source: Path) -> None:
    """Let Python find an installed dragoman without entry points in a folder of sources, before the real one."""
    metadata = source / "dragoman-0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: dragoman\nVersion: 0\n")


def test_models_are_trained_and_used(tmp_path: Path) -> None:
    source = tmp_path / "src"
    # compiled modules are copied too, except those that another process is still writing
    ignored = shutil.ignore_patterns("*.pyc.*", ADDONS.name)
    shutil.copytree(ROOT / "src" / "dragoman", source / "dragoman", ignore=ignored)
    hide_entry_points(source)
    (tmp_path / "pairs.tsv").write_text("".join(f"{pair}\n" for pair in PAIRS))
    (tmp_path / "labelled.tsv").write_text("".join(f"{text}\n" for text in LABELLED))
    for name, column in (("text.txt", 0), ("target.txt", 1)):
        (tmp_path / name).write_text("".join(f"{pair.split(chr(9))[column]}\n" for pair in PAIRS))
    for name, recipe in RECIPES.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps({**recipe, "train": TRAIN, "out": name}))
    commands = [
        *(["train", f"{name}.yaml"] for name in RECIPES),
        ["translate", "translator", "--input", "text.txt", "--output", "translated.txt"],
        ["evaluate", "translator", "--source", "text.txt", "--reference", "target.txt"],
        ["predict", "classifier", "--input", "text.txt", "--output", "predicted.tsv"],
        ["generate", "language-model", "--prompt", "a dog"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert [line for line in found.stdout.splitlines() if line.startswith("==")] == [
        f"== {each[0]}" for each in commands
    ]
    for name in ("translated.txt", "predicted.tsv"):
        assert len((tmp_path / name).read_text().splitlines()) == len(PAIRS)
    assert "BLEU" in found.stdout.partition("== evaluate")[2]


@pytest.mark.slow
def test_the_tests_of_the_core_pass(tmp_path: Path) -> None:
    """All tests of the core's packages, in a copy of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and "addons" not in Path(name).parts:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / name)
    hide_entry_points(tmp_path / "src")
    rooms = sorted(f"tests/{each.name}" for each in (tmp_path / "src" / "dragoman").iterdir() if each.is_dir())
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not commands", *rooms]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-10_000:]
