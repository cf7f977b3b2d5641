"""The texts of the page: the same keys and placeholders in each language, and no text outside these files."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dragoman.addons.serving.http.routes.page import files

babel = pytest.importorskip("babel", reason="plural forms are compared with babel's: pip install 'dragoman[documents]'")

PAGE = Path(str(files("dragoman.addons.serving") / "page"))
TEXTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in (PAGE / "texts").iterdir()
}
HTML = (PAGE / "index.html").read_text("utf-8")
SCRIPTS = {path.name: path.read_text("utf-8") for path in PAGE.glob("*.js") if path.name != "examples.js"}
NAMES = {"dragoman", "Markdown", "HTML"}
"""Words of the page that are the same in all languages."""


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{(\w+)\}", text))


def test_the_page_lists_the_languages() -> None:
    listed = re.search(r'data-languages="([^"]+)"', HTML)
    assert listed is not None and sorted(listed[1].split()) == sorted(TEXTS) and len(TEXTS) == 13


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_each_language_has_the_keys_and_placeholders_of_english(language: str) -> None:
    texts, english = TEXTS[language], TEXTS["en"]
    assert list(texts) == list(english)
    for key, text in texts.items():
        forms = text if isinstance(text, dict) else {"": text}
        expected = english[key]["other"] if isinstance(english[key], dict) else english[key]
        assert isinstance(text, dict) == isinstance(english[key], dict), key
        for category, form in forms.items():
            assert form.strip() == form and form, key
            # some languages have words for one and two: "a term", "two terms"
            assert placeholders(form) == placeholders(expected) or category in ("one", "two"), key
            assert form.count("`") == expected.count("`") or key.startswith("help"), key
            assert form.count("`") % 2 == 0, key


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_plural_forms_are_those_of_the_language(language: str) -> None:
    tags = {*babel.Locale.parse(language, sep="-").plural_form.tags, "other"}
    if language in ("es", "fr", "it", "pt"):
        tags -= {"many"}  # for millions only, which take the form `other` here
    for key, text in TEXTS[language].items():
        if isinstance(text, dict):
            assert set(text) == tags, key


class Reader(HTMLParser):
    """Collects the texts of a page, except that for browsers without JavaScript, and attributes that users read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.is_script_free = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_script_free |= tag == "noscript"
        names = {"title", "placeholder", "aria-label", "alt"}
        self.found += [value or "" for name, value in attrs if name in names]
        self.found += [
            value or "" for name, value in attrs if tag == "meta" and name == "content" and "," not in str(value)
        ]

    def handle_endtag(self, tag: str) -> None:
        self.is_script_free &= tag != "noscript"

    def handle_data(self, data: str) -> None:
        if not self.is_script_free:
            self.found.append(data.strip())


def test_no_text_is_in_the_page_itself() -> None:
    reader = Reader()
    reader.feed(HTML)
    words = {text for text in reader.found if re.search(r"[^\W\d_]", text)}
    assert words - NAMES <= {"light dark"}  # the colour schemes
    styles = "".join(path.read_text("utf-8") for path in PAGE.glob("*.css"))
    assert not re.search(r'content:\s*"[^"]*[a-z]{2}', styles)


def test_no_text_is_in_the_scripts() -> None:
    for name, script in SCRIPTS.items():
        code = re.sub(r"^\s*(//|/?\*).*$|\s//.*$", "", script, flags=re.MULTILINE)
        shown = re.findall(r"""(?:textContent|title|announce\w*|showProblem)\s*(?:=|\()\s*["'`]([^"'`]+)""", code)
        assert not [text for text in shown if re.search("[a-z]{2}", re.sub(r"\$\{.*?\}", "", text))], name
        # two words with a space between them are a sentence, unless they are a selector
        phrases = [*re.findall(r'"([^"\n]*)"', code), *re.findall("`([^`]*)`", code)]
        phrases = [re.sub(r"\$\{.*?\}", "", phrase) for phrase in phrases]
        assert not [phrase for phrase in phrases if re.search(r"[a-z]{2,} [a-z]{2,}", phrase)], name


def test_each_text_is_used_and_each_used_text_exists() -> None:
    used = set(re.findall(r'data-(?:text|label|title|placeholder|content)="(\w+)"', HTML))
    # the keys of `say`, and of functions that pass one on
    strings = {each for script in SCRIPTS.values() for each in re.findall(r'"(\w+)"', script)}
    said = {key for script in SCRIPTS.values() for key in re.findall(r'\bsay\("(\w+)"', script)}
    assert used | said <= set(TEXTS["en"]) <= used | strings
