"""Guided alignment against attention that is not supervised, and against the aligner that supervises it.

    python benchmarks/alignment/guided.py --text demo --minutes 4        # the embedded corpus, with its gold alignments
    python benchmarks/alignment/guided.py --text europarl-tatoeba --minutes 20    # 508 gold pairs; needs DRAGOMAN_DATA
    python benchmarks/alignment/guided.py --text europarl-tatoeba --updates 2000

Two models with the same settings are trained for the same time or, on a busy machine, for the same number of updates,
with cross-entropy and with guided alignment. The table
contains BLEU on the validation set, and the alignment error rate (AER) of forced decoding on the gold pairs: of the
mean of the heads of the penultimate layer, and of the supervised head. The aligner (`hmm`) is trained on the same
training pairs and on the gold pairs. The training text of europarl-tatoeba is that of corpora.py without its gold
pairs, and its last 500 pairs are the validation set.
"""

import argparse
import gzip
import os
from pathlib import Path
from typing import Any

from corpora import CORPORA, write_corpus

from dragoman import Translator, align, evaluate_alignments, train
from dragoman.addons.lecture.grammar.alignments import align_english_german
from dragoman.addons.lecture.grammar.corpus import generate
from dragoman.statistical.alignment.links import format_pharaoh


def main() -> None:
    """Train both models, unless they exist, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=["demo", "europarl-tatoeba"], default="demo")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--updates", type=int, help="number of updates instead of minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("guided-results"))
    arguments = parser.parse_args()
    folder = arguments.out / arguments.text
    folder.mkdir(parents=True, exist_ok=True)
    gold, pairs = (_demo if arguments.text == "demo" else _europarl)(folder)
    rows = {}
    for kind in ("cross_entropy", "guided_alignment"):
        run = folder / f"{kind}-{arguments.seed}"
        if not (run / "model.safetensors").exists():
            train(None, _settings(folder, run, kind, arguments))
        translator = Translator.load(run, engine="torch", precision=None)
        score = next(each for each in translator.meta.scores if each.metric == "BLEU")
        rows[kind] = _lines(translator.align(*pairs)), f"{score.value:.2f}"
    train_pairs = [(folder / f"train.{side}").read_text("utf-8").splitlines() for side in ("source", "target")]
    texts = [[*gold_side, *train_side] for gold_side, train_side in zip(pairs, train_pairs, strict=True)]
    rows["hmm"] = _lines(align(*texts, quiet=True).alignments[: len(gold)]), "–"
    print("| alignment by | AER | BLEU |\n| --- | ---: | ---: |")
    for name, (links, bleu) in rows.items():
        error_rate = evaluate_alignments(gold, links, quiet=True)["aer"]
        print(f"| {name} | {error_rate:.2f} | {bleu} |")


def _settings(folder: Path, run: Path, kind: str, arguments: argparse.Namespace) -> dict[str, Any]:
    corpora = {
        part: {"source": str(folder / f"{part}.source"), "target": str(folder / f"{part}.target")}
        for part in ("train", "valid")
    }
    objective = {"kind": kind}
    limit = {"max_minutes": arguments.minutes} if arguments.updates is None else {"max_steps": arguments.updates}
    training = {"objective": objective, **limit, "seed": arguments.seed}
    return {"data": corpora, "out": str(run), "train": training}


def _demo(folder: Path) -> tuple[list[str], tuple[list[str], list[str]]]:
    """Write the embedded corpus, and return the gold links and the sentences of its test set."""
    corpus = generate()
    for part, sentences in (("train", corpus.train), ("valid", corpus.valid)):
        for side, texts in (("source", [s.en for s in sentences]), ("target", [s.de for s in sentences])):
            (folder / f"{part}.{side}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    gold = [align_english_german(corpus.derivations[sentence]).pharaoh() for sentence in corpus.test]
    return gold, ([s.en for s in corpus.test], [s.de for s in corpus.test])


def _europarl(folder: Path) -> tuple[list[str], tuple[list[str], list[str]]]:
    """Write the German and English text, and return the gold links and pairs."""
    data = Path(os.environ["DRAGOMAN_DATA"])
    corpus = next(each for each in CORPORA if each.name == "europarl-tatoeba")
    write_corpus(corpus, data, folder)
    sides = [path.read_text("utf-8").splitlines() for path in corpus.paths(folder)]
    for side, lines in zip(("source", "target"), sides, strict=True):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines[:-1008]), "utf-8")
        (folder / f"valid.{side}").write_text("".join(f"{line}\n" for line in lines[-1008:-508]), "utf-8")
    gold = gzip.decompress((data / corpus.gold).read_bytes()).decode().rstrip("\n").split("\n")
    return gold, (sides[0][-508:], sides[1][-508:])


def _lines(alignments: Any) -> list[str]:
    return [format_pharaoh(links) for links in alignments]


if __name__ == "__main__":
    main()
