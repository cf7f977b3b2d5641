"""The docs use no command, option, setting or link that does not exist, and recipes are valid."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documented import command, options
from repository import ROOT

from dragoman.base.settings.config import known_settings
from dragoman.tasks.registry import TASKS
from dragoman.tasks.train import load_recipe

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
PAGES_WITH_RECIPES = [
    *(ROOT / "docs" / "how-to" / "models" / f"{name}.md" for name in ("several-tasks", "parsing", "summarization")),
    ROOT / "docs" / "reference" / "labels.md",
]


def documented_commands() -> list[tuple[str, str]]:
    """Yield every `dragoman …` line in the code blocks of the docs, with the name of the page."""
    found = []
    for document in DOCUMENTS:
        for block in re.findall(r"```\w*\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL):
            for line in re.sub(r"\\\n\s*", " ", block).split("\n"):
                line = re.sub(r"(?<=dragoman )(?:--import \S+ )+", "", line)  # stands before the command
                if match := re.search(r"(?:^|[|=\d] )dragoman (?!/)(.*)", line):
                    found.append((document.name, match[1]))
    return found


def test_documented_commands_exist() -> None:
    commands = documented_commands()
    assert len(commands) >= 10
    for document, line in commands:
        words = [word for word in shlex.split(re.sub(r"<\(.*?\)", "FILE", line), comments=True) if word not in "…>"]
        found, rest = command(words)
        where = f"{document}: dragoman {line}"
        assert not hasattr(found, "commands") or not rest or rest[0] == "--help", f"no such command in {where}"
        for word in rest:
            if word.startswith("-"):
                assert word.partition("=")[0] in options(found), f"no option {word} in {where}"


def test_documented_settings_exist() -> None:
    keys = set()
    for document in DOCUMENTS:
        if document.parent.name == "extending":  # settings of the parts that a page adds
            continue
        keys |= set(re.findall(r"\b((?:data|text|model|train|search)(?:\.[a-z_]+)+)=", document.read_text("utf-8")))
    assert keys
    unknown = keys.difference(*(known_settings(task.run) for task in TASKS.values()))
    assert not unknown, f"documented, but no settings: {unknown}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    broken = [
        link
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        if "://" not in link and not (document.parent / link).exists()
    ]
    assert not broken


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_recipes_are_valid(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "somewhere")
    config = load_recipe(recipe, [])
    if config.task.kind == "nodes":  # one graph contains all sets
        return
    data = config.data
    sets = (data.corpora, data.valid_sets) if hasattr(data, "corpora") else (data.train, data.valid)
    files = [
        {file for corpus in (corpora if isinstance(corpora, tuple | list) else [corpora]) for file in corpus.files}
        for corpora in sets
    ]
    assert all(files)
    assert files[0].isdisjoint(files[1])


@pytest.mark.parametrize("page", PAGES_WITH_RECIPES, ids=lambda path: path.name)
def test_recipes_of_pages_are_valid(page: Path, tmp_path: Path) -> None:
    recipes = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert recipes
    for recipe in recipes:
        (tmp_path / "recipe.yaml").write_text(recipe + "out: run\n" * ("out:" not in recipe), encoding="utf-8")
        load_recipe(tmp_path / "recipe.yaml", [])


def test_help_does_not_import_torch() -> None:
    program = (
        "import sys; from dragoman.cli.main import main; code = main(['train', '--help']); "
        "sys.exit(code or ('torch' in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "src", capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (
        result.stderr or "`dragoman train --help` imports torch: import it inside the command"
    )
    assert "--valid-source" in result.stdout
