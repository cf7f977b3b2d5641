"""Labelled corpora in settings: of texts, tagged sentences, questions, and trees."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from dragoman.base.settings.config import LIST, Config, by_form
from dragoman.text.symbols import Tag as TagName

Encoding = Literal["utf-8", "latin-1", "windows-1252"]

TextFormat = Literal["auto", "text", "tsv", "csv", "jsonl", "trec", "rte", "fasttext"]
"""Formats of labelled texts."""

Column = Annotated[int, Field(ge=1)] | Annotated[str, Field(min_length=1)]
"""A column, by number (counted from 1) or by name."""


class _FileConfig(Config):
    """A corpus in one file. In the settings, a path alone is a corpus with default settings."""

    path: Path = Field(
        description="File of the corpus; plain, .gz, .bz2, .xz or .zst. The path may continue into a .zip archive, "
        "as in rte.zip/rte/rte1_dev.xml."
    )
    name: str | None = Field(default=None, min_length=1, description="Name of the corpus in messages; null: its path.")

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str | Path) else value

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of the corpus."""
        return (self.path,)

    @property
    def selection(self) -> tuple[object, ...]:
        """All settings that determine what is read from the file, as part of the fingerprint."""
        return (type(self).__name__, self.model_dump_json(exclude={"path", "name"}))

    def __str__(self) -> str:
        return self.name or str(self.path)


class ColumnsConfig(Config):
    """The columns of a table, by name or by number, or the keys of JSON objects."""

    text: Column | None = Field(
        default=None,
        description="Column of the text, or of the first text of a pair: a name, a number counted from 1, or in jsonl "
        "a key. Dots separate the keys of nested objects. null: a well-known name such as sentence or premise. Without "
        "a header: column 1.",
    )
    pair: Column | None = Field(
        default=None,
        description="Column of the second text of a pair. null: if `text` is also null, a well-known name such as "
        "sentence2 or hypothesis.",
    )
    label: Column | None = Field(
        default=None,
        description="Column of the label. null: a well-known name such as label or score. Without a header: column 2 "
        "of 2, or column 3 of 3.",
    )
    id: Column | None = Field(
        default=None, description="Column of the identifier. null: a well-known name such as id or idx, if present."
    )


class LabelledCorpusConfig(_FileConfig):
    """Texts, or pairs of texts, with labels."""

    format: TextFormat = Field(
        default="auto",
        description="tsv: tab-separated columns without quoting, as in GLUE. csv: columns with quotes (RFC 4180). "
        "jsonl: one JSON object per line, including all tasks of SuperGLUE. trec: `COARSE:fine text`. rte: XML of the "
        "RTE challenges. fasttext: `__label__NAME text`. text: one text per line without a label. auto: determined "
        "from the file name or contents.",
    )
    columns: ColumnsConfig = Field(default=ColumnsConfig(), description="Columns of tsv and csv, or keys of jsonl.")
    header: bool | None = Field(
        default=None,
        description="Whether the first line of tsv and csv contains the names of the columns. null: it does if "
        "`columns` contains names or if at least two names are well known.",
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="Character that separates the columns of tsv and csv; null: a tab in tsv, a comma in csv.",
    )
    encoding: Encoding = Field(default="utf-8", description="Character encoding of all formats except rte.")
    level: Literal["coarse", "fine"] = Field(
        default="coarse",
        description="Label in trec. coarse: the part before the colon (LOC). fine: both parts (LOC:city).",
    )
    labels: dict[str, str] = Field(
        default={},
        description="New names of labels, as in {'0': negative, '1': positive}. All other labels remain as written.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> "LabelledCorpusConfig":
        columns = [column for column in self.columns.model_dump().values() if column is not None]
        if len(set(columns)) < len(columns):
            raise ValueError("two of `columns` are the same")
        if self.header is False and any(isinstance(column, str) for column in columns) and self.format != "jsonl":
            raise ValueError("`columns` contains names, but `header` is false: use column numbers")
        if self.format in ("text", "trec", "rte", "fasttext") and (
            columns or self.header is not None or self.separator
        ):
            raise ValueError(f"`columns`, `header` and `separator` cannot be used with the format {self.format}")
        return self


class TaggedCorpusConfig(_FileConfig):
    """Sentences with one word and its tags per line, and blank lines between sentences, as in the CoNLL tasks."""

    format: Literal["auto", "conll", "conllu"] = Field(
        default="auto",
        description="conll: columns separated by tabs or blanks. conllu: Universal Dependencies, whose multiword "
        "tokens (1-2) and empty nodes (1.1) are not words. auto: conllu for files named .conllu, and JSON Lines with "
        "tokens and ner_tags by their contents.",
    )
    word: int | None = Field(
        default=None, ge=1, description="Column of the word, counted from 1; null: 1 in conll, 2 in conllu."
    )
    tag: Annotated[int, Field(ge=1)] | Literal["last", "none"] | None = Field(
        default=None,
        description="Column of the gold tag, counted from 1, or last. none: the file has no gold tags. null: last in "
        "conll, 4 (universal part of speech) in conllu.",
    )
    features: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(), description="Further columns that the model may use, such as parts of speech, counted from 1."
    )
    comment: str | None = Field(
        default=None,
        min_length=1,
        description="Prefix of comment lines. null: # if the line has a different number of columns than the words, "
        "so that # may be a word.",
    )
    encoding: Encoding = Field(default="utf-8", description="Character encoding of the file.")


