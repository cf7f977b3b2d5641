"""Files on the page: text files go into the text field, documents are translated as a whole and downloaded."""

import io
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import Tabs, expect
from docx import Document
from page_server import SLOW, page_served
from waiting import PATIENCE

from dragoman.addons.serving.access.keys import Keys

DROP = """([name, content, type]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([new Uint8Array(content)], name, {type}));
  const event = new DragEvent('drop', {dataTransfer, bubbles: true, cancelable: true});
  document.getElementById('text').dispatchEvent(event);
}"""


def drop(tab: Any, name: str, content: bytes, kind: str = "") -> None:
    tab.evaluate(DROP, [name, list(content), kind])


def letter(text: str) -> bytes:
    """A Word document of one paragraph with one bold word."""
    document, stream = Document(), io.BytesIO()
    first, *rest = text.split(" ")
    paragraph = document.add_paragraph()
    paragraph.add_run(first).bold = True
    paragraph.add_run(" " + " ".join(rest))
    document.save(stream)
    return stream.getvalue()


def test_text_files_go_into_the_text_field(tab: Any) -> None:
    field, problem = tab.get_by_label("Text to translate"), tab.locator("#text-problem")
    drop(tab, "notes.txt", "a dog\r\nruns ä".encode(), "text/plain")
    expect(field).to_have_value("a dog\nruns ä")
    expect(tab.locator("#translation")).to_have_text("DOG A\nÄ RUNS")
    expect(tab.get_by_label("Format of the text")).to_have_value("text")
    drop(tab, "latin.txt", "ä".encode("latin-1"), "text/plain")
    expect(problem).to_have_text("latin.txt cannot be read: it is not UTF-8 text.")
    expect(field).to_have_value("a dog\nruns ä")
    drop(tab, "<b>letter</b>.pages", b"PK")
    expect(problem).to_contain_text("<b>letter</b>.pages is not supported; this server supports txt, ")
    drop(tab, "book.log", b"a" * 50_000, "text/plain")
    expect(problem).to_contain_text(
        "book.log is too long: 50 kB, but this server translates at most 10,000 characters at once."
    )
    tab.locator("#file").set_input_files({"name": "page.html", "mimeType": "text/html", "buffer": b"<p>a <b>b</b></p>"})
    expect(field).to_have_value("<p>a <b>b</b></p>")
    expect(problem).to_be_hidden()
    expect(tab.get_by_label("Format of the text")).to_have_value("html")
    expect(tab.locator("#translation")).to_have_text("<p><b>B</b> A</p>")
    tab.locator("#file").set_input_files({"name": "R.md", "mimeType": "", "buffer": b"# a b\n\n`c`\n"})
    expect(tab.get_by_label("Format of the text")).to_have_value("markdown")
    expect(tab.locator("#translation")).to_have_text("# B A\n\n`c`\n", use_inner_text=False)
    expect(tab.get_by_role("group", name="Document")).to_be_hidden()


def test_documents_are_translated_as_a_whole(tab: Any, tmp_path: Path) -> None:
    box, link = tab.get_by_role("group", name="Document"), tab.locator("#document-link")
    tab.get_by_label("Text to translate").fill("a dog")
    drop(tab, "my letter ä.docx", letter("dogs run far"))
    expect(link).to_have_text("Download my letter ä.de.docx")
    expect(tab.get_by_label("Text to translate")).to_be_focused()
    with tab.expect_download() as download:
        link.press("Enter")
    assert download.value.suggested_filename == "my letter ä.de.docx"
    download.value.save_as(tmp_path / "letter.docx")
    (paragraph,) = Document(str(tmp_path / "letter.docx")).paragraphs
    assert paragraph.text == "FAR RUN DOGS"
    assert [run.text for run in paragraph.runs if run.bold] == ["DOGS"], "its format goes with its word"
    expect(tab.get_by_label("Text to translate")).to_have_value("a dog")
    drop(tab, "film.srt", b"1\n00:00:01,000 --> 00:00:02,000\na dog\n", "application/x-subrip")
    expect(link).to_have_text("Download film.de.srt")
    with tab.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_text("utf-8") == "1\n00:00:01,000 --> 00:00:02,000\nDOG A\n"
    tab.get_by_role("button", name="Close", exact=True).click()
    expect(box).to_be_hidden()


@pytest.mark.slow
def test_a_long_text_is_a_document(tab: Any) -> None:
    """A text too long for the text field is still translated by the server."""
    drop(tab, "book.txt", b"a dog\n" * 3000, "text/plain")
    expect(tab.locator("#document-link")).to_have_text("Download book.de.txt")


def test_a_document_that_cannot_be_translated_says_why(tabs: Tabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open()
    drop(tab, "old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")
    text = tab.locator("#document-text")
    expect(text).to_contain_text("old.docx could not be translated: The file: this is a Word 97–2003 document (.doc)")
    expect(tab.get_by_role("button", name="Try again", exact=True).first).to_be_visible()
    drop(tab, "new.docx", letter("a dog"))
    expect(tab.locator("#document-link")).to_have_text("Download new.de.docx")


def test_a_cancelled_document_is_not_translated(tab: Any) -> None:
    text = " ".join(f"{'slow' if number % 4 == 0 else 'dull'} {number}." for number in range(40))
    drop(tab, "slow.txt", (text * 60).encode(), "text/plain")
    expect(tab.locator("#document-text")).to_contain_text("Translating slow.txt …")
    tab.get_by_role("button", name="Stop", exact=True).click()
    expect(tab.get_by_role("group", name="Document")).to_be_hidden()
    drop(tab, "quick.docx", letter("a dog"))
    # its sentences do not wait behind those of the first file, which would take longer than a tab waits
    assert 600 * SLOW / 2 > 2 * PATIENCE
    expect(tab.locator("#document-link")).to_have_text("Download quick.de.docx")


@pytest.mark.slow
def test_a_server_with_keys_is_sent_the_key(browser: Any, tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.sqlite") as keys:
        key = keys.add("somebody").text
    with page_served("en-de", access={"keys": str(tmp_path / "keys.sqlite")}) as server:
        tabs = Tabs(browser, server.address)
        tabs.expected = ("status of 401",)
        tab = tabs.open(wait=False)
        tab.get_by_label("This server requires an access key").fill(key)
        tab.get_by_role("button", name="Use key").click()
        tab.get_by_label("Translate from").select_option("en")
        drop(tab, "letter.docx", letter("a dog"))
        expect(tab.locator("#document-link")).to_have_text("Download letter.de.docx")
        tabs.close()
