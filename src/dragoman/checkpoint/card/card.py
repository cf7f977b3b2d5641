"""The model card, which describes a model to its users (Mitchell et al. 2019, "Model Cards")."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dragoman.base.table import Table
from dragoman.checkpoint.card.architecture import architecture
from dragoman.checkpoint.card.languages import CardLanguages, Samples
from dragoman.checkpoint.card.markdown import UNKNOWN, without_folders
from dragoman.checkpoint.card.metadata import metadata
from dragoman.checkpoint.meta import Meta
from dragoman.models.kinds.registry import ModelKind, describe_kind

_NO_LICENCE = (
    f"{UNKNOWN}: ask its authors before you distribute it. Authors: add `license` to the metadata above, or set "
    "`data.licence` before training"
)


def model_card(
    meta: Meta,
    config: Mapping[str, Any],
    parameters: Mapping[str, int],
    samples: Samples = MappingProxyType({}),
) -> str:
    """Return the text of `README.md`: metadata for the Hugging Face Hub, and a description for readers.

    config: resolved settings of the run. parameters: number of values of each parameter, by name. samples: some texts
    of each side, from which the languages are detected if neither the settings nor the names of the files contain them.
    """
    section = config.get("model")
    model = section if isinstance(section, Mapping) else {}
    task = task_kind(config)
    kind = describe_kind(model, task)
    languages = CardLanguages.of(meta, config, kind, samples)
    between = languages.text(kind) or (" → ".join(kind.sides) if len(kind.sides) > 1 else "")
    title = f"# {kind.title[:1].upper()}{kind.title[1:]}" + (f", {between}" if between else "")
    several = len(meta.target_languages) > 1
    option, argument = (
        (f" --to {meta.target_languages[0]}", f', to="{meta.target_languages[0]}"') if several else ("", "")
    )
    use = (kind.example or kind.use).replace("{option}", option).replace("{argument}", argument)
    lines = [
        title,
        "",
        *Table([("", ""), *_facts(meta, model, kind, languages, sum(parameters.values())).items()]).markdown(),
        *_section("Architecture", architecture(model, parameters)),
        *_section("Scores", _scores(meta)),
        *_section("Data", _data(meta, config)),
        *_section("Use", [f"{use}. FOLDER is the folder of this file. All settings of the run are in `config.yaml`."]),
        *_section("Limits", _limits(meta, kind)),
        "",
    ]
    return "\n".join([*metadata(meta, config, kind, task, languages), "", without_folders("\n".join(lines), config)])


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *lines]


def _facts(
    meta: Meta, model: Mapping[str, Any], kind: ModelKind, languages: CardLanguages, count: int
) -> dict[str, str]:
    """Return the rows of the first table."""
    origin = (
        f"the mean of steps {', '.join(map(str, meta.averaged_steps))}" if meta.averaged_steps else f"step {meta.step}"
    )
    between = languages.text(kind)
    return {
        **({"Languages": f"{between}{languages.note}" if between else UNKNOWN} if kind.sides else {}),
        "Licence": meta.licence or _NO_LICENCE,
        **({"Parameters": f"{count:,}, {origin}"} if kind.has_updates else {"Values": f"{count:,}"}),
        **({"Tags of source texts": ", ".join(meta.tags)} if meta.tags else {}),
        **({"Distilled from": meta.teacher} if meta.teacher else {}),
        **({"Imported": meta.origin} if meta.origin else {}),
        **_word_vectors(meta, model),
        "Made with": ", ".join(f"{name} {number}" for name, number in meta.libraries.items()) or UNKNOWN,
    }


def _scores(meta: Meta) -> list[str]:
    if not meta.scores:
        return ["None recorded."]
    rows = [(score.metric, f"{score.value:.2f}", score.data, _code(score.signature)) for score in meta.scores]
    return Table([("metric", "value", "measured on", "signature"), *rows]).markdown()


def _data(meta: Meta, config: Mapping[str, Any]) -> list[str]:
    if not meta.data:
        return ["Not recorded."]
    pairs = sum(lengths.pairs for lengths in meta.lengths.values())
    size = ["", f"After cleaning, the model was trained on {pairs:,} sentence pairs."] if pairs else []
    held_out = any(isinstance(each, Mapping) and each.get("held_out") for each in _data_sections(config))
    note = [
        "",
        "Some of these data were held out for validation and testing before training (folder `held_out`). Nothing with "
        "the same text was trained on.",
    ]
    rows = ((name, _code(digest)) for name, digest in meta.data.items())
    return [*Table([("data set", "fingerprint"), *rows]).markdown(), *size, *(note if held_out else [])]


def _data_sections(config: Mapping[str, Any]) -> list[Any]:
    """Return the `data` sections of a run, and of its tasks if it has several."""
    tasks, auxiliary = config.get("tasks"), config.get("auxiliary_tasks")
    groups = [tasks, auxiliary.get("tasks") if isinstance(auxiliary, Mapping) else None]
    members = [each for group in groups if isinstance(group, Mapping) for each in group.values()]
    return [each.get("data") for each in (config, *members) if isinstance(each, Mapping)]


def _limits(meta: Meta, kind: ModelKind) -> list[str]:
    best = f"It {kind.activity} {kind.input} similar to its training data best"
    if meta.data:
        best = f"It was trained on the data above and {kind.activity} similar {kind.input} best"
    writes = not kind.abilities.isdisjoint({"translate", "generate"})
    measured = " The scores are those of the validation set, which selected the checkpoint." if meta.scores else ""
    return [
        f"{best}. Expect errors on other {kind.input}{', and wrong names and numbers on any text' if writes else ''}. "
        f"It has not been checked for bias.{measured if kind.has_updates else ''}"
    ]


def task_kind(config: Mapping[str, Any]) -> str | None:
    """Return the kind of the task of a run, or None if its settings do not state it."""
    task = config.get("task")
    return task.get("kind") if isinstance(task, Mapping) else None


def _word_vectors(meta: Meta, model: Any) -> dict[str, str]:
    """Return a row with the word-vector files that initialised the embeddings, as their licences affect the model's."""
    files = (isinstance(model, Mapping) and model.get("embeddings")) or {}
    sides = [
        f"{fraction:.1%} of the {side} from {files.get(side) or UNKNOWN}" for side, fraction in meta.embeddings.items()
    ]
    return {"Initial word vectors": ", ".join(sides)} if sides else {}


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
