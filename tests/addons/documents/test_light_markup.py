"""reStructuredText, AsciiDoc and LaTeX: text is translated, and everything else is kept."""

import contextlib
import io
import re
from typing import Any

import pytest
from stand_in_translators import StandIn, Write, anyhow, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")


def translated(text: str, format: str, write: Write = upper) -> str:
    assert translate_document(StandIn(same), text, format=format).text == text  # type: ignore[arg-type]
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


RST = """.. _top:

=====
Title
=====

A paragraph with *emphasis*, **strong words**, ``code *x*`` and `a link <http://a.b/>`_
over two lines. See :ref:`the label <lab>`, :doc:`/page`, :opt:`SET_<NAME>`, [1]_, |name| and word_.
Text\\ *glued*, 2 * 3 and H\\ :sub:`2`\\ O.

Sub title
---------

.. note:: This is a note
   over two lines.

.. warning::

   A warning::

       code here stays

   - an item
     over two lines
   - another item

.. code-block:: python
   :caption: A caption

   def a(): pass

.. figure:: a.png
   :alt: the alt text

   The caption of it.

.. a comment
   stays

1. first
2. second

term
    The definition.

:param x: the value
:type x: int

-f FILE  an option

.. py:function:: foo(a, b)

   Prose here.

.. [1] A footnote
   with more.
.. |name| replace:: dragoman
.. _word: http://a.b/c

>>> doctest
1

| line one
| line two
"""
RST_CHANGES = {
    "Title": "TITLE",
    "A paragraph": "A PARAGRAPH",
    "Sub title": "SUB TITLE",
    ":ref:`the label <lab>`": ":ref:`THE LABEL <lab>`",
    "`a link <http://a.b/>`_": "`A LINK <http://a.b/>`_",
    "*emphasis*, **strong words**": "*EMPHASIS*, **STRONG WORDS**",
    "This is a note\n   over two lines.": "THIS IS A NOTE OVER TWO LINES.",
    "A warning::": "A WARNING::",
    "- an item\n     over two lines": "- AN ITEM OVER TWO LINES",
    ":caption: A caption": ":caption: A CAPTION",
    ":alt: the alt text": ":alt: THE ALT TEXT",
    "1. first": "1. FIRST",
    "    The definition.": "    THE DEFINITION.",
    ":param x: the value": ":param x: THE VALUE",
    "-f FILE  an option": "-f FILE  AN OPTION",
    "[1] A footnote\n   with more.": "[1] A FOOTNOTE WITH MORE.",
    "| line two": "| LINE TWO",
}
RST_KEPT = [
    ".. _top:",
    "``code *x*``",
    ":doc:`/page`",
    ":opt:`SET_<NAME>`",
    " [1]_",
    "|name|",
    "word_.".rstrip("."),
    "       code here stays\n",
    "   def a(): pass\n",
    ".. a comment\n   stays\n",
    ":type x: int",
    ".. py:function:: foo(a, b)",
    ".. |name| replace:: dragoman",
    ".. _word: http://a.b/c",
    ">>> doctest\n1\n",
    "\\ :sub:`2`\\ ",
]


def skeleton(text: str) -> list[Any]:
    """The elements of a document, without their text, as docutils parses it."""
    core, nodes = pytest.importorskip("docutils.core"), pytest.importorskip("docutils.nodes")
    settings = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False}
    with contextlib.redirect_stderr(io.StringIO()):
        tree = core.publish_doctree(text, settings_overrides=settings)
    hidden = (nodes.Text, nodes.system_message)
    return [type(node).__name__ for node in tree.findall() if not isinstance(node, hidden)]


def test_restructured_text() -> None:
    found = translated(RST, "rst")
    for old, new in RST_CHANGES.items():
        assert old in RST and new in found, new
    for kept in RST_KEPT:
        assert kept in RST and kept in found, kept
    assert skeleton(found) == skeleton(RST)


def test_the_lines_under_titles_are_long_enough() -> None:
    longer: Write = lambda words: [(f"{word}ungen", place) for place, word in enumerate(words)]  # noqa: E731
    text = "====\nDogs\n====\n\nCats\n----\n\n中文\n====\n\ntext\n"
    found = translated(text, "rst", longer)
    assert "=========\nDogsungen\n=========\n\nCatsungen\n---------\n" in found
    assert skeleton(found) == skeleton(text)