class QuestionCorpusConfig(_FileConfig):
    """Questions whose answers are parts of a context, in the JSON format of SQuAD 1.1 or 2.0.

    One JSON object per line with the keys id, question, context and answers is accepted as well.
    """


class TreebankCorpusConfig(_FileConfig):
    """Sentences with their constituency trees in brackets, as in the Penn Treebank.

    A tree may extend over several lines. Empty elements, functions such as -SBJ, and wrappers such as TOP are removed.
    """

    path: Path = Field(
        description="File of the treebank; plain, .gz, .bz2, .xz or .zst. The path may continue into a .zip archive. "
        "The file name may be a pattern for several files, as in treebank.zip/treebank/combined/wsj_00*.mrg."
    )
    format: Literal["auto", "trees", "text"] = Field(
        default="auto",
        description="trees: trees in brackets. text: sentences without trees, one per line, with spaces between the "
        "words. auto: trees if the file begins with a bracket that opens a tree.",
    )
    encoding: Encoding = Field(default="utf-8", description="Character encoding of the file.")
    weight: float = Field(
        default=1.0,
        gt=0,
        le=10_000,
        description="Number of passes over the treebank per epoch. 2: two passes. 0.5: a different half in each epoch.",
    )
    tag: TagName | None = Field(
        default=None,
        description="Tag such as wsj, which precedes each sentence in the input of the model, so that treebanks with "
        "different annotations can be learned together. null: none.",
    )


LabelledCorpora = Annotated[
    Annotated[LabelledCorpusConfig, Tag(LabelledCorpusConfig.__name__)]
    | Annotated[tuple[LabelledCorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(LabelledCorpusConfig),
]
"""One corpus of labelled texts, or a list of corpora, in settings."""

TaggedCorpora = Annotated[
    Annotated[TaggedCorpusConfig, Tag(TaggedCorpusConfig.__name__)]
    | Annotated[tuple[TaggedCorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(TaggedCorpusConfig),
]
"""One corpus of tagged sentences, or a list of corpora, in settings."""

QuestionCorpora = Annotated[
    Annotated[QuestionCorpusConfig, Tag(QuestionCorpusConfig.__name__)]
    | Annotated[tuple[QuestionCorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(QuestionCorpusConfig),
]
"""One corpus of questions, or a list of corpora, in settings."""

Treebanks = Annotated[
    Annotated[TreebankCorpusConfig, Tag(TreebankCorpusConfig.__name__)]
    | Annotated[tuple[TreebankCorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(TreebankCorpusConfig),
]
"""One treebank, or a list of treebanks, in settings."""
