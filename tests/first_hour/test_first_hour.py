"""Four new users walk through the documentation, from the first command to their goal, without a dead end.

A walk is a file FILE.sh. After a line `## PAGE`, its lines stand in the code blocks of that page of `docs`, in the same
order. `# with:` names prepared inputs as in tests/documentation/README.md; `# python` and `# bash` change the language.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from code_blocks import blocks
from page_commands import PageCommands
from page_inputs import provide
from repository import ROOT

DOCS = ROOT / "docs"
FOLDER = Path(__file__).parent
WALKS = sorted(path.stem for path in FOLDER.glob("*.sh"))
_HEREDOC = re.compile(r"<<'(\w+)'$")
_SMALL = (
    "model.preset=tiny model.width=32 model.encoder.layers=1 model.decoder.layers=1 train.max_steps=20 "
    "data.held_out.valid=20 data.held_out.test=20"
)
"""Settings that make a training run short."""


@dataclass(frozen=True)
class Part:
    """Lines of one page, in one language."""

    page: str
    language: str
    lines: list[str]


def parts(name: str) -> list[Part]:
    """Return the parts of a walk, in order."""
    found: list[Part] = []
    for line in (FOLDER / f"{name}.sh").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append(Part(line.removeprefix("## "), "bash", []))
        elif line in ("# python", "# bash"):
            found.append(Part(found[-1].page, line.removeprefix("# "), []))
        elif found:
            found[-1].lines.append(line)
    return [part for part in found if part.lines]


def needs(name: str) -> list[str]:
    """Return the prepared inputs of a walk."""
    text = (FOLDER / f"{name}.sh").read_text(encoding="utf-8")
    return [each for line in re.findall(r"^# with: (.*)$", text, re.MULTILINE) for each in line.split()]


def commands(part: Part) -> Iterator[str]:
    """Yield the first line of each command."""
    end, continues = "", False
    for line in part.lines:
        if end:
            end = "" if line == end else end
        elif not continues:
            yield line
        if (document := _HEREDOC.search(line)) is not None and not end:
            end = document[1]
        continues = line.endswith("\\")


def shown_lines(page: str) -> Iterator[str]:
    """Yield the lines of the code blocks of a page, without the prompts of a console."""
    for block in blocks((DOCS / page).read_text(encoding="utf-8")):
        for line in block.text.splitlines():
            yield re.sub(r"^(\$|>) ", "", line) if block.language == "console" else line


@pytest.mark.parametrize("name", WALKS)
def test_every_line_of_a_walk_stands_in_its_page(name: str) -> None:
    walk = parts(name)
    assert walk
    rest = {part.page: shown_lines(part.page) for part in walk}
    missing = [f"{part.page}: {line}" for part in walk for line in part.lines if line not in rest[part.page]]
    assert not missing


@pytest.mark.parametrize("name", WALKS)
def test_each_page_of_a_walk_leads_to_the_next_one(name: str) -> None:
    pages = list(dict.fromkeys(part.page for part in parts(name)))
    for number, page in enumerate(pages[1:], 1):
        links = [
            (DOCS / earlier).parent / link
            for earlier in pages[:number]
            for link in re.findall(r"\]\(([^)#\s]+\.md)", (DOCS / earlier).read_text(encoding="utf-8"))
        ]
        assert (DOCS / page).resolve() in [link.resolve() for link in links], page


def walk(name: str, address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, settings: str) -> None:
    """Follow a walk, and print how long it takes. settings: added to `dragoman train`."""
    folder, scratch = tmp_path / "walk", tmp_path / "scratch"
    folder.mkdir()
    provide(needs(name), folder, address, tmp_path_factory)
    started = time.monotonic()
    count = 0
    with PageCommands(address, folder, scratch, seconds=1200) as shell:
        program = scratch / "bin" / "dragoman"
        whole = program.rename(program.with_name("dragoman-whole"))
        program.write_text(f"""#!/bin/sh
[ "$1" = train ] && exec {whole} "$@" {settings}
exec {whole} "$@"
""")
        program.chmod(0o755)
        for part in parts(name):
            text = "\n".join(part.lines)
            shell.run_page(f"```{part.language}\n{text}\n```\n")
            count += sum(1 for _ in commands(part)) if part.language == "bash" else 1
    print(f"{name}: {count} commands, {(time.monotonic() - started) / 60:.1f} minutes")


@pytest.mark.commands
@pytest.mark.parametrize(("name", "settings"), [("low_resource", _SMALL), ("operator", "")])
def test_a_short_walk_has_no_dead_end(
    name: str, settings: str, address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    walk(name, address, tmp_path, tmp_path_factory, settings)


@pytest.mark.slow
@pytest.mark.commands
@pytest.mark.parametrize("name", sorted({*WALKS} - {"operator"}))
def test_a_walk_has_no_dead_end(
    name: str, address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    walk(name, address, tmp_path, tmp_path_factory, "")
