"""Statistical translation of Multi30k, English to German: dictionary, word-based and phrase-based models, and sil-thot.

    python benchmarks/statistical.py --out RUNS                # Multi30k under $DRAGOMAN_DATA
    python benchmarks/statistical.py --out RUNS --only phrase_based thot
    python benchmarks/statistical.py --out RUNS --only stacks  # speed and model score by the size of the stacks

Trains recipes/multi30k-phrase-based.yaml with each method, translates test_2016_flickr, and prints BLEU of the
lowercased, normalised, tokenised text (against the official test_2016_flickr.lc.norm.tok.de), cased sacreBLEU, and
processor seconds of training and translation.

thot: the phrase-based system of sil-machine 1.9 with sil-thot 3.5 and its own training (HMM, weights tuned on 1,000
pairs of the training corpus by the simplex method). It is trained on the same pairs, lowercased, normalised and
tokenised by sacremoses. Install both packages in a separate environment, and run this file with its Python and
`--only thot`, which does not import dragoman.
"""

import argparse
import gzip
import os
import time
from pathlib import Path

import sacrebleu
from sacremoses import MosesPunctNormalizer, MosesTokenizer

ROOT = Path(__file__).resolve().parents[1]
METHODS = ("dictionary", "word_based", "phrase_based")
TEST = "test_2016_flickr"


def lines(name: str) -> list[str]:
    """Return the lines of a file of Multi30k."""
    with gzip.open(Path(os.environ["DRAGOMAN_DATA"]) / "multi30k" / f"{name}.gz", "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def tokenised(texts: list[str], language: str) -> list[str]:
    """Return texts in the form of the official tokenised test set."""
    tokenizer, normalizer = MosesTokenizer(language), MosesPunctNormalizer(language)
    return [tokenizer.tokenize(normalizer.normalize(text.lower()), escape=True, return_str=True) for text in texts]


def bleu(hypotheses: list[str]) -> float:
    """Return BLEU of tokenised translations of the test set."""
    reference = lines(f"{TEST}.lc.norm.tok.de")
    return sacrebleu.corpus_bleu(hypotheses, [reference], tokenize="none", force=True).score


def run_method(method: str, out: Path) -> None:
    """Train a method of dragoman and score it on the test set."""
    import dragoman
    from dragoman.base.machine.device import use_threads

    use_threads(1)
    started = time.process_time()
    recipe = ROOT / "recipes" / "multi30k-phrase-based.yaml"
    if not (out / method).exists():
        dragoman.train(recipe, {"model.method.kind": method, "out": str(out / method), "threads": 1})
    trained = time.process_time()
    translator = dragoman.Translator.load(out / method, threads=1)
    loaded = time.process_time()
    hypotheses = translator.translate(lines(f"{TEST}.en"))
    translated = time.process_time()
    cased = sacrebleu.corpus_bleu(hypotheses, [lines(f"{TEST}.de")]).score
    report(method, bleu(tokenised(hypotheses, "de")), f"{cased:.2f}", trained - started, translated - loaded)


def run_stacks(out: Path) -> None:
    """Translate the test set with the phrase-based model and stacks of several sizes."""
    import dragoman

    translator = dragoman.Translator.load(out / "phrase_based", threads=1)
    print("| stack | total model score | lowercased tokenised BLEU | 1,000 sentences, CPU s |")
    print("| --- | --- | --- | --- |", flush=True)
    for stack in (1, 10, 50, 200, 500):
        started = time.process_time()
        found = translator.translate_nbest(lines(f"{TEST}.en"), translator.request(beam=stack))
        seconds = time.process_time() - started
        score = sum(best[0].score for best in found)
        quality = bleu(tokenised([best[0].text for best in found], "de"))
        print(f"| {stack} | {score:,.1f} | {quality:.2f} | {seconds:.1f} |", flush=True)


def run_thot(out: Path) -> None:
    """Train sil-machine's phrase-based system and score it on the test set."""
    from machine.corpora import TextFileTextCorpus
    from machine.translation.thot import (
        ThotSmtModel,
        ThotSmtModelTrainer,
        ThotSmtParameters,
        ThotWordAlignmentModelType,
    )

    folder = out / "thot"
    for name in ("tm", "lm"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        text = "".join(f"{line}\n" for line in tokenised(lines(f"train.{language}"), language))
        (folder / f"train.{language}").write_text(text, encoding="utf-8")
    sides = [TextFileTextCorpus(str(folder / f"train.{language}")) for language in ("en", "de")]
    parameters = ThotSmtParameters(
        translation_model_filename_prefix=str(folder / "tm" / "src_trg"),
        language_model_filename_prefix=str(folder / "lm" / "trg.lm"),
    )
    started = time.process_time()
    with ThotSmtModelTrainer(ThotWordAlignmentModelType.HMM, sides[0].align_rows(sides[1]), parameters) as trainer:
        trainer.train()
        trainer.save()
        parameters = trainer.parameters
    trained = time.process_time()
    with ThotSmtModel(ThotWordAlignmentModelType.HMM, parameters) as model:
        results = model.translate_batch(tokenised(lines(f"{TEST}.en"), "en"))
        hypotheses = [result.translation for result in results]
    report("thot", bleu(hypotheses), "–", trained - started, time.process_time() - trained)


def report(system: str, tokenised_bleu: float, cased: str, training: float, translation: float) -> None:
    """Print a row of the table."""
    print(f"| {system} | {tokenised_bleu:.2f} | {cased} | {training:.0f} | {translation:.1f} |", flush=True)


def main() -> None:
    """Run the chosen systems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the models")
    parser.add_argument("--only", nargs="+", choices=(*METHODS, "thot", "stacks"), default=list(METHODS))
    arguments = parser.parse_args()
    if arguments.only == ["stacks"]:
        run_stacks(arguments.out)
        return
    print("| system | lowercased tokenised BLEU | cased sacreBLEU | training, CPU s | 1,000 sentences, CPU s |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    for system in arguments.only:
        if system == "thot":
            run_thot(arguments.out)
        else:
            run_method(system, arguments.out)


if __name__ == "__main__":
    main()
