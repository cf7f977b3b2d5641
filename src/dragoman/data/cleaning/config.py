"""Settings of cleaning: `CleaningConfig` for sentence pairs, `TextCleaningConfig` for plain text."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.text.languages.usual_scripts import language_scripts
from dragoman.text.scripts import parse_script

_SEPARATE = ("mismatched", "aligner", "held_out")
"""Settings whose data have fingerprints of their own."""

_UNESCAPE: bool = Field(
    default=False,
    description="Replace escapes that other tools have left in the text: character references of HTML, such as &quot; "
    "and &#8364;, and separators of Moses, such as @-@. If false, they are only counted.",
)
_FRACTION = "A script counts as a script of {} if at least this fraction of its {} is mostly written in it."


class BaseCleaningConfig(Config):
    """The settings that are shared by sentence pairs and plain text.

    side_scripts: the settings with the scripts of each side.
    """

    side_scripts: ClassVar[tuple[str, ...]]

    if TYPE_CHECKING:  # declared in the subclasses, with descriptions of their own
        enabled: bool
        duplicates: bool
        wrong_script: bool
        control_characters: bool
        broken_utf8: Literal["skip", "error"]
        script_fraction: float
        unescape: bool

    @model_validator(mode="after")
    def _check_scripts(self) -> Self:
        for setting in self.side_scripts:
            for name in getattr(self, setting):
                parse_script(name)
        return self

    @property
    def scripts_of_sides(self) -> tuple[frozenset[str], ...]:
        """The configured scripts of each side; empty if they are detected."""
        configured = (getattr(self, setting) for setting in self.side_scripts)
        return tuple(frozenset[str]().union(*map(parse_script, names)) for names in configured)

    def with_languages(self, *languages: str | None) -> Self:
        """Return the settings with the scripts of the languages of the sides, if these scripts are known.

        Scripts that are set explicitly are kept.
        """
        scripts = {
            setting: tuple(sorted(language_scripts(language)))
            for setting, language in zip(self.side_scripts, languages, strict=True)
            if language is not None and not getattr(self, setting)
        }
        return self.model_copy(update=scripts)

    def fingerprint(self, *excluded: str) -> str:
        """Return a description of the rules that determine which text is kept. excluded: settings to leave out."""
        return self.model_dump_json(exclude={*excluded, *_SEPARATE})


class CleaningConfig(BaseCleaningConfig):
    """Cleaning rules for sentence pairs. Disable single rules with false or null, and all rules with `enabled: false`.

    The defaults were chosen on good corpora of many languages so that they drop next to nothing from them.
    """

    side_scripts: ClassVar[tuple[str, ...]] = ("source_scripts", "target_scripts")

    enabled: bool = Field(default=True, description="Apply the cleaning rules. If false, invalid UTF-8 is an error.")
    empty: bool = Field(default=True, description="Drop pairs with a blank side.")
    max_tokens: int | None = Field(
        default=250, ge=1, description="Drop pairs with more subword tokens than this on either side; null: no limit."
    )
    max_words: int | None = Field(
        default=200,
        ge=1,
        description="Drop pairs with more words than this on either side; null: no limit. In scripts without spaces, "
        "words are counted by their usual length, such as two Chinese characters.",
    )
    max_characters: int | None = Field(
        default=2000, ge=1, description="Drop pairs with more characters than this on either side; null: no limit."
    )
    max_ratio: float | None = Field(
        default=4.0,
        gt=1.0,
        description="Drop pairs whose length ratio differs by more than this factor from the usual ratio of the "
        "corpus. Lengths are numbers of characters, after 10 characters are added to each side. If more than 1% of "
        "the pairs differ by more than 2.2, these pairs are dropped, too. null: no limit.",
    )
    duplicates: bool = Field(default=True, description="Keep only the first of pairs that are identical on both sides.")
    duplicates_between: bool = Field(
        default=True,
        description="Among corpora with the same tags and target language, drop pairs that an earlier corpus of "
        "`data.train` contains. Requires `duplicates`.",
    )
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip",
        description="Treatment of pairs with invalid UTF-8. skip: drop and count them. error: stop at the first one.",
    )
    control_characters: bool = Field(
        default=True,
        description="Replace or remove control characters other than tabs, soft hyphens and needless invisible "
        "characters. Breaks of lines and pages become spaces. Drop pairs that consist of control characters to more "
        "than a tenth, such as binary data.",
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop pairs with a side that is mostly written in a script other than the scripts of that side.",
    )
    source_scripts: tuple[str, ...] = Field(
        default=(),
        description="Scripts of the source by ISO 15924 codes or Unicode's names (Latn, cyrillic, Jpan …); empty: "
        "those of `data.source_language`, or detected by `script_fraction` if it is not set.",
    )
    target_scripts: tuple[str, ...] = Field(
        default=(),
        description="Scripts of the target; empty: those of `data.target_language`, or detected by `script_fraction`.",
    )
    script_fraction: float = Field(default=0.1, gt=0.0, lt=1.0, description=_FRACTION.format("a side", "sentences"))
    copied_words: int | None = Field(
        default=3,
        ge=1,
        description="Drop pairs with identical sides if they contain at least this many words with letters. Shorter "
        "pairs are kept, because they may be names. null: keep all pairs.",
    )
    final_punctuation: bool = Field(
        default=False,
        description="Drop pairs of which only one side ends a sentence with a mark such as a full stop or a question "
        "mark, such as pairs with a side that is cut off. In some corpora, many good pairs differ in this respect.",
    )
    held_out: bool = Field(
        default=False,
        description="Drop pairs with a source or a target sentence of `data.valid` or `data.test`. Case, punctuation, "
        "spaces and numbers are ignored. Also applies if `enabled` is false, and always to sets that are held out "
        "(`data.held_out`).",
    )
    mismatched: bool = Field(
        default=False,
        description="Drop pairs whose sides are probably not translations of each other, such as the pairs of shifted "
        "lines. A word aligner scores the pairs, and the scores of artificial mismatches determine which scores are "
        "dropped: at most about 2% of the good pairs. Requires at least 1,000 pairs.",
    )
    aligner: Path | None = Field(
        default=None,
        description="Folder of the aligner that scores pairs for `mismatched`, as `dragoman align --save` writes it; "
        "null: an aligner is trained on the corpus. An aligner that was trained on the same corpus finds fewer "
        "mismatches than null.",
    )
    unescape: bool = _UNESCAPE

    @model_validator(mode="after")
    def _check_aligner(self) -> Self:
        if self.aligner is not None and not self.mismatched:
            raise ValueError("`aligner` scores pairs for `mismatched`: set mismatched: true, or remove aligner")
        return self

    @property
    def checks_mismatches(self) -> bool:
        """Whether pairs are dropped whose sides are probably not translations of each other."""
        return self.enabled and self.mismatched

    @property
    def checks_ratio(self) -> bool:
        """Whether length ratios are compared with the usual ratio of the corpus."""
        return self.enabled and self.max_ratio is not None


class TextCleaningConfig(BaseCleaningConfig):
    """Cleaning rules for plain-text documents. Disable single rules with false, and all rules with `enabled: false`.

    These are the rules for pairs that make sense for a single text. Documents are dropped as a whole.
    There is no length limit, because documents are divided.
    """

    side_scripts: ClassVar[tuple[str, ...]] = ("scripts",)

    enabled: bool = Field(default=True, description="Apply the cleaning rules. If false, invalid UTF-8 is an error.")
    empty: bool = Field(default=True, description="Drop blank documents.")
    duplicates: bool = Field(default=True, description="Keep only the first of identical documents.")
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip",
        description="Treatment of documents with invalid UTF-8. skip: drop and count them. error: stop at the first "
        "one.",
    )
    control_characters: bool = Field(
        default=True,
        description="Replace or remove control characters other than tabs and newlines, soft hyphens and needless "
        "invisible characters. Breaks of lines and pages become newlines. Drop documents of which a part consists of "
        "control characters to more than a tenth, such as binary data.",
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop documents if any part of up to 65,536 characters is mostly written in a script other "
        "than the scripts of the corpus.",
    )
    scripts: tuple[str, ...] = Field(
        default=(),
        description="Scripts of the corpus by ISO 15924 codes or Unicode's names (Latn, cyrillic, Jpan …); empty: "
        "those of `data.language`, or detected by `script_fraction` if it is not set.",
    )
    script_fraction: float = Field(default=0.1, gt=0.0, lt=1.0, description=_FRACTION.format("the corpus", "parts"))
    unescape: bool = _UNESCAPE
