"""The commands of the core: where each is, under the headings of `dragoman --help`."""

from collections.abc import Mapping

from dragoman.cli.command_group import Reference

_FOLDER = "dragoman.cli.commands"

SECTIONS: Mapping[str, Mapping[str, Reference]] = {
    "Training": {
        "train": Reference(f"{_FOLDER}.train:train", "Train a model."),
        "distill": Reference(f"{_FOLDER}.distill:distill", "Train a small model on the translations of a larger one."),
        "backtranslate": Reference(
            f"{_FOLDER}.backtranslate:backtranslate", "Generate training pairs from target-language text."
        ),
        "average": Reference(f"{_FOLDER}.average:average", "Average the parameters of several models."),
        "settings": Reference(f"{_FOLDER}.settings:settings", "List the settings of training runs."),
        "recipes": Reference(f"{_FOLDER}.recipes:recipes", "List, print or copy the recipes of published experiments."),
    },
    "Using a model": {
        "translate": Reference(f"{_FOLDER}.translate:translate", "Translate text line by line."),
        "generate": Reference(f"{_FOLDER}.generate:generate", "Continue texts with a language model."),
        "predict": Reference(f"{_FOLDER}.predict:predict", "Predict labels, tags, trees, answers or masked tokens."),
        "score": Reference(f"{_FOLDER}.score:score", "Compute the log-probability of given translations or texts."),
        "import": Reference(f"{_FOLDER}.import_:import_model", "Convert a model of another program to a model folder."),
        "export": Reference(f"{_FOLDER}.export:export", "Convert a model for another program."),
    },
    "Evaluating and inspecting": {
        "evaluate": Reference(
            f"{_FOLDER}.evaluation.app:app", "Evaluate translations, labels, language models or alignments."
        ),
        "compare": Reference(f"{_FOLDER}.compare:compare", "Compare systems that were trained with several seeds."),
        "tune": Reference(f"{_FOLDER}.tune:tune", "Find weights for reranking on a development set."),
        "inspect": Reference(f"{_FOLDER}.inspection.app:app", "Show how a model computes its output."),
        "describe": Reference(f"{_FOLDER}.describe:describe", "Show the parts, size and cost of a model."),
    },
    "Corpora and word alignments": {
        "data": Reference(
            f"{_FOLDER}.data:app",
            "Download a corpus, check it before training on it, or divide it into training, validation and test sets.",
        ),
        "align": Reference(f"{_FOLDER}.align:align", "Align the words of a parallel text."),
        "lexicon": Reference(f"{_FOLDER}.lexicon:lexicon", "Extract a bilingual dictionary from a parallel text."),
        "shortlist": Reference(
            f"{_FOLDER}.shortlist:shortlist", "Train a shortlist of probable translations per token."
        ),
    },
}
"""References by heading and name. The texts repeat the first sentences of the docstrings, so that `dragoman --help`
imports no command."""

COMMANDS: Mapping[str, Reference] = {name: each for section in SECTIONS.values() for name, each in section.items()}
