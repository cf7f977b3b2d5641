"""Shortlists: training, model folders, and translations that contain only their tokens."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import SOURCES, TARGETS, tiny_tokenizers, write_tiny_model
from training_runs import RUN, SETTINGS, write_corpus

import dragoman
from dragoman.base.errors import DataError, ModelError
from dragoman.checkpoint.folder import SHORTLIST, fingerprint
from dragoman.cli.main import main
from dragoman.statistical.alignment.shortlist import Shortlist, ShortlistConfig
from dragoman.tasks.translation import aligner_training as training
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizers import VocabularySizes

SIZES = VocabularySizes(9, 12)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with a shortlist of few tokens."""
    write_tiny_model(tmp_path / "model")
    dragoman.shortlist(tmp_path / "model", SOURCES, TARGETS, overrides={"frequent": 2, "translations": 2}, quiet=True)
    return tmp_path / "model"


def test_translations_are_those_of_the_alignment_model() -> None:
    """Token n always occurs with token n + 1, beside token 11, which is frequent."""
    sources = [[4, 5], [5, 6], [6, 4], [7], [4], [8, 8]]
    targets = [[5, 6, 11], [6, 7, 11], [7, 5, 11], [8, 11], [5, 11, 11], []]
    trained = Shortlist.train(sources, targets, SIZES, ShortlistConfig(frequent=1, translations=1), [4])
    assert trained.always.tolist() == [EOS, UNK, 4, 11]
    assert [trained.translations(token).tolist() for token in (4, 5, 6)] == [[5], [6], [7]]
    assert trained.translations(8).tolist() == [] and trained.translations(0).tolist() == []
    assert trained.tokens([4, 6, 4], [9, 5]).tolist() == [EOS, UNK, 4, 5, 7, 9, 11]


def test_the_number_of_threads_does_not_matter() -> None:
    chance = np.random.default_rng(1)
    sources, targets = ([chance.integers(4, size, 6).tolist() for _ in range(200)] for size in SIZES[:2])
    first, second = (Shortlist.train(sources, targets, SIZES, ShortlistConfig(), threads=threads) for threads in (1, 2))
    assert all(first.translations(token).tolist() == second.translations(token).tolist() for token in range(9))


@given(st.lists(st.integers(0, 8), max_size=6), st.lists(st.integers(0, 11), max_size=6))
def test_shortlists_are_sorted_and_contain_all_required_tokens(source: list[int], others: list[int]) -> None:
    starts = np.arange(10, dtype=np.int64) * 2
    translations = (np.arange(18) % 12).astype(np.int32)
    shortlist = Shortlist(np.array([2, 3], np.int32), starts, translations, 12)
    tokens = shortlist.tokens(source, others)
    required = {2, 3, *others, *chain.from_iterable(shortlist.translations(token).tolist() for token in source)}
    assert tokens.tolist() == sorted(required)


def test_folders_keep_shortlists(tmp_path: Path) -> None:
    trained = Shortlist.train([[4, 5], [5]], [[6, 7], [7]], SIZES, ShortlistConfig(), provenance="text")
    trained.save(tmp_path)
    stored = Shortlist.load(tmp_path, SIZES)
    assert stored is not None and stored.provenance == "text"
    assert all(np.array_equal(stored.tokens([token]), trained.tokens([token])) for token in range(9))
    assert Shortlist.load(tmp_path / "other", SIZES) is None
    with pytest.raises(ModelError, match=r"does not fit the model's vocabularies of 9 and 13 tokens"):
        Shortlist.load(tmp_path, VocabularySizes(9, 13))
    (tmp_path / SHORTLIST).write_bytes(b"\x00" * 40)
    with pytest.raises(ModelError, match=SHORTLIST):
        Shortlist.load(tmp_path, SIZES)


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_translations_contain_only_tokens_of_their_shortlists(folder: Path, engine: str) -> None:
    """Alone and in any batch, with prefixes and constraints, and copied tokens of the source are allowed."""
    translator = dragoman.Translator.load(folder, "cpu", engine=engine, precision="float32")
    shortlist = Shortlist.load(folder, translator.tokenizers.sizes)
    assert shortlist is not None
    texts = ["a dog runs .", "the park", "two men sleep in the park .", ""]
    requests = [
        translator.request(search={"shortlist": True}, nbest=2, **options)
        for options in ({}, {"prefix": "Xylophon"}, {"constraints": ["Quark"]}, {})
    ]
    found = translator.translate_nbest(texts, requests)
    tokenizers = translator.tokenizers
    for number, prefix in ((0, ""), (1, "Xylophon"), (3, "")):
        copied = [*tokenizers.target.encode(texts[number]), *tokenizers.target.encode(prefix)]
        allowed = shortlist.tokens(tokenizers.source.encode(texts[number]), copied)
        assert len(allowed) < tokenizers.target.size / 4
        assert all(set(each.ids) <= set(allowed.tolist()) for each in found[number])
    assert found[1][0].text.startswith("Xylophon") and "Quark" in found[2][0].text
    alone = [translator.translate_nbest([text], [request])[0] for text, request in zip(texts, requests, strict=True)]
    assert [[each.tokens for each in one] for one in alone] == [[each.tokens for each in one] for one in found]


def test_the_fingerprint_of_a_model_does_not_depend_on_the_shortlist(folder: Path) -> None:
    """Otherwise the measurement of int8 would no longer belong to the model, and float32 would be chosen."""
    before = fingerprint(folder)
    (folder / SHORTLIST).unlink()
    assert fingerprint(folder) == before


