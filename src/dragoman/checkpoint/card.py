"""The model card, which describes a model to its users (Mitchell et al. 2019, "Model Cards")."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.checkpoint.meta import Meta
from dragoman.models.kinds import describe_kind

UNKNOWN = "not stated"


def model_card(meta: Meta, config: Mapping[str, Any], parameters: int) -> str:
    """Return the text of `README.md`. config: resolved settings of the run. parameters: number of parameters."""
    targets = ", ".join(meta.target_languages) or meta.target_language
    model = config.get("model")
    kind = describe_kind(model if isinstance(model, Mapping) else {}, task_kind(config))
    languages = kind.languages(meta.source_language, targets)
    origin = (
        f"the mean of steps {', '.join(map(str, meta.averaged_steps))}" if meta.averaged_steps else f"step {meta.step}"
    )
    facts = {
        **({"Languages": languages or UNKNOWN} if kind.sides else {}),
        "Licence": meta.licence or f"{UNKNOWN}: ask its authors before you distribute it",
        **({"Parameters": f"{parameters:,}, {origin}"} if kind.has_updates else {"Values": f"{parameters:,}"}),
        **(_architecture(model) if isinstance(model, Mapping) else {"Architecture": UNKNOWN}),
        **({"Tags of source texts": ", ".join(meta.tags)} if meta.tags else {}),
        **({"Distilled from": meta.teacher} if meta.teacher else {}),
        **({"Imported": meta.origin} if meta.origin else {}),
        **_word_vectors(meta, model),
        "Made with": ", ".join(f"{name} {number}" for name, number in meta.libraries.items()) or UNKNOWN,
    }
    between = languages or (" → ".join(kind.sides) if len(kind.sides) > 1 else "")
    title = f"# {kind.title[:1].upper()}{kind.title[1:]}" + (f", {between}" if between else "")
    lines = [title, "", *table(("", ""), facts.items()), "", "## Scores", ""]
    if meta.scores:
        rows = [(score.metric, f"{score.value:.2f}", score.data, _code(score.signature)) for score in meta.scores]
        lines += table(("metric", "value", "measured on", "signature"), rows)
    else:
        lines += ["None recorded."]
    lines += ["", "## Data", ""]
    if meta.data:
        lines += table(("data set", "fingerprint"), ((name, _code(digest)) for name, digest in meta.data.items()))
    else:
        lines += ["Not recorded."]
    several = len(meta.target_languages) > 1
    option, argument = (
        (f" --to {meta.target_languages[0]}", f', to="{meta.target_languages[0]}"') if several else ("", "")
    )
    use = (kind.example or kind.use).replace("{option}", option).replace("{argument}", argument)
    best = f"It {kind.activity} {kind.input} similar to its training data best"
    if meta.data:
        best = f"It was trained on the data above and {kind.activity} similar {kind.input} best"
    writes = not kind.verbs.isdisjoint({"translate", "generate"})
    lines += [
        "",
        "## Use",
        "",
        f"{use}. All settings of the training run are in `config.yaml`.",
        "",
        f"{best}. Expect errors on other {kind.input}{', and wrong names and numbers on any text' if writes else ''}. "
        "It has not been checked for bias.",
        "",
    ]
    return "\n".join(lines)


def task_kind(config: Mapping[str, Any]) -> str | None:
    """Return the kind of the task of a run, or None if its settings do not state it."""
    task = config.get("task")
    return task.get("kind") if isinstance(task, Mapping) else None


def with_section(card: str, title: str, lines: Sequence[str]) -> str:
    """Return a card with a section. It replaces the section of this title, or else precedes the section `Use`."""
    heading, following = f"## {title}", "## Use"
    existing = card.splitlines()
    start = existing.index(heading) if heading in existing else None
    if start is not None:
        rest = existing[start + 1 :]
        end = next((number for number, line in enumerate(rest, start + 1) if line.startswith("## ")), len(existing))
        before, after = existing[:start], existing[end:]
    elif following in existing:
        place = existing.index(following)
        before, after = existing[:place], existing[place:]
    else:
        before, after = [*existing, ""], []
    return "\n".join([*before, heading, "", *lines, "", *after]).rstrip("\n") + "\n"


def _word_vectors(meta: Meta, model: Any) -> dict[str, str]:
    """Return a row with the word-vector files that initialised the embeddings, as their licences affect the model's."""
    files = (isinstance(model, Mapping) and model.get("embeddings")) or {}
    sides = [f"{share:.1%} of the {side} from {files.get(side) or UNKNOWN}" for side, share in meta.embeddings.items()]
    return {"Initial word vectors": ", ".join(sides)} if sides else {}


def _architecture(model: Mapping[str, Any]) -> dict[str, str]:
    """Return a row with the simple settings of the model, and a row for each of its parts, such as the encoder."""
    simple = {name: value for name, value in model.items() if not isinstance(value, Mapping)}
    parts = {name: value for name, value in model.items() if isinstance(value, Mapping)}
    rows = {"Architecture": _outline(simple)}
    for name, part in parts.items():
        if outline := _outline(part):
            rows[f"– {name.replace('_', ' ')}"] = outline
    return rows


def _outline(part: Mapping[str, Any]) -> str:
    """Return the kind of a part of the model and its other settings that are not null, as one text."""
    settings = []
    for name, value in part.items():
        if isinstance(value, Mapping):
            outline = _outline(value)
            if outline:
                settings.append(
                    f"{name} {outline}" if "kind" in value and "," not in outline else f"{name} ({outline})"
                )
        elif value is not None and name != "kind":
            settings.append(f"{name} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join([*([str(part["kind"])] if part.get("kind") is not None else []), *settings])


def table(header: tuple[str, ...], rows: Any) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    ]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
