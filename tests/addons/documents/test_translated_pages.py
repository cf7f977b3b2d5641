"""`translate_document` and `dragoman translate-document`: pages with known translations, files, and refusals."""

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_in_translators import StandIn, backwards, upper
from tiny_model import write_tiny_model

import dragoman
from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.union import detect_format
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.text.sentences.division import MAX_LENGTH
from dragoman.text.sentences.splitter import Splitter

pytest.importorskip("sentencex")


def translated(text: str, format: str, write=upper, **how) -> str:  # type: ignore[no-untyped-def]
    return translate_document(StandIn(write, **how), text, format=format).text  # type: ignore[arg-type]


def test_everything_but_sentences_is_kept_in_text() -> None:
    text = "A dog.  Two men.\r\n\r\n\t- one: a cat\t3.5\r\n  2) dogs   cats \n***\n42\n"
    assert translated(text, "text") == "A DOG.  TWO MEN.\r\n\r\n\t- ONE: A CAT\t3.5\r\n  2) DOGS   CATS \n***\n42\n"


def test_markdown() -> None:
    text = (
        "---\ntitle: a dog\n---\n"
        "\n# The *big* dog\n\nTwo **men\nand** a [cat](http://a.b 'x'). One `a b` more.  \nLast\n"
        "\n> - a\n>   b\n\n| a \\| b | c |\n|---|:-:|\n| d | `e` |\n\n```\na dog\n```\n\n<div>\ndog\n</div>\n\n[r]: http://x\n"
    )
    assert translated(text, "markdown") == (
        "---\ntitle: A DOG\n---\n"
        "\n# THE *BIG* DOG\n\nTWO **MEN AND** A [CAT](http://a.b 'x'). ONE `a b` MORE.  \nLAST\n"
        "\n> - A B\n\n| A \\| B | C |\n|---|:-:|\n| D | `e` |\n\n```\na dog\n```\n\n<div>\nDOG\n</div>\n\n[r]: http://x\n"
    )


def test_html() -> None:
    text = (
        "<!DOCTYPE html>\n<title>a dog</title><script>a < b</script>\n"
        '<p class=x>A <a href="b?c&amp;d" title="the &quot;'
        'one&quot;">big   dog</a> &amp; <img src=a alt=dog> a <code>cat x</code>.<br>More</p><pre>a dog</pre>'
        "<p translate=no>a dog</p><!-- a dog --> <textarea>a dog</textarea>"
    )
    assert translated(text, "html") == (
        "<!DOCTYPE html>\n<title>A DOG</title><script>a < b</script>\n"
        '<p class=x>A <a href="b?c&amp;d" title="THE &quot;'
        'ONE&quot;">BIG DOG</a> &amp; <img src=a alt=DOG> A <code>cat x</code>.<br>MORE</p><pre>a dog</pre>'
        "<p translate=no>a dog</p><!-- a dog --> <textarea>a dog</textarea>"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A <b>big dog</b> runs.", "RUNS. <b>DOG BIG</b> A"),
        ("<b>One</b> <i>two</i> three", "THREE <i>TWO</i> <b>ONE</b>"),
        ("<b>One <i>two</i></b> three", "THREE <b><i>TWO</i> ONE</b>"),
        ("<b>One two.</b>", "<b>TWO. ONE</b>"),
        ("One <b>two. Three</b> four.", "<b>TWO. ONE FOUR. THREE</b>"),
        ("a <img> b <i></i>c", "C <img>B A"),
    ],
)
def test_markup_moves_with_its_words(before: str, after: str) -> None:
    found = translated(before, "html", backwards)
    if "Three" in before:  # a span over two sentences: it starts in one and ends in the other
        assert found.count("<b>") == found.count("</b>") == 1 and found.index("<b>") < found.index("</b>")
    elif "<img>" in before:
        assert found.count("<img> ") == 1 and found.count("<i></i>") == 1
    else:
        assert found == after


