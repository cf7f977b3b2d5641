"""Words of scripts without spaces: their boundaries, and the vocabularies that are learned from them."""

import random
import sys
import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.cleaning.clean import clean
from dragoman.data.cleaning.rules import TextCleaningConfig, TextRules
from dragoman.data.corpora.items import Passage
from dragoman.data.preparation import vocabulary
from dragoman.text.pieces import (
    CHARACTER,
    CHINESE_CHARACTER_OR_RUN,
    LONGEST_RUN,
    RUN,
    WORDS,
    divided_words,
    words_splitter,
)
from dragoman.text.scripts import SHARED_LETTERS, UNSPACED_SCRIPTS, unspaced_class
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

LINES = {
    "Chinese": "人人生而自由,在尊严和权利上一律平等。二〇二六年买iPhone手机。",
    "Japanese": "コーヒーを飲みながら、東京都庁舎を見た。時々ｶﾞﾗｽ窓から。",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๒๕๖๙",
    "Lao": "ມະນຸດເກີດມາມີສິດເສລີພາບ ແລະ ສະເໝີໜ້າກັນ",
    "Khmer": "មនុស្សទាំងអស់កើតមកមានសេរីភាពនិងសមភាព",
    "Burmese": "လူတိုင်းသည်တူညီလွတ်လပ်သောဂုဏ်သိက္ခာဖြင့်",
    "Tibetan": "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས",
    "Javanese": "ꦱꦧꦼꦤ꧀ꦲꦸꦮꦺꦴꦁ",
    "Latin": "All human beings are born free and equal, naïve or not (1948).",
}
PARTS = [*LINES.values(), *"ーあ漢กไ้〇a1 \u0301\u200d"]
SCRIPTS = unspaced_class(r"\p{{Script={}}}")
UNSPACED = regex.compile(rf"[\p{{L}}&&[{SCRIPTS}]]", regex.V1)
KINDS = ("bpe", "unigram", "wordpiece", "word")


def learn(kind: str, lines: list[str], **text: object) -> Tokenizer:
    size = {"bpe": 700, "unigram": 700, "wordpiece": 600, "word": 400}[kind]
    subword = {"kind": kind, "size": size} | ({} if kind == "unigram" else {"min_frequency": 1})
    return train_tokenizers(TextConfig.model_validate({"subword": subword, **text}), lines, []).source


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {kind: learn(kind, [*LINES.values()] * 2) for kind in KINDS}


def test_the_shared_letters_are_those_of_the_unicode_database() -> None:
    common = regex.compile(r"[\p{L}&&\p{Script=Common}]", regex.V1)
    extensions = "".join(rf"\p{{scx={script}}}" for script in ("Han", "Hiragana", "Katakana", "Bopomofo"))
    east_asian = regex.compile(rf"[{extensions}]", regex.V1)
    shared = regex.compile(f"[{SHARED_LETTERS}]")
    latin = regex.compile(r"\p{scx=Latin}")  # the tone marks of Bopomofo
    for code in range(0x20000):
        character = chr(code)
        if common.fullmatch(character):
            is_shared = east_asian.fullmatch(character) and not latin.fullmatch(character)
            assert bool(shared.fullmatch(character)) == bool(is_shared), hex(code)


@pytest.mark.parametrize("pattern", [RUN, CHARACTER, CHINESE_CHARACTER_OR_RUN])
@given(
    text=st.one_of(st.text(), st.lists(st.sampled_from([*LINES.values(), *"ーあ漢กไ้〇a1 \u0301\u200d"])).map("".join))
)
def test_words_are_a_division_of_the_text(pattern: str, text: str) -> None:
    words = [word for word, _ in words_splitter(divided_words(pattern)).pre_tokenize_str(text)]
    assert "".join(words) == text
    for word in words:
        scripts = {UNSPACED.fullmatch(each) is not None for each in word if unicodedata.category(each)[0] == "L"}
        assert len(scripts) < 2, "letters of both kinds are in one word"
        if True in scripts:
            assert len(word.rstrip("\u0301").strip()) <= LONGEST_RUN + 20