@pytest.mark.parametrize(
    "text", ["* not a list", "1. not a list", "a|b| c_ d`e", ".. no comment", "x*y* 2 *z", ":a: b"]
)
def test_signs_of_a_translation_are_no_markup(text: str) -> None:
    pytest.importorskip("docutils")
    other: Write = lambda words: [(word, 0) for word in text.split()]  # noqa: E731
    assert skeleton(translated("A dog sleeps here", "rst", other)) == ["document", "paragraph"]


def test_tables_and_unknown_directives_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    text = "+---+\n| a |\n+---+\n\n==  ==\na   b\n==  ==\n1   c\n==  ==\n\n.. strange::\n\n   some text\n\nend\n"
    assert translated(text, "rst") == text.replace("end", "END")
    assert "2 table(s)" in (said := capsys.readouterr().err) and "1 directive(s)" in said


ASCIIDOC = """// a comment
= The title
An Author <a@b.c>
:toc: left

A paragraph with *bold words*, _emphasis_, `code *x*`, #mark# and [.role]#text here#
over two lines{empty}. See <<id,the section>>, <<id>>, link:a.html[the page,window=_blank],
https://a.b/c[our site^]. Note footnote:[A note with *bold* text.] H~2~O, **B**old, "`quoted`".

== A section

.A block title
[source,python]
----
code = here
----

NOTE: A note text
in two lines.

* item one
** item two
* [x] done
+
with a paragraph

term one:: the definition
term two::
  another definition

[cols="1,2",options="header"]
|===
|Name |Text here

2+|span text \\| bar
|===

image::a.png[Alt text]

 literal text
 stays

A line +
broken here

....
literal block
....

<1> a callout
"""
ASCIIDOC_CHANGES = {
    "= The title": "= THE TITLE",
    "*bold words*, _emphasis_, `code *x*`, #mark#": "*BOLD WORDS*, _EMPHASIS_, `code *x*`, #MARK#",
    "[.role]#text here#\nover": "[.role]#TEXT HERE# OVER",
    "<<id,the section>>, <<id>>": "<<id,THE SECTION>>, <<id>>",
    "link:a.html[the page,window=_blank]": "link:a.html[THE PAGE,window=_blank]",
    "https://a.b/c[our site^]": "https://a.b/c[OUR SITE^]",
    "footnote:[A note with *bold* text.]": "footnote:[A NOTE WITH *BOLD* TEXT.]",
    "**B**old": "**B**OLD",
    ".A block title": ".A BLOCK TITLE",
    "NOTE: A note text\nin two lines.": "NOTE: A NOTE TEXT IN TWO LINES.",
    "** item two": "** ITEM TWO",
    "* [x] done\n+\nwith a": "* [x] DONE\n+\nWITH A",
    "term one:: the definition\nterm two::\n  another": "TERM ONE:: THE DEFINITION\nTERM TWO::\n  ANOTHER",
    "|Name |Text here": "|NAME |TEXT HERE",
    "2+|span text \\| bar": "2+|SPAN TEXT \\| BAR",
    "A line +\nbroken": "A LINE +\nBROKEN",
    "<1> a callout": "<1> A CALLOUT",
}
ASCIIDOC_KEPT = [
    "// a comment\n",
    "An Author <a@b.c>\n:toc: left\n",
    "[source,python]\n----\ncode = here\n----\n",
    '[cols="1,2",options="header"]\n|===\n',
    "image::a.png[Alt text]\n",
    " literal text\n stays\n",
    "....\nliteral block\n....\n",
    "H~2~O",
]


def test_asciidoc() -> None:
    found = translated(ASCIIDOC, "asciidoc")
    for old, new in ASCIIDOC_CHANGES.items():
        assert old in ASCIIDOC and new in found, new
    for kept in ASCIIDOC_KEPT:
        assert kept in ASCIIDOC and kept in found, kept


