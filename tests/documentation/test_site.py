"""The site that docs/conf.py builds: a small repository with one page of each kind. `make docs` builds the real one."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_once import made_once
from repository import ROOT

pytest.importorskip("furo", reason="Sphinx is not installed: make docs installs it")

INDEX = """# Title
- [changes](../CHANGELOG.md), [all](../recipes)
- a [page](how/page.md), a [heading](how/second.md#other-page)

[Again](how/page.md), and [second](how/second.md).
"""
PAGE = """# Page
## A heading
```console
$ dragoman --version
dragoman 1
```
[a](../../recipes/a.yaml) and [back](#a-heading), [^=]*, --option

The sum $x_1 + 2$ costs 3 $ or 4 $.
"""
QUERIES = """page#a-heading: |
  vocabulary mismatch,
  does not converge

second: |
  learning rate
"""
OTHER = "# Other page\n[back](../index.md)\n"
FILES = {
    "CHANGELOG.md": "# Changes\n## First *one*\n[page](docs/how/page.md#a-heading), [recipe](recipes/a.yaml)\n",
    "recipes/a.yaml": "train: {seed: 1} # <b>\n",
    "docs/index.md": INDEX,
    "docs/how/page.md": PAGE,
    "docs/how/second.md": OTHER,
    "docs/how/queries.yaml": QUERIES,
}


def build(repository: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-n", "-W", "--keep-going", "-q", "docs", "site"]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True)


def write(repository: Path) -> None:
    for name, text in FILES.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "docs" / "conf.py", repository / "docs")
    shutil.copytree(ROOT / "docs" / "site", repository / "docs" / "site", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""

    def make(folder: Path) -> None:
        write(folder)
        done = build(folder)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "small-site", make) / "site"


def test_links_to_files_outside_docs_lead_to_pages_that_show_them(site: Path) -> None:
    front = (site / "index.html").read_text()
    assert 'href="files/CHANGELOG.md.html"' in front
    assert 'href="files/recipes.html"' in front
    assert 'href="../files/recipes/a.yaml.html"' in (site / "how" / "page.html").read_text()
    changes = (site / "files" / "CHANGELOG.md.html").read_text()
    assert '<h2 id="first-one">' in changes
    assert 'href="../how/page.html#a-heading"' in changes
    assert 'href="recipes/a.yaml.html"' in changes
    assert "&lt;b&gt;" in (site / "files" / "recipes" / "a.yaml.html").read_text()
    assert "a.yaml" in (site / "files" / "recipes.html").read_text()


def test_the_navigation_has_the_pages_that_the_index_links_to_in_their_order(site: Path) -> None:
    entries = re.findall(r'<li class="toctree-l1"><a [^>]*href="([^"]*)"', (site / "index.html").read_text())
    assert entries == ["how/page.html", "how/second.html"]


def test_the_text_is_that_of_the_page(site: Path) -> None:
    assert "[^=]*, --option" in (site / "how" / "page.html").read_text()


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    page = (site / "how" / "page.html").read_text()
    assert re.search(r"<msub>\s*<mi>x</mi>\s*<mn>1</mn>\s*</msub>", page)
    assert page.count("<math") == 1
    assert "costs 3 $ or 4 $." in page


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    pages = {path.name: path.read_text() for path in site.rglob("*.html")}
    assert {"index.html", "page.html", "search.html"} <= pages.keys()
    loaded = re.compile(r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//")
    assert {name: found for name, page in pages.items() if (found := loaded.findall(page))} == {}
    assert [path for path in site.rglob("*.css") if re.search(r"url\(\W?(?:https?:)?//", path.read_text())] == []


def test_broken_links_are_errors(tmp_path: Path) -> None:
    write(tmp_path)
    page = tmp_path / "docs" / "how" / "page.md"
    page.write_text("# Page\n[a](other.md), [b](#no-such-heading), [c](../index.md#no-such-heading), [d](../../gone)\n")
    (tmp_path / "docs" / "alone.md").write_text("# Alone\n")
    (tmp_path / "docs" / "how" / "queries.yaml").unlink()
    done = build(tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("[myst.xref_missing]") == 4
    assert "alone.md: WARNING: document isn't included in any toctree" in done.stderr


def test_the_search_works_from_disk(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    errors: list[str] = []
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"{site.as_uri()}/index.html")
    tab.fill("input[name=q] >> nth=0", "gizmo heading")  # no page has the first word
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#search-results li a")
    assert "Page" in tab.inner_text("#search-results li")
    tab.wait_for_selector("#search-results li .context")  # text of the page
    assert "The sum" in tab.inner_text("#search-results li .context")
    assert tab.inner_text("#search-results li .highlighted") == "heading"
    assert (tab.get_attribute("#search-results li a", "href") or "").endswith("how/page.html#a-heading")
    assert errors == []


def test_a_passage_is_a_section_with_its_anchor_prose_and_code(site: Path) -> None:
    script = (site / "_static" / "passages.js").read_text()
    pages = dict(json.loads(script.removeprefix("const PASSAGES = ").rstrip(";\n")))
    prose = "a and back, [^=]*, --option The sum x_1 + 2 costs 3 $ or 4 $."
    code = "$ dragoman --version dragoman 1"
    queries = ["vocabulary mismatch", "does not converge"]
    assert pages["how/page"] == [["", "Page", "", "", []], ["#a-heading", "A heading", prose, code, queries]]
    for name, passages in pages.items():
        html = (site / f"{name}.html").read_text()
        assert [each[0] for each in passages if each[0] and f'id="{each[0][1:]}"' not in html] == []


def test_pages_are_found_by_queries_that_they_do_not_contain_also_misspelt(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto(f"{site.as_uri()}/search.html")
    tab.wait_for_function("Search.hasIndex()")

    def first(words: str) -> str | None:
        found = tab.evaluate("words => searchPassages(words).map(result => result.name + result.anchor)", words)
        return found[0] if found else None

    assert first("vocabulary mismatch when resuming") == "how/page#a-heading"
    assert first("model does not converge") == "how/page#a-heading"
    assert first("which learning rate") == "how/second"
    assert first("vocabluary") == "how/page#a-heading"
    assert first("gizmo") is None


def test_queries_for_a_section_that_does_not_exist_are_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "docs" / "how" / "queries.yaml").write_text("page#gone: |\n  learning rate\n")
    done = build(tmp_path)
    assert done.returncode != 0
    assert "pages or sections that do not exist: how/page#gone" in done.stderr
