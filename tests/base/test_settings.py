"""Settings: YAML, overrides and environment variables become a config, or an error that names the key."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError, field_validator

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import dump_settings, load_settings, parse_settings


class Words(Config):
    kind: Literal["words"] = "words"
    smallest_count: int = 1


class Subwords(Config):
    kind: Literal["subwords"] = "subwords"
    size: int = Field(8000, ge=10)


class Steps(Config):
    max_steps: int = Field(100, ge=1)
    max_minutes: float | None = None
    rate: float = 1e-3


class Corpus(Config):
    source: Path
    weight: float = 1.0


class Settings(Config):
    train: Steps = Steps()
    vocabulary: Annotated[Words | Subwords, Field(discriminator="kind")] = Subwords()
    corpora: tuple[Corpus, ...] = ()
    dropout: float | dict[str, float] = 0.1
    language: str = "en"
    name: str | None = None

    @field_validator("language")
    @classmethod
    def _two_letters(cls, value: str) -> str:
        if len(value) != 2:
            raise ValueError("a language is two letters")
        return value


def message(*overrides: str, path: Path | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        load_settings(path, overrides, Settings)
    return str(error.value)


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_file_and_overrides_compose(tmp_path: Path) -> None:
    path = write(tmp_path, "train:\n  max_steps: 5\n  max_minutes: 1.5\nlanguage: de\n")
    settings = load_settings(path, ["train.max_steps=7", "vocabulary.size=20"], Settings)
    assert settings.train == Steps(max_steps=7, max_minutes=1.5)
    assert settings.vocabulary == Subwords(size=20)
    assert settings.language == "de"


def test_no_file_and_empty_file_mean_defaults(tmp_path: Path) -> None:
    assert load_settings(None, [], Settings) == Settings()
    assert load_settings(write(tmp_path, "# nothing yet\n"), [], Settings) == Settings()


def test_override_of_a_list_item_and_of_a_whole_group() -> None:
    settings = load_settings(None, ["corpora=[{source: a}, {source: b}]", "corpora.1.weight=2"], Settings)
    assert [corpus.weight for corpus in settings.corpora] == [1.0, 2.0]
    assert load_settings(None, ["train.rate=2", "train={max_steps: 3}"], Settings).train == Steps(max_steps=3)


def test_union_group_without_kind_keeps_the_kind_of_the_default() -> None:
    assert load_settings(None, ["vocabulary={size: 30}"], Settings).vocabulary == Subwords(size=30)
    assert load_settings(None, ["vocabulary.kind=words"], Settings).vocabulary == Words()


def test_values_are_read_as_yaml_1_2() -> None:
    assert load_settings(None, ["language=no"], Settings).language == "no"
    assert load_settings(None, ["train.rate=1e-9"], Settings).train.rate == 1e-9
    assert load_settings(None, ["name='007'"], Settings).name == "007"
    assert load_settings(None, ["name=null"], Settings).name is None


def test_a_key_without_a_value_is_rejected(tmp_path: Path) -> None:
    """`train.max_steps=` must not remove the limit."""
    assert message("name=") == "'name=' has no value: write name=VALUE without spaces, or name=null for no value"
    assert "has no value" in message("train.max_steps= ")
    path = write(tmp_path, "train:\n  max_steps:\n")
    assert message(path=path) == f"{path}, line 2: train.max_steps has no value: write null for no value"
    assert "has no value: write a space after the colon" in message("train={max_steps:3}")


@pytest.mark.parametrize(
    "text", ["train:\n\tmax_steps: 3\n", "language: de\n\tname: x\n", "train:\n  rate: 1\n\t  max_steps: 3\n"]
)
def test_a_tab_is_named(tmp_path: Path, text: str) -> None:
    line = text[: text.index("\t")].count("\n") + 1
    path = write(tmp_path, text)
    assert message(path=path) == f"{path}, line {line} is indented with a tab, which YAML does not allow: use spaces"


def test_typo_on_the_command_line_gets_the_nearest_key() -> None:
    expected = "unknown setting train.max_step (from the command line); did you mean train.max_steps?"
    assert message("train.max_step=3") == expected


def test_typo_in_the_file_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, "language: de\ntrain:\n  max_step: 3\n")
    assert message(path=path) == f"unknown setting train.max_step ({path}, line 3); did you mean train.max_steps?"


def test_right_name_in_the_wrong_place_is_found() -> None:
    assert message("max_steps=3").endswith("did you mean train.max_steps?")


def test_typo_in_a_union_member_and_in_a_list_has_no_foreign_parts_in_its_path() -> None:
    assert message("vocabulary.sise=3") == (
        "unknown setting vocabulary.sise (from the command line); did you mean vocabulary.size?"
    )
    assert "corpora.0.wait " in message("corpora=[{source: a, wait: 2}]")


def test_an_unrecognisable_name_lists_the_known_ones() -> None:
    assert "train, vocabulary, corpora" in message("zzz=1")


def test_wrong_values_name_key_value_and_origin() -> None:
    text = message("train.max_steps=0", "train.rate=fast")
    assert "2 settings are invalid" in text
    assert "train.max_steps: should be greater than or equal to 1, not 0 (from the command line)" in text
    assert "train.rate: should be a valid number" in text
    assert "'fast'" in text
    assert message("language=german") == "language: a language is two letters (from the command line)"
    assert message("vocabulary.kind=bytes").startswith("vocabulary.kind: unknown kind 'bytes'")
    assert message("corpora=[{}]").startswith("the setting corpora.0.source is missing")


def test_wrong_kind_on_the_command_line_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "language: de\nvocabulary:\n  kind: words\n")
    assert "(from the command line)" in message("vocabulary.kind=bytes", path=path)
    path = write(tmp_path, "language: de\nvocabulary:\n  kind: bytes\n")
    assert f"({path}, line 3)" in message("train.rate=1", path=path)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("train: {max_steps: 3}\nlanguage: de\ntrain: {}\n", "line 3: train was already set in line 1"),
        ("train: [unclosed\n", "line 2 is not valid YAML"),
        ("train: [unclosed", "line 1 is not valid YAML"),
        ("[" * 20_000, "is not valid YAML"),
        ("- a\n- b\n", "must contain settings in the form key: value"),
        ("1: a\n", "line 1: the name of a setting must be text"),
        ("a: !!python/object/apply:os.system [echo]\n", "is not valid YAML"),
        ("a: &a [*a]\n", "more than 50 levels"),
        ("a: \x00\n", "is not valid YAML"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(tmp_path: Path, text: str, part: str) -> None:
    path = write(tmp_path, text)
    error = message(path=path)
    assert str(path) in error
    assert part in error


def test_billion_laughs_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{depth}: &a{depth} [{', '.join([f'*a{depth - 1}'] * 9)}]" for depth in range(1, 12)]
    assert "100000 values" in message(path=write(tmp_path, "\n".join(lines)))


def test_missing_and_binary_files(tmp_path: Path) -> None:
    assert "No such file" in message(path=tmp_path / "none.yaml")
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"a: \xff\n")
    assert "not UTF-8" in message(path=path)


def test_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPORA", "there")
    monkeypatch.delenv("NOT_SET", raising=False)
    path = write(tmp_path, "corpora:\n  - source: ${CORPORA}/a.en\nname: $${CORPORA} $5\n")
    settings = load_settings(path, [], Settings)
    assert settings.corpora[0].source == Path("there/a.en")
    assert settings.name == "${CORPORA} $5"
    error = message(path=write(tmp_path, "corpora:\n  - weight: 2\n    source: ${NOT_SET}/a\n"))
    assert "corpora.0.source" in error
    assert "NOT_SET" in error
    assert "line 3" in error


def test_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ann")
    path = write(tmp_path, "corpora:\n  - source: ~/a.en\n  - source: b\nname: a ~/b or ~ann\n")
    settings = load_settings(path, ["corpora.1.source=~/b.de"], Settings)
    assert settings.corpora[0].source == Path("/users/ann/a.en")
    assert settings.corpora[1].source == Path("/users/ann/b.de")
    assert settings.name == "a ~/b or ~ann"
    given = load_settings({"corpora": [{"source": Path("~/a.en")}]}, {}, Settings)
    assert given.corpora[0].source == Path("/users/ann/a.en")


@pytest.mark.parametrize("override", ["train.max_steps", "=3", "train..max_steps=3", ""])
def test_invalid_overrides_are_reported(override: str) -> None:
    assert "write key=value" in message(override)


def test_override_below_a_plain_value_or_beyond_a_list_is_refused() -> None:
    assert "not a group" in message("train=3", "train.max_steps=3")
    assert "list of length 1" in message("corpora=[{source: a}]", "corpora.4.weight=1")


def test_dump_reads_back_equal(tmp_path: Path) -> None:
    settings = Settings(
        train=Steps(rate=1e-9, max_minutes=float("inf")),
        vocabulary=Words(smallest_count=2),
        corpora=(Corpus(source=Path("a b/ü.en")),),
        dropout={"embedding": 0.3},
        name="${HOME} $${X} 1e5 no\n007\u2028",
        language="no",
    )
    assert load_settings(write(tmp_path, dump_settings(settings)), [], Settings) == settings


def test_parse_settings_takes_unions_and_names_the_origin() -> None:
    union = Annotated[Words | Subwords, Field(discriminator="kind")]
    assert parse_settings({"kind": "words"}, union, "in a test") == Words()  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"unknown setting sise \(in a test\); did you mean size\?"):
        parse_settings({"kind": "subwords", "sise": 3}, union, "in a test")  # type: ignore[arg-type]


def test_configs_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError):
        Settings().language = "de"  # type: ignore[misc]
