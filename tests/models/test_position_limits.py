"""Texts beyond a model's positions: found before training, named by line elsewhere, and not reached by the search."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fixtures.tiny_model import SOURCES, TARGETS, tiny_config, tiny_tokenizers, write_tiny_model
from searching import searched

from dragoman import inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import load_settings
from dragoman.base.settings.yaml import dump_yaml
from dragoman.cli.main import main
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.batches.resampling import Resampler
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.translator import Request, Translator
from dragoman.models.interface import LengthLimit, first_exceeded
from dragoman.nn.positions.absolute import AbsoluteScheme
from dragoman.nn.positions.naive import OneHotConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.positions.union import PositionsConfig
from dragoman.tasks.registry import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig
from dragoman.training.run.setup import assemble

LIMIT, WIDTH = 12, 8
SHORT, LONG = "a dog .", " ".join(["a dog runs in the park ."] * 10)
NONE = {"kind": "none"}
CLAIM_ANY_LENGTH = {"sinusoidal", "relative", "bucketed", "rotary", "alibi", "none", "index", "fraction"}


def schemes() -> Iterator[tuple[dict[str, Any], bool]]:
    """Every scheme of the registry, with each way to join it, and whether it claims to support any length."""
    for member in union_members(PositionsConfig):
        joins = [{"join": "add"}, {"join": "concatenate"}] if issubclass(member, AbsoluteScheme) else [{}]
        for join in joins:
            may = "limit" in member.model_fields and member is not SinusoidalConfig  # sinusoids need no limit
            limit = {"limit": LIMIT} if may else {}
            if limit and member is OneHotConfig:
                limit = {"limit": WIDTH} if join["join"] == "add" else {**limit, "width": LIMIT}
            settings = {"kind": kinds(member)[0], **join, **limit}
            yield settings, member.model_validate(settings).build_embedding(WIDTH).limit is None


UNLIMITED = [scheme for scheme, unlimited in schemes() if unlimited]
LIMITED = [scheme for scheme, unlimited in schemes() if not unlimited]
IN_DECODERS = [scheme for scheme in UNLIMITED if scheme["kind"] != "fraction"]


def model_folder(folder: Path, **positions: Any) -> Path:
    write_tiny_model(folder, config=tiny_config(**positions))
    return folder


def name(scheme: dict[str, Any]) -> str:
    return "-".join(map(str, scheme.values()))


def test_which_schemes_claim_any_length() -> None:
    assert {scheme["kind"] for scheme in UNLIMITED} == CLAIM_ANY_LENGTH
    assert {scheme["kind"] for scheme in LIMITED} == {"learned", "one_hot"}


@pytest.mark.parametrize("scheme", UNLIMITED, ids=name)
def test_an_encoder_reads_a_text_ten_times_longer(tmp_path: Path, scheme: dict[str, Any]) -> None:
    translator = Translator.load(model_folder(tmp_path / "m", positions=scheme, target_positions=NONE), "cpu")
    encode = translator.tokenizers.source.encode
    assert len(encode(LONG)) >= 10 * max(map(len, map(encode, SOURCES)))
    found = list(translator.stream_nbest([SHORT, LONG], Request(SearchConfig(beam=1, length_factor=0.1))))
    assert len(found) == 2 and found[1][0].tokens
    assert np.isfinite(translator.score([LONG], [SHORT])[0].log_probability)


@pytest.mark.parametrize("scheme", IN_DECODERS, ids=name)
def test_a_decoder_writes_a_text_ten_times_longer(tmp_path: Path, scheme: dict[str, Any]) -> None:
    translator = Translator.load(model_folder(tmp_path / "m", positions=NONE, target_positions=scheme), "cpu")
    encode = translator.tokenizers.target.encode
    length = 10 * max(map(len, map(encode, TARGETS)))
    settings = SearchConfig(beam=2, minimum_length=length, length_factor=0)
    ((best,),) = translator.stream_nbest([SHORT], Request(settings))
    assert len(best.tokens) >= length and np.isfinite(best.log_probability)
    assert np.isfinite(translator.score([SHORT], ["ein Hund . " * length])[0].log_probability)


def test_the_command_line_translates_a_text_ten_times_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folder(tmp_path / "m", positions={"kind": "rotary"})
    (tmp_path / "lines").write_text(f"{SHORT}\n{LONG}\n{SHORT}\n")
    assert main(["translate", str(folder), "-i", str(tmp_path / "lines"), "--beam", "1"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == third and second


@pytest.mark.parametrize("scheme", LIMITED, ids=name)
def test_a_decoder_reports_the_end_of_its_positions(
    tmp_path: Path, scheme: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A translation is cut at the last position; given texts that are too long are refused."""
    folder = model_folder(tmp_path / "m", positions=NONE, target_positions=scheme)
    translator = Translator.load(folder, "cpu")
    limit = scheme["limit"]
    short, long = "a", "a dog runs ."
    found = list(translator.stream_nbest([short, long], Request(SearchConfig(beam=2, minimum_length=50))))
    assert [len(each[0].tokens) for each in found] == [limit, limit] and not found[1][0].finished
    warning = (
        f"2 line(s) have unfinished translations that reached the model's maximum of {limit} target tokens "
        "(model.target_positions.limit)"
    )
    assert f"{warning}: line 1, 2" in capsys.readouterr().err
    (tmp_path / "source").write_text(f"{SHORT}\n{SHORT}\n")
    (tmp_path / "target").write_text(f"{short}\n{LONG}\n")
    command = ["score", str(folder), "--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert (
        f"{tmp_path / 'target'}, line 2: " in error and f"target tokens, but the model has {limit} positions" in error
    )
    assert "a larger model.target_positions.limit" in error and "Traceback" not in error


