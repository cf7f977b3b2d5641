"""Marks of sentence boundaries of other toolkits: removed from corpora of every form, kept where they are text."""

import json
import time
from pathlib import Path

import pytest

from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.readers import check_readable, read_references, read_sides
from dragoman.data.corpora.sentence_marks import remove_sentence_marks
from dragoman.data.corpora.templates import TemplateConfig


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("<s> The dog sleeps. </s>", "The dog sleeps."),  # IRSTLM's add-start-end.sh
        ("<s> <s> The dog sleeps. </s>\t", "The dog sleeps."),
        ("The dog sleeps. <eos>", "The dog sleeps."),  # Penn Treebank as prepared for neural language models
        ("<bos> The dog. <eos> <pad> <pad>", "The dog."),
        ("<s> One. </s> <s> Two. </s>", "One. Two."),
        ("[CLS] The dog sleeps. [SEP]", "The dog sleeps."),
        (" <s> One. </s>\n\n<s>\tTwo. </s>\n", "One.\n\nTwo.\n"),
        ("<BOS> The dog. <EOS>", "The dog."),
        ("<s> </s>", ""),
        ("<|endoftext|>", ""),
        ("The tag <s> strikes text out.", None),
        ("<s>struck</s> text", None),
        ("x</s>", None),
        ("a question [SEP] a context", None),
        ("the word <unk> stands for others", None),
        (" two  blanks ", None),
    ],
)
def test_marks_are_words_at_the_ends_of_sentences(marked: str, text: str | None) -> None:
    assert remove_sentence_marks(marked) == (marked if text is None else text)


def test_time_is_linear() -> None:
    def seconds(count: int) -> float:
        texts = ["</s> " * count + "x", "x" + " " * count + "</s> x", "<s> " * count, "x" + " </s>" * count]
        started = time.process_time()
        for text in texts:
            remove_sentence_marks(text)
        return time.process_time() - started

    assert seconds(64_000) < 40 * max(seconds(8_000), 0.005)


def test_every_form_of_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked, other = tmp_path / "marked.txt", tmp_path / "other.txt"
    marked.write_text("<s> One dog. </s>\n<s> Two dogs. </s>\n")
    other.write_text("Ein Hund.\nZwei Hunde.\n")
    for documents, expected in {
        "line": ["One dog.", "Two dogs."],
        "blank_line": ["One dog.\nTwo dogs."],
        "file": ["One dog.\nTwo dogs.\n"],
    }.items():
        assert read_texts(TextCorpusConfig(text=marked, documents=documents)) == expected
    check_readable(TextCorpusConfig(text=other), CorpusConfig(source=other, target=marked))
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith(f"{marked}: marks of sentence boundaries, such as <s> and </s>, are removed")
    assert read_sides(CorpusConfig(source=other, target=marked))[1] == ["One dog.", "Two dogs."]
    assert read_sides(CorpusConfig(source=marked, target=other))[0] == ["One dog.", "Two dogs."]
    records = tmp_path / "records.jsonl"
    records.write_text(json.dumps({"text": "<s> One dog. </s>", "label": "good"}) + "\n")
    assert read_texts(TextCorpusConfig(jsonl=records)) == ["One dog."]
    templates = TemplateConfig(source="review: {text}", target="{label}")
    assert read_references(CorpusConfig(pairs=records, template=templates)).sources == ["review: One dog."]
