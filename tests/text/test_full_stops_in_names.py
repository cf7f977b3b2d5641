"""A full stop within a name, a reference or a number ends no sentence, but one after an ordinary word does."""

import pytest

from dragoman.text.sentences.splitter import Splitter

pytest.importorskip("sentencex")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "He uses .Net at work."),
        ("en", "We ask Socket.IO and Vue.Component today."),
        ("en", "The class Microsoft.Extensions.Logging is slow."),
        ("en", "Then fmt.Println(a) and java.lang.String follow."),
        ("en", "See section 3.C of it."),
        ("de", "Sie kommt am 3.Mai mit System.Windows.Forms wieder."),
        ("fr", "Le programme (.NET) est bon."),
        ("ru", "Это System.IO для нас."),
        ("en", "They write C#.NET and get().Then(x) here."),
        ("en", "See Eq.(2) and cf.[3, 4] for more."),
    ],
)
def test_names_stay_in_one_sentence(language: str, text: str) -> None:
    assert [text[begin:end] for begin, end in Splitter(language).sentences(text)] == [text]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "The cow is big.", "Then it runs."),
        ("en", "It was in 2007.", "Then it ran."),
        ("de", "Die Kuh steht im Stall.", "Dann geht sie."),
        ("ru", "Она спит.", "Он идёт."),
        ("en", "The cow (a big one) (yes).", "Then it ran."),
    ],
)
def test_sentences_without_a_blank_between_them(language: str, one: str, other: str) -> None:
    text = one + other
    assert [text[begin:end] for begin, end in Splitter(language).sentences(text)] == [one, other]
