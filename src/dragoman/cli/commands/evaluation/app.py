"""`dragoman evaluate`: one command for each kind of output that is evaluated."""

from dragoman.cli.command_group import CommandGroup, Reference

_FOLDER = "dragoman.cli.commands.evaluation"

app = CommandGroup(
    "evaluate",
    {
        "translations": Reference(f"{_FOLDER}.translations:translations"),
        "labels": Reference(f"{_FOLDER}.labels:labels"),
        "outputs": Reference(f"{_FOLDER}.outputs:outputs"),
        "perplexity": Reference(f"{_FOLDER}.perplexity:perplexity"),
        "pairs": Reference(f"{_FOLDER}.pairs:pairs"),
        "alignments": Reference(f"{_FOLDER}.alignments:alignments"),
        "sheet": Reference(f"{_FOLDER}.sheet:sheet"),
        "judgements": Reference(f"{_FOLDER}.judgements:judgements"),
        "precision-cost": Reference(f"{_FOLDER}.precision_cost:precision_cost"),
    },
    help="Evaluate translations, labels, language models or alignments. `dragoman evaluate MODEL` scores translations.",
    examples=(
        "dragoman evaluate runs/en-de --source test.en --reference test.de",
        "dragoman evaluate labels runs/sentiment --test reviews.tsv",
    ),
    default="translations",
)
