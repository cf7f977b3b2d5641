"""Front matter of Markdown: titles and descriptions are translated, and everything else stays the same data."""

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, anyhow, backwards, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("mdit_py_plugins")


def translated(text: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format="markdown").text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "---\ntitle: A dog  # no\nslug: a-dog\ndate: 2026-01-02\ntags: [a, b]\ndraft: true\n---\nOne\n",
            "---\ntitle: A DOG  # no\nslug: a-dog\ndate: 2026-01-02\ntags: [a, b]\ndraft: true\n---\nONE\n",
        ),
        (
            "---\nsidebar_label: 'it''s'\ndescription: \"a \\\"b\\\"\"\nlinkTitle: One\n  two\n---\n",
            "---\nsidebar_label: 'IT''S'\ndescription: \"A \\\"B\\\"\"\nlinkTitle: ONE TWO\n---\n",
        ),
        (
            "---\r\nsummary: >-\r\n  A dog\r\n  runs.\r\n\r\n  Two.\r\nid: x\r\n---\r\n",
            "---\r\nsummary: >-\r\n  A DOG RUNS.\r\n\r\n  TWO.\r\nid: x\r\n---\r\n",
        ),
        (
            "---\ndescription: |\n  A dog\n  runs.\n\n  - One `x`\n---\n",
            "---\ndescription: |\n  A DOG RUNS.\n\n  - ONE `x`\n---\n",
        ),
        (
            '---\nhero: {name: X, text: a b, image: {src: a.png, alt: "c"}}\n'
            "features:\n- title: d\n  details: e\n---\n",
            '---\nhero: {name: X, text: A B, image: {src: a.png, alt: "C"}}\n'
            "features:\n- title: D\n  details: E\n---\n",
        ),
        (
            "---\ntitle: 2026\nsubtitle: yes\nexcerpt: null\ncaption: [a]\n---\nA",
            "---\ntitle: 2026\nsubtitle: yes\nexcerpt: null\ncaption: [a]\n---\nA",
        ),
        ("---\ntitle: &x One\nslug: *x\n---\nA", "---\ntitle: &x One\nslug: *x\n---\nA"),
        (
            "+++\ntitle = 'A dog' # no\n# title = 'no'\n"
            'description = "a \\"b\\""\nslug = \'a\'\ndate = 2026-01-02\n+++\nOne',
            "+++\ntitle = 'A DOG' # no\n# title = 'no'\n"
            'description = "A \\"B\\""\nslug = \'a\'\ndate = 2026-01-02\n+++\nONE',
        ),
        (
            "+++\nx = '''\ntitle = 'no'\n'''\n"
            '[params]\nsummary = """\nOne\ntwo"""\ncover = { alt = \'c\', src = \'d\' }\n+++\n',
            "+++\nx = '''\ntitle = 'no'\n'''\n"
            '[params]\nsummary = """\nONE TWO"""\ncover = { alt = \'C\', src = \'d\' }\n+++\n',
        ),
        ('{\n\t"title": "A \\u00fc",\n\t"slug": "a"\n}\nOne', '{\n\t"title": "A Ü",\n\t"slug": "a"\n}\nONE'),
        ("---\nA dog runs\n---\nTwo", "---\nA DOG RUNS\n---\nTWO"),
        ("---\n---\n---\nTwo", "---\n---\n---\nTWO"),
    ],
)
def test_the_texts_of_front_matter_are_translated(source: str, expected: str) -> None:
    assert translated(source) == expected
    assert translated(source, same) == source


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("- a", "'- a'"),
        ("[a]", "'[a]'"),
        ("yes", "'yes'"),
        ("12", "'12'"),
        ("it's", "it's"),
        ("@a", "'@a'"),
        ("a:", "'a:'"),
        ("* 'b'", "'* ''b'''"),
    ],
)
def test_quotes_are_added_where_yaml_needs_them(written: str, expected: str) -> None:
    write: Write = lambda words: [(word, 0) for word in written.split(" ")]  # noqa: E731
    assert translated("---\ntitle: One\nslug: b\n---\n", write) == f"---\ntitle: {expected}\nslug: b\n---\n"


LOADS: dict[str, Callable[[str], Any]] = {"---": yaml.safe_load, "+++": tomllib.loads}
VALUES = st.sampled_from(
    ["a dog", "Two men: run", "it's `x`", "50% # no", '\\d "q"', "{a}", "- b", "one\ntwo\n", "é 😀"]
)
NAMES = st.sampled_from(["title", "description", "slug", "weight", "linkTitle"])
SIGNS = ["dog", ":", "#", "'", '"', "\\", "-", "{", "[", "]", "|", "&", "*", "%", "é", "é:"]


@settings(max_examples=30, deadline=None)
@given(
    data=st.dictionaries(NAMES, VALUES, min_size=1),
    style=st.sampled_from([None, "'", '"', "|", ">"]),
    fence=st.sampled_from(["---", "+++"]),
    write=st.sampled_from([upper, backwards, anyhow])
    | st.permutations(SIGNS).map(lambda signs: lambda words: [(sign, 0) for sign in signs]),
)
def test_only_the_texts_differ_in_the_data(data: dict[str, str], style: str | None, fence: str, write: Write) -> None:
    written = yaml.safe_dump(data, default_style=style, allow_unicode=True) if fence == "---" else _toml(data)  # type: ignore[call-overload]
    assert LOADS[fence](written) == data
    found = translated(f"{fence}\n{written}{fence}\nText", write)
    inner = LOADS[fence](found[4 : found.rindex(fence)])
    assert inner.keys() == data.keys()
    assert all(inner[name] == data[name] for name in data.keys() & {"slug", "weight"})


def _toml(data: dict[str, str]) -> str:
    import json

    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in data.items())


@pytest.mark.parametrize(
    ("source", "warning"),
    [
        ("---\ntitle: [a\n---\nA dog", "could not be read as YAML: line 3: expected ',' or ']'"),
        ("---\ntitle: a\nb: " + "[" * 5000 + "\n---\nA dog", "could not be read as YAML: it is nested too deeply"),
        ("+++\ntitle = a\n+++\nA dog", "could not be read as TOML: Invalid value (at line 1, column 9)"),
        ("---\na: &x {title: b}\nc: *x\n---\nA dog", "could not be read as YAML: aliases are not supported"),
        ("---\ntitle: a\n" + "b: c\n" * 5000 + "---\nA dog", "has more than 20,000 characters"),
    ],
)
def test_front_matter_that_cannot_be_translated_is_kept(
    source: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translated(source) == source.replace("\nA dog", "\nA DOG")
    assert warning in " ".join(capsys.readouterr().err.split())