def test_hostile_pages() -> None:
    deep = "a " + "<b>" * 1100 + "x" + "</b>" * 1100 + " y"
    found = translated(deep, "html", backwards)
    assert found.count("<b>") == found.count("</b>") == 1100
    open_and_closed = "a " + "<b>" * 4_000 + "</i>" * 4_000 + " y"
    assert len(translated(open_and_closed, "html")) == len(open_and_closed)
    assert translated("a <b>x <i>y</b> z</i> w", "html", backwards).count("<") == 4
    assert translated("*a " * 1000, "markdown") == "*A " * 1000


def test_code_is_constrained() -> None:
    translator = StandIn(upper)
    translate_document(translator, "Run `dragoman x` now. A dog.", format="markdown")  # type: ignore[arg-type]
    (first, asked), (second, plain) = translator.asked
    assert (first, second) == ("Run dragoman x now.", "A dog.")
    assert asked.control is not None and asked.control.keep is not None
    assert [span.text for span in asked.control.keep.find(first)] == ["dragoman x"]
    assert plain.control is None


def test_long_sentences_are_split_and_counted() -> None:
    text = "a dog, " * 400 + "\n" + "b" * (3 * MAX_LENGTH)
    done = translate_document(StandIn(upper), text)  # type: ignore[arg-type]
    assert done.text == text.upper()
    assert done.divided == 2
    assert list(Splitter("en", lambda part: len(part) < 4).sentences("abcdef")) == [(0, 3), (3, 6)]


def test_a_model_without_alignments_or_language_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert translated("A <b>dog</b> runs", "html", aligns=False, language=None) == "A <b>DOG</b> RUNS"
    told = capsys.readouterr().err
    assert told.count("does not name its source language") == 1 and told.count("word order alone") == 1


def test_a_missing_library_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[documents\]'"):
        translated("A dog", "markdown")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "model")
    Path("in.html").write_bytes(b"<p>A <b>dog</b> runs.</p>\r\n\r\n<p>A <code>x1</code> dog</p>")
    return ["translate-document", "model", "--beam", "1", "search.maximum_length=5"]


def test_files_and_streams(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*command, "-i", "in.html", "-o", "out.html.gz"]) == 0
    assert "2 sentence(s) translated" in capsys.readouterr().err
    found = gzip.decompress(Path("out.html.gz").read_bytes()).decode()
    assert found.count("<b>") == found.count("</b>") == 1 and "</p>\r\n\r\n<p>" in found and "<code>x1</code>" in found
    text = Path("in.html").read_bytes().decode()
    asked = {"beam": 1, "search": ["search.maximum_length=5"]}
    assert dragoman.translate_document("model", text, format="html", **asked).text == found
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b" \r\n- \xe9\n")))
    assert main([*command, "--on-error", "replace"]) == 0
    assert capsys.readouterr().out == " \r\n- \ufffd\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--format", "djvu"], 2, "unknown document format 'djvu'"),
        (["--nbest", "3"], 2, "No such option: --nbest"),
        (["--on-error", "blank"], 2, "use stop or replace"),
        (["-i", "none.md"], 1, "there is no file none.md"),
        (["-i", "in.html", "-o", "in.html"], 1, "would overwrite the file"),
        (["-i", "broken"], 1, "broken, line 2: broken UTF-8"),
    ],
)
def test_errors_are_explained(
    command: list[str], arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken").write_bytes(b"a\n\xff")
    given = arguments if "-i" in arguments else [*arguments, "-i", "in.html"]
    assert main([*command, *given]) == code
    assert message in capsys.readouterr().err
    with pytest.raises(DataError, match="line 2: broken UTF-8"):
        translated("a\n\udcff", "text")


def test_formats_by_name() -> None:
    names = {"a.md": "markdown", "a.HTML.gz": "html", "a.txt": "text", "a": "text", "a.b.markdown": "markdown"}
    assert {name: detect_format(Path(name)) for name in names} == names
