"""What is published: the description of the package, its source distribution, and the workflow that uploads them."""

import importlib.util
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from repository import ROOT

pytest.importorskip("hatchling")

REPOSITORY = "https://example.org/owner/dragoman"
needs_hosting = pytest.mark.skipif(
    not (ROOT / ".github").exists(), reason="the source distribution has no files for a code host"
)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def described(hooks: ModuleType) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    hooks.RepositoryMetadataHook(str(ROOT), {}).update(metadata)
    return metadata


def test_links_of_the_description_are_absolute(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_REPOSITORY", REPOSITORY + "/")
    metadata = described(hooks)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)", metadata["readme"]["text"])
    assert len(links) > 15 and all(re.match("https?://", address) for _, address in links)
    for is_picture, address in links:
        if address.startswith(REPOSITORY):
            kind, _, path = address.removeprefix(f"{REPOSITORY}/").partition("/main/")
            assert kind == ("raw" if is_picture else "blob") and (ROOT / path.partition("#")[0]).exists(), address
    assert metadata["urls"]["Repository"] == REPOSITORY and "Changelog" in metadata["urls"]


def test_without_an_address_the_description_is_the_readme(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_REPOSITORY", raising=False)
    assert described(hooks)["readme"]["text"] == (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("markdown", "absolute"),
    [
        ("[a](docs/b.md#c)", f"[a]({REPOSITORY}/blob/main/docs/b.md#c)"),
        ('[1](docs/E.md#x "a / b")', f'[1]({REPOSITORY}/blob/main/docs/E.md#x "a / b")'),
        ("![p](docs/p.png)", f"![p]({REPOSITORY}/raw/main/docs/p.png)"),
        ("[a](#b), [c](https://d.org), [e](mailto:f@g.org)", "[a](#b), [c](https://d.org), [e](mailto:f@g.org)"),
    ],
)
def test_kinds_of_links(hooks: ModuleType, markdown: str, absolute: str) -> None:
    assert hooks.absolute_links(markdown, REPOSITORY) == absolute


def test_the_source_distribution_has_all_that_checks_and_pages_need() -> None:
    patterns = [each[1:] for each in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if len(listed) < 100:
        pytest.skip("this is not a clone")
    hosting = (".github/", ".devcontainer/", ".gitignore", ".pre-commit")
    always = {"LICENSE", "pyproject.toml"}

    def is_included(path: str) -> bool:
        return any(path.startswith(f"{each}/") or ("/" not in path and fnmatch(path, each)) for each in patterns)

    assert not [each for each in listed if not (is_included(each) or each.startswith(hosting) or each in always)]


def test_the_constraints_meet_the_declared_ranges() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PYPROJECT["project"]["optional-dependencies"]
    wanted = [*PYPROJECT["project"]["dependencies"], *(each for extra in extras.values() for each in extra)]
    for requirement in map(Requirement, wanted):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name == "dragoman" or (requirement.marker is not None and not requirement.marker.evaluate()):
            continue
        assert name in pins, f"make lock: {name} is missing"
        assert requirement.specifier.contains(pins[name], prereleases=True), requirement


@needs_hosting
def test_the_workflow_publishes_without_a_secret() -> None:
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    jobs = release["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["environment"] == "pypi" and release["permissions"] == {"contents": "read"}
    text = "".join(path.read_text("utf-8") for path in (ROOT / ".github/workflows").iterdir())
    assert "secrets." not in text and "password" not in text.replace("no password", "")
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {word for command in commands for word in re.findall(r"\bmake (\w+)", command)}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@needs_hosting
def test_forms_and_hooks_are_valid() -> None:
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text("utf-8"))
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= form.keys()
            identifiers = [each["id"] for each in form["body"]]
            assert len(identifiers) == len({*identifiers})
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in repository["hooks"]}
    assert tools == {"ruff", "lint-imports"}


@pytest.mark.parametrize(
    ("arguments", "processor", "message"),
    [
        ([], "x86_64", "say where links lead: make release REPOSITORY=https://github.com/OWNER/dragoman"),
        ([f"REPOSITORY={REPOSITORY}"], "x86_64", "there is no aarch64-linux-gnu-gcc, which compiles the engine"),
        ([f"REPOSITORY={REPOSITORY}"], "aarch64", "there is no x86_64-linux-gnu-gcc, which compiles the engine"),
    ],
)
def test_a_release_checks_what_it_needs_before_it_installs_anything(
    arguments: list[str], processor: str, message: str, tmp_path: Path
) -> None:
    make, shell = shutil.which("make"), shutil.which("sh")
    if make is None or shell is None:
        pytest.skip("there is no make")
    (tmp_path / "sh").symlink_to(shell)
    (tmp_path / "uname").write_text(f"#!{shell}\necho {processor}\n")
    (tmp_path / "uname").chmod(0o755)
    command = [make, "release", f"VENV={tmp_path / 'venv'}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(message), done.stderr
    assert not (tmp_path / "venv").exists()