def test_a_run_is_divided_before_a_letter_and_not_before_its_marks() -> None:
    run = "กี้" * 100
    words = [word for word, _ in words_splitter(divided_words()).pre_tokenize_str(run)]
    assert all(len(word) <= LONGEST_RUN + 2 for word in words)
    assert all(unicodedata.category(word[0]) == "Lo" for word in words)


def test_text_without_unspaced_scripts_is_divided_as_before() -> None:
    old, new = words_splitter(WORDS), words_splitter(divided_words())
    for text in (
        "Zwei Hunde; 12 Katzen  auch!",
        "नमस्ते दुनिया",
        "한국어 문장",
        "سلام عليكم",
        "ሰላም ልዑል",
        "Ελλάδα\u200d x",
    ):
        assert new.pre_tokenize_str(text) == old.pre_tokenize_str(text)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_script_survives(learned: dict[str, Tokenizer], kind: str, name: str) -> None:
    tokenizer, text = learned[kind], LINES[name]
    ids = tokenizer.encode(text)
    indices, words = tokenizer.words(text)
    assert len(indices) == len(ids) == len(tokenizer.pieces(ids))
    unknown = [words[index] for index, number in zip(indices, ids, strict=True) if number == UNK]
    assert tokenizer.decode(ids, unknown) == text
    assert ids.count(UNK) < 0.3 * len(ids)
    for start, end in tokenizer.spans(text):
        assert 0 <= start <= end <= len(text)


def test_a_vocabulary_of_earlier_versions_encodes_as_before(tmp_path: Path) -> None:
    old = learn("bpe", [*LINES.values()], divide_unspaced=False, normalization="none")
    assert "normalization" not in old.document()
    Tokenizers(old, old).save(tmp_path)
    loaded = Tokenizers.load(tmp_path).source
    for text in LINES.values():
        assert loaded.words(text)[1] == [word for word, _ in words_splitter(WORDS).pre_tokenize_str(" " + text)]
        assert loaded.encode(text) == old.encode(text)


def test_a_rare_chinese_character_does_not_hide_its_clause(learned: dict[str, Tokenizer]) -> None:
    assert learned["wordpiece"].encode("人人生而龘自由").count(UNK) == 1
    thai = LINES["Thai"].replace(" ", "") * 3
    assert UNK not in learned["wordpiece"].encode(thai), "a run of more than 100 letters was one unknown word"


def test_the_sample_limits_the_bytes_of_distinct_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "SAMPLE", 1)
    draw = random.Random(0)
    thai = [chr(code) for code in range(0x0E01, 0x0E2F)]
    lines = ["".join(draw.choices(thai, k=80)) for _ in range(2000)]
    rules = TextRules(TextCleaningConfig())
    cleaned = clean([Passage(number, line) for number, line in enumerate(lines, 1)], rules, tmp_path, workers=1)
    seen: list[str] = []

    def learn(config: BPEConfig, texts: object, divide_unspaced: bool = True) -> Tokenizer:
        seen.extend(texts)  # type: ignore[call-overload]
        return real(config, iter(["a"]))

    real = BPEConfig.learn
    monkeypatch.setattr(BPEConfig, "learn", learn)
    text = TextConfig(subword=BPEConfig(size=300))
    limit = 100_000
    learner = vocabulary.VocabularyLearner(text, limit * vocabulary.DISTINCT_DIVISOR, ("text",))
    _, share = learner(([vocabulary.Sample(tmp_path, cleaned.starts)], [1.0]))
    size = sum(len(line.encode()) for line in seen)
    assert 0.85 * limit < size < 1.15 * limit
    assert share == pytest.approx(size / sum(len(line.encode()) for line in lines), rel=0.1)


def test_all_scripts_are_known_to_both_libraries() -> None:
    splitter, characters = words_splitter(divided_words()), "".join(map(chr, range(0x0E00, sys.maxunicode)))
    for script in UNSPACED_SCRIPTS.values():
        start = 0x3400 - 0x0E00 if script == "Han" else 0
        found = regex.compile(rf"[\p{{L}}&&\p{{Script={script}}}]", regex.V1).search(characters, start)
        assert found
        assert [word for word, _ in splitter.pre_tokenize_str(f"a{found[0]}")] == ["a", found[0]]
