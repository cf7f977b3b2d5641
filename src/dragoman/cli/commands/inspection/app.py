"""`dragoman inspect`: the commands that show how a model computes its output."""

from dragoman.cli.command_group import CommandGroup, Reference

_FOLDER = "dragoman.cli.commands.inspection"
_FUNCTIONS = {
    name: f"{_FOLDER}.{name}:{name}"
    for name in (
        "attention",
        "heads",
        "lens",
        "relevance",
        "rollout",
        "alignment",
        "checkpoints",
        "lines",
        "tree",
        "curves",
    )
} | {
    "next": f"{_FOLDER}.next_tokens:next_tokens",
}

app = CommandGroup(
    "inspect",
    {name: Reference(function) for name, function in _FUNCTIONS.items()},
    help="Show how a model computes its output. `dragoman inspect MODEL TEXT` saves the attention weights.",
    examples=("dragoman inspect runs/en-de 'A dog runs.'",),
    default="attention",
)
