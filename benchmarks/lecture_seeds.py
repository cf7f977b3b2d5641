"""What the lecture's pages measure of trained models, over several seeds.

    python benchmarks/lecture_seeds.py --seeds 20 --out seeds.jsonl     # about three CPU minutes per seed
    python benchmarks/lecture_seeds.py --report seeds.jsonl

Each seed trains the models of `docs/lecture/lecture_code/models.py` in a new folder and runs the blocks of the pages,
without their assertions, which are about seed 1. --first: the first seed, to divide the seeds among processes, whose
files the report reads together. Printed: mean, standard deviation, smallest and largest value of each quantity.
"""

import argparse
import ast
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

LECTURE = Path(__file__).parents[1] / "docs" / "lecture"
sys.path.append(str(LECTURE))

from lecture_code import models  # noqa: E402

QUANTITIES: dict[str, dict[str, str]] = {
    "alignment": {
        "AER of attention, predicting step": "error_rate(attention)",
        "AER of attention, reading step": "error_rate(reading)",
        "AER of attention, reading step, moved by one word": "error_rate(shifted)",
        "percentage of wrong links, all words": "100 * overall",
        "percentage of wrong links, titles": "100 * titles",
    },
    "heads": {
        "subject, best head": "found['subject'][0]",
        "object, best head": "found['object'][0]",
        "determiner, best head": "found['determiner'][0]",
        "cross-attention of layer 2, mean of the heads": "shares[2, 'mean']",
        "cross-attention, worst head": "min(shares.values())",
        "cross-attention, best": "max(shares.values())",
        "change of ln p without the best head": "one[0]",
        "translations of 12 that change without the best head": "one[1]",
        "change of ln p without layer 2": "all_four[0]",
        "translations of 12 that change without layer 2": "all_four[1]",
    },
    "trees": {
        "F1, attention": "attention",
        "F1, positions only": "results['positions only']",
        "F1, random trees": "results['random']",
        "chosen layer": "best + 1",
        "F1, attention − positions only": "attention - results['positions only']",
    },
    "probing": {
        "part of speech, embeddings": "speech[2]",
        "part of speech, layer 1": "speech[3]",
        "part of speech, layer 2": "speech[4]",
        "number, embeddings": "number[2]",
        "number, layer 1": "number[3]",
        "number, layer 2": "number[4]",
        "tense, embeddings": "tense[2]",
        "tense, layer 1": "tense[3]",
        "tense, layer 2": "tense[4]",
    },
    "learned-positions": {
        "length of the vectors 0 and 1": "float(encoder_before[:2].norm(dim=1).mean())",
        "length of the vectors 20 to 63": "float(encoder_before[20:].norm(dim=1).mean())",
        **{f"perplexity, moved by {shift}": f"perplexities[{shift}]" for shift in (0, 1, 2, 4, 8, 12, 20, 40)},
        "explained by distance, encoder": "shares['encoder']",
        "explained by distance, decoder": "shares['decoder']",
        "explained by distance, decoder, not trained": "shares['decoder, not trained']",
        "similarity of neighbours, decoder": "np.diag(similarities['decoder'], 1).mean()",
        "similarity of neighbours, encoder": "np.diag(similarities['encoder'], 1).mean()",
    },
    "history": {
        "BLEU, Transformer": "scores['transformer']",
        "matched words, Transformer, percent": "words['transformer']",
        "matched sequences of four, Transformer, percent": "fours['transformer']",
        "translates the example correctly": "outputs['transformer'][ship] == 'Wir werden kein Schiff mieten.'",
    },
    "n-grams": {
        **{
            f"perplexity, {part}": f"table['Transformer']['{part}']" for part in ("training", "new", "new combinations")
        },
        "training / counting time": "training / counting",
    },
    "next-word": {
        "entropy, The old": "entropies[0]",
        "entropy, My grandfather has": "entropies[1]",
        "'to' is the most probable word": "dragoman.next_tokens(model, prompts[1], count=1).tokens[0] == 'to'",
        "words of top-p 0.9, The old": "kept[0]",
        "words of top-p 0.9, My grandfather has": "kept[1]",
        **{f"familiar pairs, {name}": f"shares['{name}']" for name in ("T = 0.6", "T = 1", "T = 2", "T = 2, top-k 5")},
        **{
            f"different sentences of 200, {name}": f"len(set(written['{name}']))"
            for name in ("greedy", "T = 0.6", "T = 1", "T = 2", "T = 2, top-k 5")
        },
    },
    "bottleneck": {
        **{
            f"{name}, {length} symbols": f"float(correct['{name}'][{length}].mean())"
            for name in ("copying, no attention", "copying, attention")
            for length in (2, 4, 6, 8, 10, 12)
        },
        "copying, first of 12": "float(first)",
        "copying, last of 12": "float(last)",
        "reversing, last of the source": "float(backwards[0])",
        "recall, worst of the last two": "float(answers[-2:].min())",
        "recall, best of the first six": "float(answers[:6].max())",
        "probe, untrained, last": "float(untrained[-1])",
        "probe, untrained, first": "float(untrained[0])",
        "probe, copier, first": "float(copier[0])",
        "probe, copier, last": "float(copier[-1])",
    },
    "gradients": {
        "factor, trained GRU, no attention": "trained[False][0]",
        "factor, trained GRU, attention": "trained[True][0]",
        "norm at 80 symbols, no attention": "trained[False][1][-1]",
        "norm at 80 symbols, attention": "trained[True][1][-1]",
    },
    "do-you-want-a-transformer": {
        "BLEU, from scratch": "bleu['from scratch']",
        "BLEU, pre-trained": "bleu['pre-trained']",
    },
}
"""Expressions that are evaluated after the blocks of a page, by page and quantity."""

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class _OneSeed(ast.NodeTransformer):
    """Remove assertions, and the loops over seeds that pages have of their own."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "SEEDS":
            node.value = ast.parse("range(2)", mode="eval").body  # two, for standard deviations
        return node


def measured(page: str, seed: int) -> dict[str, float]:
    """Run a page in the current folder and return its quantities."""
    torch.manual_seed(seed)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in BLOCK.findall((LECTURE / f"{page}.md").read_text(encoding="utf-8")):
        tree = ast.fix_missing_locations(_OneSeed().visit(ast.parse(code)))
        with contextlib.redirect_stdout(None):
            exec(compile(tree, page, "exec"), names)
    return {quantity: float(eval(expression, names)) for quantity, expression in QUANTITIES[page].items()}


def report(files: list[Path]) -> None:
    """Print the table of all seeds in the files."""
    values: dict[tuple[str, str], dict[int, float]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for quantity, value in row["values"].items():
                values.setdefault((row["page"], quantity), {})[row["seed"]] = value
    print("| page | quantity | mean | standard deviation | smallest | largest | seeds |\n|" + " --- |" * 7)
    for (page, quantity), by_seed in values.items():
        each = list(by_seed.values())
        spread = statistics.stdev(each) if len(each) > 1 else 0.0
        digits = ".3f" if max(map(abs, each)) < 10 else ".1f"
        shown = (format(value, digits) for value in (statistics.mean(each), spread, min(each), max(each)))
        print(f"| {page} | {quantity} | " + " | ".join(shown) + f" | {len(each)} |")


def main() -> None:
    """Measure or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--pages", nargs="*", default=list(QUANTITIES))
    parser.add_argument("--out", type=Path, default=Path("seeds.jsonl"))
    parser.add_argument("--report", type=Path, nargs="*")
    arguments = parser.parse_args()
    if arguments.report:
        report(arguments.report)
        return
    torch.set_num_threads(1)
    out = arguments.out.resolve()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        models.SEED = seed
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for page in arguments.pages:
                start = os.times().user
                row = {"seed": seed, "page": page, "values": measured(page, seed), "cpu": os.times().user - start}
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
