"""HTML in Markdown: its texts are translated like those of pages, and links to its headings lead there."""

import pytest
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("mdit_py_plugins")


def translated(text: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format="markdown").text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "<details open>\n<summary>More <b>dogs</b></summary>\n\nA *dog*.\n\n</details>\n",
            "<details open>\n<summary>MORE <b>DOGS</b></summary>\n\nA *DOG*.\n\n</details>\n",
        ),
        (
            '<p align="center">\n  <img src="a.png" alt="A dog">\n  A brown\n  dog &amp; <code>x</code>\n</p>',
            '<p align="center">\n  <img src="a.png" alt="A DOG">\n  A BROWN DOG &amp; <code>x</code>\n</p>',
        ),
        (
            "> - <table><tr><td>One\n>   dog</td>\n>   <td>Two</td></tr>\n>   </table>\n",
            "> - <table><tr><td>ONE DOG</td>\n>   <td>TWO</td></tr>\n>   </table>\n",
        ),
        ("\t<p>A dog\n", "\t<p>A dog\n"),
        ("a\r\n\r\n<p>A dog\r\nruns\r\n</p>\r\n", "A\r\n\r\n<p>A DOG RUNS\r\n</p>\r\n"),
        (
            "<!-- a\n\nb -->\n<script>\nc\n\nd</script>\n\n<pre>\ne\n\nf</pre>\nA",
            "<!-- a\n\nb -->\n<script>\nc\n\nd</script>\n\n<pre>\ne\n\nf</pre>\nA",
        ),
        (
            "<div>\nA dog {props.x} {{< y >}} {/* no */} :z:\n[TOC]\nTwo\n</div>",
            "<div>\nA DOG {props.x} {{< y >}} {/* no */} :z:\n[TOC]\nTWO\n</div>",
        ),
        ("<Tab label={a} title={b}>One</Tab>\n", "<Tab label={a} title={b}>ONE</Tab>\n"),
        (
            '<div class="x" markdown="1">\nA **dog**\n- one\n- two\n</div>\n',
            '<div class="x" markdown="1">\nA **DOG**\n- ONE\n- TWO\n</div>\n',
        ),
        ("<p markdown>A **dog** runs</p>\n", "<p markdown>A **DOG** RUNS</p>\n"),
        (
            "A <img alt='A dog' src=x> <b title=\"Two\">runs</b> & x",
            "A <img alt='A DOG' src=x> <b title=\"TWO\">RUNS</b> & X",
        ),
        (
            'Press <kbd>Ctrl</kbd> in <span translate="no">Big *dog*</span> or <i lang="fr">bon jour</i> <wbr>now',
            'PRESS <kbd>Ctrl</kbd> IN <span translate="no">Big *dog*</span> OR <i lang="fr">bon jour</i> <wbr>NOW',
        ),
        (
            '| a | b |\n|---|---|\n| one<ul><li>Two</li><li>x</li></ul> | <img alt="a dog"> |\n',
            '| A | B |\n|---|---|\n| ONE<ul><li>TWO</li><li>X</li></ul> | <img alt="A DOG"> |\n',
        ),
        (
            '<div translate="no">\n\n# A dog\n\n<p>A cat</p>\n\n<b translate="yes">\n\nTwo\n\n</b>\n</div>\n\nA',
            '<div translate="no">\n\n# A dog\n\n<p>A cat</p>\n\n<b translate="yes">\n\nTWO\n\n</b>\n</div>\n\nA',
        ),
        (
            '<div lang="fr">\n\nUn chien\n\n</div>\n\n<p lang="fr">Le\n\nA dog',
            '<div lang="fr">\n\nUn chien\n\n</div>\n\n<p lang="fr">Le\n\nA DOG',
        ),
        ('<p lang="en">A dog</p>', '<p lang="de">A DOG</p>'),
        ("> A <i lang='en-US'\n> title='x'>dog</i>", "> A <i lang='en-US'\n> title='x'>DOG</i>"),
        ("A <i lang='en-US' title='a dog'>dog</i>", "A <i lang='de' title='A DOG'>DOG</i>"),
        ("> a <b\n> title='a dog'>c</b>", "> A <b\n> title='a dog'>C</b>"),
        ("<div\n\nA dog", "<div\n\nA DOG"),
    ],
)
def test_the_texts_of_html_are_translated(source: str, expected: str) -> None:
    assert translated(source) == expected
    assert translated(source, same) == source


def test_list_items_in_a_table_cell_are_separate_texts() -> None:
    source = "| a |\n|---|\n| <ul><li>one two</li><li>three four</li></ul> |"
    assert translated(source, backwards) == "| A |\n|---|\n| <ul><li>TWO ONE</li><li>FOUR THREE</li></ul> |"


@pytest.mark.parametrize(
    ("heading", "link", "expected"),
    [
        ("<h2>The <b>red</b> book</h2>", "the-red-book", "book-red-the"),
        ('<h1 align="center">\n  <img src="x">\n  Red &amp; blue\n</h1>', "red--blue", "blue--red"),
        ("<div>\n\n<h3>One two</h3>\n<h3>One two</h3>\n\n</div>", "one-two-1", "two-one-1"),
        ("> <h2>A dog</h2>", "a-dog", "dog-a"),
        ('<h2 id="own">A dog</h2>', "own", "own"),
        ('<h2 translate="no">A dog</h2>', "a-dog", "a-dog"),
        ("<pre>x</pre><h2>A dog</h2>", "a-dog", "dog-a"),
        ("## A dog {#own}", "own", "own"),
        ("## A dog {#own .x}", "a-dog", "a-dog"),
        ("---\ntitle: A dog\n---\n## A dog", "a-dog", "dog-a"),
        ("---\ntitle: A dog\n---\n## Two cats", "a-dog", "a-dog"),
    ],
)
def test_links_lead_to_headings_of_html_and_with_front_matter(heading: str, link: str, expected: str) -> None:
    source = f"{heading}\n\nSee [this](#{link})\n\n<p><a title='x' href=\"#{link}\">this</a></p>\n"
    found = translated(source, backwards)
    assert f"](#{expected})" in found
    assert f'href="#{expected}"' in found
    assert translated(source, same) == source
