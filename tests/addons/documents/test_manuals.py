"""reStructuredText and AsciiDoc as other projects write them: titles, references to them, and tables."""

import pytest
from stand_in_translators import StandIn, Write, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")


def translated(text: str, format: str, write: Write = upper) -> str:
    assert translate_document(StandIn(same), text, format=format).text == text  # type: ignore[arg-type]
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


def test_references_to_titles_of_rst_stay_valid() -> None:
    source = "========\nTwo cows\n========\n\nSee `Two\ncows`_, Hens_ or Ox_.\n\nHens\n----\n\n"
    rest = ".. _ox:\n\nOx\n--\n\nPigs\n----\n"
    expected = ".. _`Two cows`:\n\n========\nTWO COWS\n========\n\nSEE `Two\ncows`_, Hens_ OR Ox_.\n\n"
    expected += ".. _`Hens`:\n\nHENS\n----\n\n"
    assert translated(source + rest, "rst") == expected + ".. _ox:\n\nOX\n--\n\nPIGS\n----\n"


def stretched(words: list[str]) -> list[tuple[str, int]]:
    return [(f"{word}XXX", place) for place, word in enumerate(words)]


ASCIIDOC_UNDERLINED = """a-dog(1)
========

NAME
----
a-dog - a "`big`" dog

Cows and hens
~~~~~~~~~~~~~
----
NAME
----
"""


def test_underlines_of_asciidoc_fit_the_translated_titles() -> None:
    found = translated(ASCIIDOC_UNDERLINED, "asciidoc", stretched)
    assert found == (
        'a-dog(1)XXX\n===========\n\nNAMEXXX\n-------\na-dogXXX -XXX aXXX "`big`" dogXXX\n\n'
        "CowsXXX andXXX hensXXX\n~~~~~~~~~~~~~~~~~~~~~~\n----\nNAME\n----\n"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A *BSD and ~0 and ~1, issue #5, [[--] <<a", "A *BSD AND ~0 AND ~1, ISSUE #5, [[--] <<A"),
        ("a *b c* _last_word_ here", "A *B C* _LAST_WORD_ HERE"),
        ("two (pass:[g++ / clang++]) dogs", "TWO (pass:[g++ / clang++]) DOGS"),
        ("|===\n|one| two|1|a|b\n|===\n", "|===\n|ONE| TWO|1|A|B\n|===\n"),
        ("|===\n|one +\n two\n\nthree\n|===\n", "|===\n|ONE +\n TWO\n\nTHREE\n|===\n"),
        (
            '[cols="1m,^2a"]\n|===\n|Name |Text\n\n|A_B | \n* one\n* two\nm|c d\n|e\n|===\n',
            '[cols="1m,^2a"]\n|===\n|NAME |TEXT\n\n|A_B | \n* ONE\n* TWO\nm|c d\n|E\n|===\n',
        ),
    ],
)
def test_asciidoc_of_other_projects(source: str, expected: str) -> None:
    assert translated(source, "asciidoc") == expected