LATEX = r"""\documentclass[12pt]{article}
\usepackage[utf8]{inputenc} % a comment
\title{A big title}
\author{An Author}
\newcommand{\foo}[1]{text #1}
\begin{document}
\section{The first section}\label{sec:first}
A paragraph with \textbf{bold words}, \emph{emphasis} and $x^2 + y$ % a comment
over two lines~\cite{knuth84}. See Section~\ref{sec:first}, 50\% of K\"uhe
cost \$5 --- ``quoted''. \foo{an arg} and \verb|code here|.

Another one\footnote{A note with \textit{words}.} here.
\begin{itemize}
  \item first item
\end{itemize}
\begin{equation}
  E = mc^2 \text{where}
\end{equation}
\begin{tabular}{lr}
Name & Text here \\
\end{tabular}
\begin{verbatim}
code % stays
\end{verbatim}
\includegraphics[width=\textwidth]{a.png}
\caption{The caption of \emph{it}}
See \href{http://a.b}{our site}.
% last
\end{document}
"""
LATEX_CHANGES = {
    r"\title{A big title}": r"\title{A BIG TITLE}",
    r"\section{The first section}": r"\section{THE FIRST SECTION}",
    r"\textbf{bold words}, \emph{emphasis} and $x^2 + y$": r"\textbf{BOLD WORDS}, \emph{EMPHASIS} AND $x^2 + y$",
    r"50\% of K\"uhe": r"50\% OF KÜHE",
    r"cost \$5 --- ``quoted''.": r"COST \$5 — “QUOTED”.",
    r"one\footnote{A note with \textit{words}.}": r"ONE\footnote{A NOTE WITH \textit{WORDS}.}",
    r"\item first item": r"\item FIRST ITEM",
    r"Name & Text here \\": r"NAME & TEXT HERE \\",
    r"\caption{The caption of \emph{it}}": r"\caption{THE CAPTION OF \emph{IT}}",
    r"\href{http://a.b}{our site}": r"\href{http://a.b}{OUR SITE}",
}
LATEX_KEPT = [
    "\\usepackage[utf8]{inputenc} % a comment\n",
    r"\author{An Author}",
    r"\newcommand{\foo}[1]{text #1}",
    r"\label{sec:first}",
    r"\cite{knuth84}",
    r"\ref{sec:first}",
    r"\foo{an arg}",
    r"\verb|code here|",
    "\\begin{equation}\n  E = mc^2 \\text{where}\n\\end{equation}",
    "\\begin{verbatim}\ncode % stays\n\\end{verbatim}",
    r"\includegraphics[width=\textwidth]{a.png}",
    "% last\n",
]


def test_latex(capsys: pytest.CaptureFixture[str]) -> None:
    found = translated(LATEX, "latex")
    for old, new in LATEX_CHANGES.items():
        assert old in LATEX and new in found, new
    for kept in LATEX_KEPT:
        assert kept in LATEX and kept in found, kept
    assert "1 unknown command(s) remain untranslated, such as \\foo" in capsys.readouterr().err


def test_the_markup_of_latex_is_balanced_whatever_the_order_of_words() -> None:
    """Each command of the source is in the translation once, without emphasis of nothing; a comment ends its line."""
    found = translated(LATEX, "latex", anyhow)

    def signs(text: str) -> list[str]:
        found = re.findall(r"\\[A-Za-z]+", text)
        return sorted(each for each in found if each not in ("\\emph", "\\textit", "\\textbf"))

    assert signs(found) == signs(LATEX)
    depth = 0
    for sign in re.findall(r"\\.|[{}]", found):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0 and re.search(r"% a comment[^\n]", found) is None


def test_signs_of_a_translation_are_escaped_in_latex() -> None:
    other: Write = lambda words: [(word, 0) for word in "5% of a_b & {c} #1 $2 ~ ^ \\d".split()]  # noqa: E731
    expected = r"5\% of a\_b \& \{c\} \#1 \$2 \textasciitilde{} \textasciicircum{} \textbackslash{}d"
    assert translated("A dog", "latex", other) == expected
    assert translated("\\textbf{a} {\n\n} \\foo{ $a \\[ b", "latex")  # nothing is closed


@pytest.mark.parametrize("format", ["rst", "asciidoc", "latex"])
def test_deep_nesting_is_kept(format: str) -> None:
    deep = {"rst": "- " * 500 + "dog", "asciidoc": "*_" * 300 + "dog", "latex": "\\footnote{" * 300 + "dog" + "}" * 300}
    assert translated(deep[format], format)
