"""Speed, scores and coverage of translations with a shortlist and without one, alternately in one process.

    python benchmarks/shortlist.py MODEL SOURCE REFERENCE [--precision int8] [--turns 5] [--lines 1000]

MODEL is a model folder with a shortlist (`dragoman shortlist`), which is translated by the native engine on one thread.
In each turn, all lines are translated greedily and with a beam of 5, and the first sentences one by one, with the
shortlist and without it; the order is reversed every second turn. Printed: the median CPU times, the median ratio of
the turns, BLEU, the number of lines that differ, the mean size of the shortlists, and the percentages of the tokens of
the reference and of the ordinary translation that they contain.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from numpy.typing import NDArray
from sacrebleu import corpus_bleu

from dragoman import Translator
from dragoman.data.corpora.inputs import load_lines
from dragoman.statistical.alignment.shortlist import Shortlist
from dragoman.text.tokenizer import Tokenizer

CASES = (("greedy", 1, False), ("beam 5", 5, False), ("beam 5, one sentence at a time", 5, True))


def translated(translator: Translator, texts: Sequence[str], beam: int, shortlist: bool, single: bool) -> list[str]:
    """Return the translations of the texts, all together or one at a time."""
    request = translator.request(beam=beam, search={"shortlist": shortlist})
    groups = [[text] for text in texts] if single else [texts]
    return [text for group in groups for text in translator.translate(group, requests=request)]


def coverage(tokenizer: Tokenizer, shortlists: Sequence[NDArray[np.int32]], targets: Sequence[str]) -> float:
    """Return the percentage of the targets' tokens that are in the shortlists."""
    counts = [0, 0]
    for allowed, ids in zip([set(each.tolist()) for each in shortlists], tokenizer.encode_batch(targets), strict=True):
        counts[0] += sum(token in allowed for token in ids)
        counts[1] += len(ids)
    return 100 * counts[0] / max(counts[1], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--precision", default="int8", choices=["float32", "int8"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    sources, references = (load_lines(path)[: given.lines] for path in (given.source, given.reference))
    translator = Translator.load(given.model, "cpu", engine="native", precision=given.precision, threads=1)
    tokenizers = translator.tokenizers
    stored = Shortlist.load(given.model, tokenizers.sizes)
    if stored is None:
        parser.error(f"{given.model} has no shortlist: dragoman shortlist {given.model} --source FILE --target FILE")
    ids = zip(tokenizers.source.encode_batch(sources), tokenizers.target.encode_batch(sources), strict=True)
    shortlists = [stored.tokens(source, copied) for source, copied in ids]
    size = mean(map(len, shortlists))
    print(f"{given.precision}; vocabulary of {tokenizers.target.size:,}; shortlists of {size:.0f} tokens on average")
    print(f"{coverage(tokenizers.target, shortlists, references):.2f}% of the tokens of the reference are covered")
    print("| search | CPU time without, with, s | ratio | BLEU without, with | lines that differ | covered |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, beam, single in CASES:
        texts = sources[: given.sentences] if single else sources
        seconds: dict[bool, list[float]] = {False: [], True: []}
        outputs: dict[bool, list[str]] = {}
        for turn in range(-1, given.turns):  # the first turn is a warm-up
            for shortlist in (False, True) if turn % 2 else (True, False):
                began = time.process_time()
                outputs[shortlist] = translated(translator, texts, beam, shortlist, single)
                if turn >= 0:
                    seconds[shortlist].append(time.process_time() - began)
        ratio = median(without / with_it for without, with_it in zip(seconds[False], seconds[True], strict=True))
        scores = [corpus_bleu(outputs[each], [references[: len(texts)]]).score for each in (False, True)]
        differing = sum(one != other for one, other in zip(outputs[False], outputs[True], strict=True))
        covered = coverage(tokenizers.target, shortlists[: len(texts)], outputs[False])
        times = [median(seconds[each]) for each in (False, True)]
        print(
            f"| {name} | {times[0]:.2f}, {times[1]:.2f} | {ratio:.2f} | {scores[0]:.2f}, {scores[1]:.2f} | "
            f"{differing} of {len(texts)} | {covered:.2f}% |",
            flush=True,
        )


if __name__ == "__main__":
    main()