def test_scores_do_not_depend_on_the_shortlist(folder: Path) -> None:
    pairs = ["a dog"], ["Quark"]
    with_shortlist = dragoman.Translator.load(folder, "cpu", engine="torch").score(*pairs)
    (folder / SHORTLIST).unlink()
    assert dragoman.Translator.load(folder, "cpu", engine="torch").score(*pairs) == with_shortlist


def test_engines_without_shortlists_say_so(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ctranslate2")
    (tmp_path / "text").write_text("a dog\n")
    command = ["translate", str(folder), "--engine", "ctranslate2", "--input", str(tmp_path / "text")]
    assert main([*command, "search.shortlist=true"]) != 0
    assert "does not support dragoman's definition of shortlist" in capsys.readouterr().err


def test_models_without_a_shortlist_name_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    (tmp_path / "text").write_text("a dog\n")
    command = ["translate", str(tmp_path / "model"), "--input", str(tmp_path / "text"), "--quiet"]
    assert main([*command, "search.shortlist=true"]) == 2
    assert "`dragoman shortlist MODEL --source FILE --target FILE` creates" in capsys.readouterr().err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    for name, lines in (("source", SOURCES), ("target", TARGETS), ("short", TARGETS[1:]), ("blank", ["", "", ""])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    command = ["shortlist", str(tmp_path / "model"), "--source", str(tmp_path / "source"), "--target"]
    assert main([*command, str(tmp_path / "short")]) == 1
    assert main([*command, str(tmp_path / "blank")]) == 1
    assert "no sentence pair has tokens on both sides" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "target"), "translation=3"]) == 2
    assert main([*command, str(tmp_path / "target"), "translations=3"]) == 0
    assert "search.shortlist=true" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "target")]) == 2
    assert f"remove {tmp_path / 'model' / SHORTLIST} first" in capsys.readouterr().err
    (tmp_path / "model" / SHORTLIST).unlink()
    with pytest.raises(DataError, match="source is empty"):
        dragoman.shortlist(tmp_path / "model", [], [])


def test_one_setting_trains_the_shortlist_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*SETTINGS, "train.max_steps=2", "data.shortlist.frequent=3", "search.shortlist=true"]
    options = ["train", *write_corpus(tmp_path), *settings]
    assert main(options) == 0
    translator = dragoman.Translator.load(tmp_path / RUN, "cpu")
    assert translator.request().decoding.shortlist
    assert translator.translate(["1 2 3"])
    before = (tmp_path / RUN / SHORTLIST).read_bytes()
    monkeypatch.setattr(training.Shortlist, "train", lambda *_, **__: pytest.fail("trained twice"))
    assert main([*options, "--resume"]) == 0
    assert (tmp_path / RUN / SHORTLIST).read_bytes() == before


def test_average_copies_the_shortlist(folder: Path, tmp_path: Path) -> None:
    dragoman.average([folder, folder], tmp_path / "average", quiet=True)
    assert (tmp_path / "average" / SHORTLIST).read_bytes() == (folder / SHORTLIST).read_bytes()


def test_export_writes_a_vocabulary_map(folder: Path, tmp_path: Path) -> None:
    """CTranslate2's translations with the map contain only tokens of the shortlist, and some others without it."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    assert main(["export", str(folder), "--out", str(tmp_path / "exported"), "--to", "ctranslate2"]) == 0
    tokenizers = tiny_tokenizers()
    shortlist = Shortlist.load(folder, tokenizers.sizes)
    assert shortlist is not None
    source = tokenizers.source.encode("a dog runs .")
    pieces = [[tokenizers.source.symbols[token] for token in source]]
    translator = ctranslate2.Translator(str(tmp_path / "exported"), "cpu")
    allowed = {tokenizers.target.symbols[token] for token in shortlist.tokens(source).tolist()}
    options = {"beam_size": 8, "num_hypotheses": 8, "max_decoding_length": 20, "disable_unk": True}
    (full,) = translator.translate_batch(pieces, **options)
    (found,) = translator.translate_batch(pieces, use_vmap=True, **options)
    assert set(chain(*found.hypotheses)) <= {*allowed, "<s>"}
    assert not set(chain(*full.hypotheses)) <= {*allowed, "<s>"}


def test_tokens_with_whitespace_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dragoman.exchange.ctranslate2.folder import VOCABULARY_MAP, write_vocabulary_map
    from dragoman.text.tokenizers import TextConfig, train_tokenizers

    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": {"kind": "character"}}), SOURCES, TARGETS)
    ids = tokenizers.source.encode_batch(SOURCES), tokenizers.target.encode_batch(TARGETS)
    Shortlist.train(*ids, tokenizers.sizes, ShortlistConfig()).save(tmp_path)
    write_vocabulary_map(tmp_path, tokenizers)
    assert not (tmp_path / VOCABULARY_MAP).exists() and "whitespace" in capsys.readouterr().err


def test_a_replaced_shortlist_does_not_resume_a_translation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in SOURCES))
    command = ["translate", str(folder), "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    command += ["search.shortlist=true", "--batch-size", "1", "--engine", "torch", "--resume"]
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)
    monkeypatch.setattr("dragoman.inference.translation.files.translated_file.COMMIT_INTERVAL", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.base.journal.OutputJournal.publish", _stop)
        assert main(command) == 130
    (folder / SHORTLIST).unlink()
    dragoman.shortlist(folder, SOURCES, TARGETS, overrides={"frequent": 9}, quiet=True)
    capfd.readouterr()
    assert main(command) == 2
    assert "work with other options: shortlist (was" in " ".join(capfd.readouterr().err.split())


def _stop(*_: object, **_settings: object) -> None:
    raise KeyboardInterrupt