@pytest.mark.parametrize("scheme", LIMITED, ids=name)
def test_a_text_beyond_the_limit_is_named_and_earlier_results_are_kept(
    tmp_path: Path, scheme: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folder(tmp_path / "m", positions=scheme)
    lines = tmp_path / "lines"
    lines.write_text(f"{SHORT}\n\n{SHORT}\n{LONG}\n{SHORT}\n")
    assert main(["translate", str(folder), "-i", str(lines)]) == 1
    captured = capsys.readouterr()
    limit = scheme["limit"]
    tokens = len(tiny_tokenizers().source.encode(LONG))
    said = f"error: {lines}, line 4: {tokens} source tokens, but the model has {limit} positions"
    assert said in captured.err
    assert "a larger model.positions.limit" in captured.err and "Traceback" not in captured.err
    alone = Translator.load(folder, "cpu").translate([SHORT])[0]
    assert captured.out == f"{alone}\n\n{alone}\n"
    for verb, *options in (
        ("evaluate", "--source", lines, "--reference", lines),
        ("score", "--source", lines, "--target", lines),
    ):
        assert main([verb, str(folder), *map(str, options)]) == 1
        assert said in capsys.readouterr().err


def test_scoring_names_the_pair_and_the_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model_folder(
        tmp_path / "m", positions={"kind": "rotary"}, target_positions={"kind": "learned", "limit": 9}
    )
    for file, last in (("short", SHORT), ("long", LONG)):
        (tmp_path / file).write_text(f"{SHORT}\n{last}\n")
    command = ["score", str(folder), "--source", str(tmp_path / "long"), "--target"]
    assert main([*command, str(tmp_path / "short")]) == 0
    assert capsys.readouterr().out.count("\n") == 2
    assert main([*command, str(tmp_path / "long")]) == 1
    captured = capsys.readouterr()
    assert (
        not captured.out
        and f"{tmp_path / 'long'}, line 2: " in captured.err
        and "target tokens, but the model has 9" in captured.err
    )
    assert "model.target_positions.limit" in captured.err


def test_exactly_the_limit_can_be_used(tmp_path: Path) -> None:
    translator = Translator.load(model_folder(tmp_path / "m", positions={"kind": "learned", "limit": LIMIT}), "cpu")
    encode = translator.tokenizers.source.encode
    fits = next(text for text in (SHORT + " a" * more for more in range(20)) if len(encode(text)) == LIMIT - 1)
    translator.score([fits], [fits])
    inspect(translator, fits, target=fits)
    for pair in ((fits + " a", fits), (fits, fits + " a")):
        with pytest.raises(DataError, match=f"line 1: {len(encode(fits + ' a'))} .* {LIMIT} positions"):
            translator.score(*([side] for side in pair))
        with pytest.raises(DataError, match="the text is too long"):
            inspect(translator, pair[0], target=pair[1])


def test_search_ends_where_the_decoders_positions_end(tmp_path: Path) -> None:
    model = write_tiny_model(
        tmp_path / "m", config=tiny_config(target_positions={"kind": "learned", "limit": 7})
    ).eval()
    source = torch.full((2, 30), 9)
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    # an end of sentence that never comes
    with torch.no_grad():
        model.decoder.projection.weight[2] = 0
    settings = SearchConfig(beam=2, minimum_length=6)
    for hypotheses in searched(model.decoder, memory, settings, [[5] * 6, []]):
        assert len(hypotheses[0].tokens) <= 7
    with pytest.raises(ConfigError, match="prefix of sentence 1: 7 tokens, but the decoder has 7 positions"):
        searched(model.decoder, memory, settings, [[], [5] * 7])


def test_a_prefix_beyond_the_limit_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model_folder(tmp_path / "m", positions={"kind": "learned", "limit": LIMIT})
    (tmp_path / "lines").write_text(f"{SHORT}\n{SHORT}\n")
    (tmp_path / "prefixes").write_text(f"\n{LONG}\n")
    assert main(["translate", str(folder), "-i", str(tmp_path / "lines"), "--prefix", str(tmp_path / "prefixes")]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert f"{tmp_path / 'prefixes'}, line 2: " in captured.err and "target tokens" in captured.err


@pytest.mark.parametrize("where", ["train", pytest.param("valid", marks=pytest.mark.slow)])
def test_training_finds_long_texts_before_it_starts(
    tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("train", "valid"):
        for side, lines in (("source", SOURCES), ("target", TARGETS)):
            long = [f"{lines[0]} " * 12] if part == where else []
            (tmp_path / f"{part}.{side}").write_text("".join(f"{line}\n" for line in [*lines, *long]))
    corpora = {
        part: {side: str(tmp_path / f"{part}.{side}") for side in ("source", "target")} for part in ("train", "valid")
    }
    recipe = tmp_path / "recipe.yaml"
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    model = {"preset": None, "width": 8, "encoder": stack, "decoder": stack}
    model["positions"] = {"kind": "learned", "limit": 60}
    recipe.write_text(dump_yaml({"data": corpora, "text": {"subword": {"size": 280}}, "model": model}))
    assert main(["train", str(recipe), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert f"{where}.source + {tmp_path}/{where}.target, line 4: " in error
    assert "the model has 60 positions" in error and "1 of 4 pairs" in error
    assert ("set data.cleaning.max_tokens=59" in error) == (where == "train")
    assert not (tmp_path / "run" / "config.yaml").exists()
    enough = int(error.partition("Set model.positions.limit=")[2].split()[0])
    remedies = [f"model.positions.limit={enough}"] + ["data.cleaning.max_tokens=59"] * (where == "train")
    for remedy in remedies:
        config = load_settings(recipe, [remedy, f"out={tmp_path}/{remedy}"], TranslationRun)
        with assemble(config, open_job, resume=False) as session:
            assert session.job.examples == (4 if where == "train" and "positions" in remedy else 3)
    short = load_settings(recipe, [f"model.positions.limit={enough - 1}", f"out={tmp_path}/short"], TranslationRun)
    with pytest.raises(ConfigError, match=f"={enough} or more"), assemble(short, open_job, resume=False):
        pass


def test_dropout_never_splits_a_text_beyond_the_limit(tmp_path: Path) -> None:
    for side, lines in (("source", SOURCES), ("target", TARGETS)):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines))
    corpus = CorpusConfig(source=tmp_path / "source", target=tmp_path / "target")  # type: ignore[call-arg]
    text = TextConfig.model_validate({"subword": {"size": 280, "dropout": 0.9}})
    prepared = prepare(corpus, CleaningConfig(), text, tmp_path / "prepared")
    lengths = prepared.dataset.lengths
    plan = plan_epoch(lengths, BatchConfig(tokens=100), seed=0, epoch=0)

    def longest(most: tuple[int | None, ...]) -> np.ndarray:
        loader = Loader(prepared.dataset, plan, 0, Resampler(prepared.tokenizers, 1, most, processes=0))
        sides = [(batch.source_mask.sum(1), batch.target_mask.sum(1)) for batch in loader]
        return np.array([max(int(side.max()) for side in each) - 1 for each in zip(*sides, strict=True)])

    limits = tuple(map(int, lengths.max(0)))
    assert (longest((None, None)) > limits).all()
    assert (longest(limits) <= limits).all()
    assert longest((limits[0], None))[1] > limits[1]


def test_a_limit_counts_the_special_token() -> None:
    limits = LengthLimit("source", 5, "a"), LengthLimit("target", None, "b")
    assert first_exceeded(limits, 4, 10**9) is None
    assert first_exceeded(limits, 5, 1) == (limits[0], 5)
