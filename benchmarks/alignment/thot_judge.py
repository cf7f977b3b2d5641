"""Aligns a text with sil-thot: `thot_judge.py METHOD SOURCE TARGET OUT SEED`, with the interpreter that has sil-thot.

Writes OUT.forward (each target word has at most one link) and OUT.reverse, both as source-target links from 0. The
numbers of iterations are 5 for each of the models of a chain (IBM 1; IBM 1 and 2; IBM 1 and HMM), 5 for fast_align, and
its own schedule for EFLOMAL. The positions of IBM model 2 depend on both lengths, as in the paper. By default, those of
sil-thot depend only on the length of the source (`ibm2-compact`).
"""

import sys
from pathlib import Path

import thot

alignment = thot.alignment
_CHAINS = {
    "ibm1": (alignment.Ibm1AlignmentModel,),
    "ibm2": (alignment.Ibm1AlignmentModel, alignment.Ibm2AlignmentModel),
    "ibm2-compact": (alignment.Ibm1AlignmentModel, alignment.Ibm2AlignmentModel),
    "hmm": (alignment.Ibm1AlignmentModel, alignment.HmmAlignmentModel),
    "fast_align": (alignment.FastAlignModel,),
    "eflomal": (alignment.EflomalAlignmentModel,),
}


def train(method, source, target, seed):
    """Train the chain of a method on a text. Returns the last model."""
    model = None
    for kind in _CHAINS[method]:
        model = kind() if model is None else kind(model)
        if model.num_sentence_pairs == 0:
            for pair in zip(source, target, strict=True):
                model.add_sentence_pair(*pair)
        if kind is alignment.Ibm2AlignmentModel:
            model.compact_alignment_table = method == "ibm2-compact"
        if method == "eflomal":
            model.seed, model.deterministic = seed, True
        model.start_training()
        for _ in range(model.scheduled_iterations if method == "eflomal" else 5):
            model.train()
        model.end_training()
    return model


def links(model, source, target):
    """Return the links of each pair, as (source word, target word)."""
    aligned = model.get_best_alignments(source, target)
    return [list(zip(*(axis.tolist() for axis in matrix.to_numpy().nonzero()), strict=True)) for _, matrix in aligned]


def main():
    """Align both directions."""
    method, source_path, target_path, out = sys.argv[1:5]
    seed = int(sys.argv[5])
    source, target = (
        [line.split() for line in Path(path).read_text("utf-8").rstrip("\n").split("\n")]
        for path in (source_path, target_path)
    )
    forward = links(train(method, source, target, seed), source, target)
    reverse = [[(i, j) for j, i in pairs] for pairs in links(train(method, target, source, seed), target, source)]
    for name, aligned in (("forward", forward), ("reverse", reverse)):
        lines = (" ".join(f"{i}-{j}" for i, j in sorted(pairs)) for pairs in aligned)
        Path(f"{out}.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")


main()
