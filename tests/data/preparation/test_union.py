"""Several corpora: one dataset of all rows, tags before the sources, weights, and separate preparation."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.epoch import epoch_weights
from dragoman.data.cleaning.clean import clean
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.preparation import pipeline, vocabulary
from dragoman.data.preparation import prepare as module
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

TEXT = TextConfig(subword=BPEConfig(size=300, min_frequency=1))
TEXTS = {
    "clean": [("A dog runs.", "Ein Hund läuft."), ("Two dogs sleep.", "Zwei Hunde schlafen.")],
    "back": [("The cats eat.", "Die Katzen essen."), ("A dog runs.", "Ein Hund läuft."), ("", "leer")],
    "french": [("A dog runs.", "Un chien court.")],
}


@pytest.fixture
def corpora(tmp_path: Path) -> list[CorpusConfig]:
    for name, pairs in TEXTS.items():
        (tmp_path / name).write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return [
        CorpusConfig(pairs=tmp_path / "clean", target_language="de"),
        CorpusConfig(pairs=tmp_path / "back", tags=("bt",), target_language="de", weight=0.5),
        CorpusConfig(pairs=tmp_path / "french", target_language="fr"),
    ]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(module, "info", said.append)
    monkeypatch.setattr(pipeline, "info", said.append)
    monkeypatch.setattr(pipeline, "warn", said.append)
    return said


def run(corpora: list[CorpusConfig], text: TextConfig | Tokenizers = TEXT) -> PreparedCorpora:
    return prepare(corpora, CleaningConfig(), text, corpora[0].files[0].parent / "cache")


def test_rows_are_numbered_over_all_corpora_and_have_their_tags(corpora: list[CorpusConfig]) -> None:
    prepared = run(corpora)
    source, target = prepared.tokenizers.source, prepared.tokenizers.target
    assert source.tags == ("to:de", "bt", "to:fr")
    texts = [
        (
            [piece for piece in source.pieces(ids) if piece.startswith("<")],
            source.decode(ids),
            target.decode(prepared.dataset[row][1]),
        )
        for row, (ids, _) in enumerate(prepared.dataset[row] for row in range(len(prepared.dataset)))
    ]
    assert texts == [
        (["<to:de>"], *TEXTS["clean"][0]),
        (["<to:de>"], *TEXTS["clean"][1]),
        (["<to:de>", "<bt>"], *TEXTS["back"][0]),
        (["<to:de>", "<bt>"], *TEXTS["back"][1]),
        (["<to:fr>"], *TEXTS["french"][0]),
    ]
    lengths = [[len(side) for side in prepared.dataset[row]] for row in range(5)]
    assert prepared.dataset.lengths.tolist() == lengths
    assert [report.kept for report in prepared.reports] == [2, 2, 1]
    assert prepared.parts == ((2, 1.0), (2, 0.5), (1, 1.0))
    with pytest.raises(IndexError):
        prepared.dataset[5]


def test_batches_take_rows_of_all_parts_in_their_order(corpora: list[CorpusConfig]) -> None:
    dataset = run(corpora).dataset
    rows = np.array([4, 0, 3, 1, 3, 2])
    for side, taken in enumerate(dataset.take(rows)):
        expected = [dataset[row][side] for row in rows]
        assert taken.lengths.tolist() == list(map(len, expected))
        assert taken.ids.tolist() == np.concatenate(expected).tolist()
    with pytest.raises(IndexError):
        dataset.take(np.array([0, 5]))


def test_labels_are_counted_as_often_as_an_epoch_reads_them(corpora: list[CorpusConfig]) -> None:
    prepared = run(corpora)
    size = prepared.tokenizers.target.size
    parts = [part.target_counts(size) for part in prepared.dataset.parts]
    assert_allclose(prepared.dataset.target_counts(size), parts[0] + 0.5 * parts[1] + parts[2])


def test_with_an_existing_vocabulary_only_the_new_corpus_is_prepared(
    corpora: list[CorpusConfig], messages: list[str]
) -> None:
    tokenizers = run(corpora).tokenizers
    first = run(corpora[:2], tokenizers)
    messages.clear()
    more = run(corpora, tokenizers)
    made = [message for message in messages if message.startswith("Data: preparing")]
    assert not made  # the list with its own vocabulary has prepared it already
    assert more.fingerprints[:2] == first.fingerprints
    other = CorpusConfig(pairs=corpora[2].pairs, tags=("bt",))
    messages.clear()
    tagged = run([*corpora[:2], other], tokenizers)
    (made_now,) = [message for message in messages if message.startswith("Data: preparing")]
    assert str(other.pairs) in made_now
    assert sum(message.startswith("Data: reused") for message in messages) == 2
    assert tagged.fingerprints[2] != more.fingerprints[2]
    assert tagged.dataset.fingerprint != more.dataset.fingerprint


def test_a_tag_that_the_vocabulary_lacks_is_named(corpora: list[CorpusConfig]) -> None:
    tokenizers = run(corpora[:1]).tokenizers
    with pytest.raises(ConfigError, match="no tag 'bt'; its tags are to:de"):
        run(corpora[:2], tokenizers)
    vectors = TextConfig.model_validate({"vectors": {"width": 2}})
    with pytest.raises(ConfigError, match="does not support tags"):
        run(corpora, vectors)


def test_all_corpora_are_reused_and_damaged_ones_prepared_again(
    corpora: list[CorpusConfig], messages: list[str]
) -> None:
    first = run(corpora)
    messages.clear()
    second = run(corpora)
    assert sum(message.startswith("Data: reused") for message in messages) == 3
    assert second.fingerprints == first.fingerprints
    folder = corpora[0].files[0].parent / "cache"
    (vocabulary,) = {path.parent for path in folder.glob("*/tokenizer.json")}
    (vocabulary / "tokenizer.json").write_text("{")
    assert run(corpora).fingerprints == first.fingerprints
    (next(folder.glob("*/lengths.bin"))).write_bytes(b"")
    assert run(corpora).dataset.lengths.tolist() == first.dataset.lengths.tolist()


def test_temperature_divides_an_epoch_by_the_root_of_the_sizes(corpora: list[CorpusConfig]) -> None:
    plain = [corpus.model_copy(update={"weight": 1.0}) for corpus in corpora]
    sizes = [1000, 100, 10]
    for temperature, shares in ((1.0, [1000, 100, 10]), (2.0, np.sqrt(sizes)), (1e9, [1, 1, 1])):
        read = np.array(epoch_weights(plain, sizes, temperature)) * sizes
        assert_allclose(read, np.array(shares) / np.sum(shares) * 1110, rtol=1e-6)
    assert epoch_weights(corpora, sizes, None) == [1.0, 0.5, 1.0]
    with pytest.raises(ConfigError, match="replaces weights"):
        epoch_weights(corpora, sizes, 5.0)


def test_the_vocabulary_of_a_large_corpus_is_learned_from_a_fixed_sample(tmp_path: Path, messages: list[str]) -> None:
    letters = str.maketrans("0123456789", "abcdefghij")
    names = [f"{number}".translate(letters) for number in range(10_000, 13_000)]
    lines = [f"w{name} sentence\tW{name} Satz\n" for name in names]
    (tmp_path / "large").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "small").write_text("rare seltsam\trare seltsam\n", encoding="utf-8")
    corpora = [CorpusConfig(pairs=tmp_path / "large"), CorpusConfig(pairs=tmp_path / "small", weight=20)]
    text = TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}})

    def words(sample: int, corpora: list[CorpusConfig]) -> set[str | None]:
        found = prepare(corpora, CleaningConfig(), text, tmp_path / "cache", sample=sample).tokenizers
        return set(found.source.whole_words())

    whole = sum(map(len, lines)) - 2 * len(lines)
    assert len(words(whole + 100, corpora)) > 6000
    part = words(whole // 10, corpora)
    assert 400 < len(part) < 900
    assert "seltsam" in part
    assert words(whole // 10, corpora) == part
    alone = words(whole // 10, corpora[:1])
    assert 400 < len(alone) < 900


def test_the_number_of_distinct_words_in_the_sample_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_SMALL", 10)
    letters = str.maketrans("0123456789", "abcdefghij")
    for name, first in (("one", 10_000), ("two", 20_000)):
        words = [f"{number}".translate(letters) for number in range(first, first + 3000)]
        (tmp_path / name).write_text("".join(f"{word} x the\tx {word[::-1]} the\n" for word in words))
    text = TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}})
    corpora = [CorpusConfig(pairs=tmp_path / "one"), CorpusConfig(pairs=tmp_path / "two", weight=3)]
    cleaned = []
    for corpus, folder in zip(corpora, (tmp_path / "cleaned-one", tmp_path / "cleaned-two"), strict=True):
        folder.mkdir()
        cleaned.append(clean(read_pairs(corpus), PairRules(CleaningConfig()), folder))
    # 1,000 of the 12,000 words of 5 letters; the second corpus contributes three times as many as the first
    tokenizers, share = vocabulary.VocabularyLearner(text, 5000 * vocabulary.DISTINCT_DIVISOR)(
        ([vocabulary.Sample(each.folder, each.starts) for each in cleaned], [1.0, 3.0])
    )
    found = [word for word in tokenizers.source.whole_words() if word]
    assert 900 < len(found) < 1100
    assert 0.05 < share < 0.15
    second = sum(word[0] == "c" or word[-1] == "c" for word in found)
    assert second > 0.6 * len(found)


def test_pairs_of_an_earlier_corpus_with_the_same_tags_are_dropped(corpora: list[CorpusConfig], tmp_path: Path) -> None:
    lines = {"one": ["a b", "c d", "a b", "e f"], "two": ["c d", "g h", "c d", "g h", "a b"], "three": ["e f", "i j"]}
    for name, texts in lines.items():
        (tmp_path / name).write_text("".join(f"{text}\t{text[::-1]}.\n" for text in texts))
    one, two, three = (CorpusConfig(pairs=tmp_path / name) for name in lines)
    tagged = three.model_copy(update={"tags": ("bt",)})

    def counts(*chosen: CorpusConfig, **cleaning: bool) -> list[dict[str, int]]:
        prepared = prepare(chosen, CleaningConfig(**cleaning), TEXT, tmp_path / "prepared")
        return [report.counts for report in prepared.reports]

    found = counts(one, two, three)
    assert found == [{"duplicates": 1}, {"duplicates": 2, "duplicates_between": 2}, {"duplicates_between": 1}]
    assert counts(one, two, three) == found, "reused"
    assert counts(one, two, tagged)[2] == {}
    assert counts(two, one)[1] == {"duplicates": 1, "duplicates_between": 2}, "another order is other data"
    assert counts(one, two, duplicates_between=False)[1] == {"duplicates": 2}
    assert counts(one, two, duplicates=False)[1] == {}
    assert counts(one, two, enabled=False)[1] == {}


def test_a_corpus_contained_in_an_earlier_one_is_an_error(tmp_path: Path) -> None:
    for name, texts in (("large", ["a b", "c d"]), ("part", ["c d"])):
        (tmp_path / name).write_text("".join(f"{text}\t{text[::-1]}.\n" for text in texts))
    corpora = [CorpusConfig(pairs=tmp_path / name) for name in ("large", "part")]
    with pytest.raises(DataError, match=r"Cleaning dropped everything in .*part(.|\n)*in another corpus +1 +lines 1"):
        prepare(corpora, CleaningConfig(), TEXT, tmp_path / "prepared")


def test_pairs_that_an_earlier_corpus_drops_are_kept_in_later_ones(tmp_path: Path) -> None:
    """A pair of a script that is rare in the first corpus, and usual in the second, stays in the second."""
    (tmp_path / "latin").write_text("".join(f"text {n}\ttekst {n}\n" for n in range(20)) + "текст\tтекст два\n")
    (tmp_path / "cyrillic").write_text("текст\tтекст два\n" + "".join(f"слово {n}\tслова {n}\n" for n in range(20)))
    corpora = [CorpusConfig(pairs=tmp_path / name) for name in ("latin", "cyrillic")]
    first, second = prepare(corpora, CleaningConfig(), TEXT, tmp_path / "prepared").reports
    assert (first.counts, second.counts) == ({"wrong_script": 1}, {})
