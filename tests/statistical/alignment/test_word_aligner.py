"""Aligners that are trained, saved and loaded; `dragoman.align` and `dragoman align`."""

import gzip
import random
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_model import write_tiny_model

import dragoman
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.cli.main import main
from dragoman.statistical.alignment.estimation.words import WordsConfig, WordVocabulary, decode_words, encode_words
from dragoman.statistical.alignment.methods.fertility import FertilityConfig
from dragoman.statistical.alignment.methods.hmm import HMMConfig
from dragoman.statistical.alignment.methods.union import default_method
from dragoman.statistical.alignment.symmetrization import symmetrize
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner

WORDS = {
    "a": "ein", "dog": "Hund", "runs": "läuft", "cat": "Kater", "sleeps": "schläft", "in": "in", "park": "Park",
    "man": "Mann", "sees": "sieht", "house": "Haus", "red": "rotes", "big": "großer", "and": "und", "old": "alter",
}  # fmt: skip
METHODS = ["ibm1", "ibm2", "diagonal", "hmm"]


def texts(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return pairs whose translation is word by word."""
    chance = random.Random(seed)
    sources = [chance.sample(list(WORDS), chance.randint(2, 7)) for _ in range(count)]
    return [" ".join(each) for each in sources], [" ".join(WORDS[word] for word in each) for each in sources]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    sources, targets = texts(60)
    sources[3], targets[5], sources[7], targets[7] = "", "  ", " ", ""
    paths = tmp_path / "train.en", tmp_path / "train.de"
    for path, lines in zip(paths, (sources, targets), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return paths


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_aligner_aligns_as_in_training(method: str, tmp_path: Path) -> None:
    sources, targets = texts(80)
    config = AlignerConfig.model_validate({"method": {"kind": method}})
    aligner, aligned = WordAligner.train(sources, targets, config)
    right = sum(
        alignment == tuple((word, word) for word in range(len(source.split())))
        for source, alignment in zip(sources, aligned.alignments, strict=True)
    )
    assert right >= 76
    aligner.save(tmp_path / "aligner")
    loaded = WordAligner.load(tmp_path / "aligner")
    assert loaded.align(sources, targets) == aligned.alignments
    assert [loaded.align([s], [t])[0] for s, t in zip(sources, targets, strict=True)] == aligned.alignments
    again = loaded.align_pairs(sources, targets, threads=2)
    assert again.forward.tolist() == aligned.forward.tolist() and again.reverse.tolist() == aligned.reverse.tolist()
    assert loaded.settings() == aligner.settings()
    assert loaded.align(["A DOG, (runs)"], ["ein Hund läuft!"]) == [((0, 0), (1, 1), (2, 2))]
    weights = loaded.link_weights("A DOG, (runs)", "ein Hund läuft!")
    assert weights.shape == (3, 3) and weights.argmax(1).tolist() == [0, 1, 2]
    assert ((weights >= 0) & (weights <= 1 + 1e-12)).all()
    assert loaded.link_weights("", "ein").shape == (1, 0) and loaded.link_weights("unknown", "").shape == (0, 1)
    assert loaded.align(["unknown words", "", "a"], ["Unbekannte Wörter", "ein", " "])[1:] == [(), ()]


def test_folders_are_those_of_a_word_aligner(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "translator")
    aligner, _ = WordAligner.train(*texts(20))
    aligner.save(tmp_path / "aligner")
    card = (tmp_path / "aligner" / "README.md").read_text()
    assert "\n# Word aligner" in card and "dragoman align --model" in card
    assert "word aligner" in str(dragoman.describe(tmp_path / "aligner"))
    with pytest.raises(ModelError, match="is a word aligner; it cannot translate: use `dragoman align"):
        dragoman.Translator.load(tmp_path / "aligner")
    with pytest.raises(ModelError, match="is not a word aligner: train one"):
        WordAligner.load(tmp_path / "translator")
    parameters = tmp_path / "aligner" / "model.safetensors"
    parameters.write_bytes(parameters.read_bytes()[:-10])
    with pytest.raises(ModelError, match="damaged"):
        WordAligner.load(tmp_path / "aligner")


def test_the_command_writes_one_line_per_pair(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["align", "--source", str(files[0]), "--target", str(files[1])]
    assert main([*arguments, "--save", str(tmp_path / "aligner"), "--draw", str(tmp_path / "one.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 60 and [number for number, line in enumerate(lines) if not line] == [3, 5, 7]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    model = ["--model", str(tmp_path / "aligner"), "-o"]
    assert main([*arguments, *model, str(tmp_path / "links.gz")]) == 0
    assert gzip.decompress((tmp_path / "links.gz").read_bytes()).decode().splitlines() == lines
    assert main([*arguments, *model, str(tmp_path / "union.gz"), "--symmetrize", "union", "--threads", "1"]) == 0
    union = gzip.decompress((tmp_path / "union.gz").read_bytes()).decode().splitlines()
    assert all(set(line.split()) <= set(other.split()) for line, other in zip(lines, union, strict=True))
    assert capsys.readouterr().out == ""


def test_exchanged_sides_with_reverse_give_the_same_links(files: tuple[Path, Path]) -> None:
    one = dragoman.align(*files, symmetrization="forward", quiet=True)
    other = dragoman.align(files[1], files[0], symmetrization="reverse", reverse=True, quiet=True)
    assert one.alignments == other.alignments and one.pharaoh() == other.pharaoh()
    assert one.log_probabilities == other.log_probabilities


def test_the_heuristics_combine_the_links_of_both_directions(files: tuple[Path, Path], tmp_path: Path) -> None:
    shuffled = tmp_path / "shuffled"
    shuffled.write_text("".join(f"{' '.join(line.split()[::-1])} .\n" for line in files[1].read_text().splitlines()))
    forward, reverse, combined = (
        dragoman.align(files[0], shuffled, method="diagonal", symmetrization=name, quiet=True)
        for name in ("forward", "reverse", "grow-diag-final-and")
    )
    pairs = zip(forward.alignments, reverse.alignments, strict=True)
    assert combined.alignments == [symmetrize(*pair, "grow-diag-final-and") for pair in pairs]
    assert forward.alignments != reverse.alignments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "ibm9"], "ibm1"),
        (["--symmetrize", "both"], "grow-diag-final-and"),
        (["method.iterations=0"], "method.iterations"),
        (["--model", "x", "--method", "ibm1"], "--model is already trained"),
        (["--draw", "x.png", "--draw-line", "61"], "has only 60 lines"),
        (["--draw", "x.png", "--draw-line", "4"], "blank"),
    ],
)
def test_wrong_arguments(
    files: tuple[Path, Path], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["align", "--source", str(files[0]), "--target", str(files[1]), *arguments]) != 0
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err and captured.out == ""


def test_unequal_and_empty_texts_and_unknown_methods_are_rejected(files: tuple[Path, Path], tmp_path: Path) -> None:
    shorter = tmp_path / "shorter"
    shorter.write_text("ein Hund\n")
    with pytest.raises(DataError, match="has 60 lines and .*shorter has 1"):
        dragoman.align(files[0], shorter)
    with pytest.raises(DataError, match="no sentence pair has words on both sides"):
        dragoman.align(["a", ""], ["", "ein"])
    with pytest.raises(ConfigError, match=r"unknown kind 'giza' \(from --method\): expected one of 'ibm1'"):
        dragoman.align(["a"], ["b"], method="giza")
    with pytest.raises(DataError, match="2 sources but 1 targets"):
        WordAligner.train(["a", "b"], ["ein"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(ConfigError, match="full"):
        dragoman.align(*files, save=tmp_path / "full")


def test_words_are_compared_in_their_canonical_form() -> None:
    vocabulary = WordVocabulary(WordsConfig())
    assert vocabulary.extend("The the (THE) ﬁne fine ... … '") == [0, 0, 0, 1, 1, 2, 2, 3]
    assert vocabulary.encode("the, new") == [0, -1]
    exact = WordVocabulary(WordsConfig(lowercase=False, normalization="none", strip_punctuation=False))
    assert exact.extend("The the (the) The") == [0, 1, 2, 0]
    for words in ([], ["a"], ["a", "ü", "\udc80"]):
        assert decode_words(encode_words(words)) == words


def test_loading_and_aligning_are_fast(tmp_path: Path) -> None:
    chance = random.Random(3)
    vocabulary = [f"w{number}" for number in range(3000)]
    sources = [" ".join(chance.choices(vocabulary, k=12)) for _ in range(1500)]
    WordAligner.train(sources, sources)[0].save(tmp_path / "aligner")
    start = time.process_time()
    aligner = WordAligner.load(tmp_path / "aligner")
    loaded = time.process_time()
    for source in sources[:20]:
        aligner.align([source], [source])
    assert loaded - start < 1 and (time.process_time() - loaded) / 20 < 0.005


def test_config_yaml_has_all_settings(tmp_path: Path) -> None:
    config = AlignerConfig.model_validate({"method": {"kind": "hmm", "iterations": 2}, "symmetrization": "union"})
    WordAligner.train(*texts(10), config)[0].save(tmp_path / "aligner")
    stored = yaml.safe_load((tmp_path / "aligner" / "config.yaml").read_text())
    assert stored["model"]["kind"] == "word_aligner" and stored["aligner"]["method"]["iterations"] == 2
    assert WordAligner.load(tmp_path / "aligner").config == config


def test_the_default_method_depends_on_the_size(tmp_path: Path) -> None:
    sources, targets = texts(60)
    aligner, _ = WordAligner.train(sources, targets)
    assert aligner.config.method == FertilityConfig()
    aligner.save(tmp_path / "aligner")
    assert WordAligner.load(tmp_path / "aligner").config == aligner.config
    few, many = np.full(80_000, 25), np.full(80_001, 25)
    assert default_method(few, few) == FertilityConfig()
    assert default_method(many, many) == HMMConfig()
    chosen, _ = WordAligner.train(sources, targets, AlignerConfig(method=HMMConfig()))
    assert chosen.config.method == HMMConfig()


def test_a_folder_without_a_method_is_damaged(tmp_path: Path) -> None:
    WordAligner.train(*texts(60))[0].save(tmp_path / "aligner")
    config = tmp_path / "aligner" / "config.yaml"
    content = yaml.safe_load(config.read_text())
    del content["aligner"]["method"]
    config.write_text(yaml.safe_dump(content))
    with pytest.raises(ModelError, match="the method is missing"):
        WordAligner.load(tmp_path / "aligner")
