"""`dragoman inspect tree`: the hypotheses that a beam search considers, as a picture."""

from typing import Annotated

import typer

from dragoman.cli.groups import grouped
from dragoman.cli.inspection.options import AnalysedText, FigureFile, ModelOptions
from dragoman.cli.options import Beam, LengthPenalty, Model, split_tags


@grouped
def tree(
    model: Model,
    text: AnalysedText,
    options: ModelOptions,
    out: FigureFile,
    beam: Beam = None,
    nbest: Annotated[int, typer.Option("--nbest", min=1, help="Number of translations below the tree.")] = 1,
    length_penalty: LengthPenalty = None,
) -> None:
    """Draw the hypotheses of a beam search by step and rank, with the best translation and the greedy path."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.files import check_new_files
    from dragoman.inspect.figures.search_tree import search_tree
    from dragoman.translation.translator import Translator
    from dragoman.translation.tree import tree_of

    check_new_files({"--out": out})
    loaded = options.load(model)
    if not isinstance(loaded, Translator):
        raise ConfigError(f"{model} does not translate: only translation models have a search tree")
    request = loaded.request(
        beam=beam,
        nbest=nbest,
        length_penalty=length_penalty,
        search={"tree": True},
        to=options.to,
        tags=split_tags(options.tags),
        divide=False,
    )
    (translations,) = loaded.translate_nbest([text], request)
    search_tree(tree_of(1, text, translations)).write(out)
