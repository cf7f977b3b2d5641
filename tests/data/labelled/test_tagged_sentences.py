"""Readers of tagged sentences: columns, separators, comments, document boundaries, CoNLL-U, and errors."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import TaggedCorpora, TaggedCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.read import read_tagged


def read(
    folder: Path, text: str, labelled: bool = True, name: str = "x.conll", **settings: Any
) -> list[TaggedSentence]:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_tagged(TaggedCorpusConfig(path=path, **settings), labelled)


def test_words_tags_and_features(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\r\n\r\n\r\nBo NNP  B-NP\r\n ran  VBD B-VP\r\n \t\r\n# # O\r\n5 CD B-NP"
    assert read(tmp_path, text, features=(2,)) == [
        TaggedSentence(("Bo", "ran"), ("B-NP", "B-VP"), (("NNP", "VBD"),)),
        TaggedSentence(("#", "5"), ("O", "B-NP"), (("#", "CD"),)),
    ]
    assert read(tmp_path, text, tag=2)[0].tags == ("NNP", "VBD")
    assert read(tmp_path, text, False, tag="none")[0].tags is None


def test_any_character_is_a_word_in_tab_separated_columns(tmp_path: Path) -> None:
    words = ("\u00a0", "\u2028", "😀", '"', "a b", "\u3000", "#", "-", "​")
    text = "".join(f"{word}\tO\n" for word in words)
    assert read(tmp_path, text) == [TaggedSentence(words, ("O",) * len(words))]


def test_a_no_break_space_is_a_word_in_blank_separated_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "\u00a0 O\n\u2009 B-X\n")[0].words == ("\u00a0", "\u2009")


def test_comments(tmp_path: Path) -> None:
    text = "# a sentence in words\nBo\tB-PER\n#\tO\n\n// x y\nCy\tB-PER\n"
    with pytest.raises(DataError, match=r"x.conll, line 5: the number of columns is 1, but the first word has 2"):
        read(tmp_path, text)
    text = text.replace("// x y\n", "")
    assert [sentence.words for sentence in read(tmp_path, text)] == [("Bo", "#"), ("Cy",)]
    assert read(tmp_path, "// x\nBo\tO\n#\tO\n", comment="//")[0].words == ("Bo", "#")


def test_words_without_tags(tmp_path: Path) -> None:
    assert read(tmp_path, "Bo\nran\n\nCy\n", labelled=False) == [
        TaggedSentence(("Bo", "ran")),
        TaggedSentence(("Cy",)),
    ]
    with pytest.raises(DataError, match="line 1: there is only one column"):
        read(tmp_path, "Bo\nran\n")
    with pytest.raises(DataError, match="gold tags are needed, but `tag` is none"):
        read(tmp_path, "Bo NNP\n", tag="none")


def test_universal_dependencies(tmp_path: Path) -> None:
    rows = [
        "# sent_id = s1",
        "# text = Zum Haus",
        "1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tZu\tzu\tADP\tAPPR\t_\t3\tcase\t_\t_",
        "2\tdem\tder\tDET\tART\t_\t3\tdet\t_\t_",
        "2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_",
        "3\tHaus\tHaus\tNOUN\tNN\t_\t0\troot\t_\t_",
    ]
    sentence = TaggedSentence(("Zu", "dem", "Haus"), ("ADP", "DET", "NOUN"), (("APPR", "ART", "NN"),), "s1")
    assert read(tmp_path, "\n".join(rows), name="x.conllu", features=(5,)) == [sentence]
    assert read(tmp_path, "\n".join(rows), format="conllu", features=(5,)) == [sentence]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("Bo\tO\nran\n", {}, "line 2: the number of columns is 1, but the first word has 2. Fix the line"),
        ("Bo\tO\n\tO\n", {}, "line 2: the word is empty"),
        ("Bo\tO\nx\t\n", {}, "line 2: the tag is empty"),
        ("Bo\tO\n", {"tag": 3}, "line 1: there are 2 columns, but `tag` is 3"),
        ("Bo\tO\n", {"tag": 1}, "line 1: column 1 is both `word` and `tag`"),
        ("Bo\tO\n", {"features": (5,)}, "line 1: there are 2 columns, but `features` is 5"),
        ("\n \n-DOCSTART- O\n", {}, "is empty"),
        ("", {"tag": 2}, "is empty"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text, **settings)


def test_settings() -> None:
    corpora = TypeAdapter(TaggedCorpora)
    assert corpora.validate_python("a.conll") == TaggedCorpusConfig(path=Path("a.conll"))
    assert [corpus.tag for corpus in corpora.validate_python([{"path": "a", "tag": "last"}, "b"])] == ["last", None]
    with pytest.raises(ValidationError):
        TaggedCorpusConfig(path=Path("a"), tag="first")  # type: ignore[arg-type]
