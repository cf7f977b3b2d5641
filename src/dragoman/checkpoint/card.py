"""The model card: what a stranger should know before using a model (Mitchell et al. 2019, "Model Cards")."""

from collections.abc import Mapping
from typing import Any

from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.uses import USES

UNKNOWN = "not stated"


def model_card(meta: Meta, config: Mapping[str, Any], parameters: int) -> str:
    """Markdown for `README.md`. config: the run's resolved settings; parameters: how many values were trained."""
    targets = ", ".join(meta.target_languages) or meta.target_language
    model = config.get("model")
    kind = model.get("kind") if isinstance(model, Mapping) else None
    alone = kind == "decoder_only"  # it reads no source
    languages = (targets or UNKNOWN) if alone else f"{meta.source_language or 'source'} → {targets or 'target'}"
    origin = (
        f"the mean of steps {', '.join(map(str, meta.averaged_steps))}" if meta.averaged_steps else f"step {meta.step}"
    )
    facts = {
        "Languages": languages if meta.source_language or targets else UNKNOWN,
        "Licence": meta.licence or f"{UNKNOWN}: ask whoever trained it before passing it on",
        "Parameters": f"{parameters:,}, {origin}",
        "Architecture": ", ".join(_outline(model)) if isinstance(model, Mapping) else UNKNOWN,
        **({"Tags of source texts": ", ".join(meta.tags)} if meta.tags else {}),
        **({"Distilled from": meta.teacher} if meta.teacher else {}),
        **_word_vectors(meta, model),
        "Made with": ", ".join(f"{name} {number}" for name, number in meta.libraries.items()) or UNKNOWN,
    }
    name = USES["decoder_only" if alone else "encoder_decoder"].name.capitalize()
    title = f"# {name}, {languages}" if targets or not alone else f"# {name}"
    lines = [title, "", *_table(("", ""), facts.items()), "", "## Scores", ""]
    if meta.scores:
        rows = [(score.metric, f"{score.value:.2f}", score.data, _code(score.signature)) for score in meta.scores]
        lines += _table(("metric", "value", "measured on", "signature"), rows)
    else:
        lines += ["None recorded."]
    lines += ["", "## Data", ""]
    if meta.data:
        lines += _table(("data set", "fingerprint"), ((name, _code(print_)) for name, print_ in meta.data.items()))
    else:
        lines += ["Not recorded."]
    several = len(meta.target_languages) > 1
    option, argument = (
        (f" --to {meta.target_languages[0]}", f', to="{meta.target_languages[0]}"') if several else ("", "")
    )
    if alone:
        command = "`dragoman generate FOLDER --prompt TEXT`"
        python = "`dragoman.LanguageModel.load(FOLDER).generate([…])`"
    else:
        command = f"`dragoman translate FOLDER{option} < source.txt > target.txt`"
        python = f"`dragoman.Translator.load(FOLDER).translate([…]{argument})`"
    verb = "continues" if alone else "translates"
    lines += [
        "",
        "## Use",
        "",
        f"{command}, or in Python {python}. All settings of the training run are in `config.yaml`.",
        "",
        f"It has learned from the data above and {verb} text like it best; expect errors elsewhere, and wrong names "
        "and numbers anywhere. Nobody has checked it for bias.",
        "",
    ]
    return "\n".join(lines)


def _word_vectors(meta: Meta, model: Any) -> dict[str, str]:
    """Where embeddings come from that this run did not learn itself: their licence is part of the model's."""
    files = (isinstance(model, Mapping) and model.get("embeddings")) or {}
    sides = [f"{share:.1%} of the {side} from {files.get(side) or UNKNOWN}" for side, share in meta.embeddings.items()]
    return {"Word vectors to begin with": ", ".join(sides)} if sides else {}


def _outline(model: Mapping[str, Any]) -> list[str]:
    """`model`'s plain values by name, those of its groups with the group's name before."""
    found = []
    for name, value in model.items():
        if isinstance(value, Mapping):
            found += [f"{name}.{part}" for part in _outline(value)]
        elif value is not None:
            found.append(f"{name} {value}")
    return found


def _table(header: tuple[str, ...], rows: Any) -> list[str]:
    lines = [header, ("---",) * len(header), *rows]
    return [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    ]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
