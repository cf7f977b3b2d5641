"""Speed of models that predict labels: dragoman's engines, PyTorch, Transformers and ONNX Runtime, alternately.

    python benchmarks/prediction.py test.tsv.gz --bert HUGGING_FACE_FOLDER

Measured, with tokenisation: the latency of single sentences of 20 words (ms: median and 95th percentile), and texts per
second for all lines of a file, as the median of the turns. The presets have random weights and a vocabulary that is
learned from the file, and predict one of two classes. With --bert, a folder of a BertModel is imported, and vectors of
texts are computed instead: also by Transformers and, if onnxruntime and onnx are installed, by ONNX Runtime in float32
and in int8 (dynamic quantisation), both with the tokenizer of Transformers, on batches of texts of similar length. The
largest difference from the first engine is printed: of a probability, or of a component of a vector.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman import Predictor, import_model
from dragoman.base.errors import DragomanError
from dragoman.data.corpora.inputs import read_lines
from dragoman.inference.prediction.outputs import length_batches
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.native.build import best_library
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, VocabularySizes, train_tokenizers

Contender = Callable[[Sequence[str]], np.ndarray]
"""Returns the probabilities of the classes, or the vector, of each text."""
WORDS = 20
"""Number of words of single sentences."""
ENGINES = (("torch", "float32"), ("native", "float32"), ("native", "int8"))


def classifiers(preset: str, tokenizer: Tokenizer) -> dict[str, Contender]:
    """Return a classifier of a preset with random weights for each engine."""
    head = {"kind": "classification", "labels": ["no", "yes"]}
    config = EncoderOnlyConfig.model_validate({"preset": preset, "head": head})
    torch.manual_seed(1)
    model = config.build_for(VocabularySizes(tokenizer.size, tokenizer.size)).eval()

    def contender(name: str, precision: str) -> Contender:
        predictor = Predictor(model, tokenizer, config.head, engine=name, precision=precision)

        def predict(texts: Sequence[str]) -> np.ndarray:
            return np.array([list(each.as_json()["probabilities"].values()) for each in predictor.predict(texts)])

        return predict

    return {" ".join(engine): contender(*engine) for engine in ENGINES}


def bert_contenders(folder: Path, place: Path, threads: int) -> dict[str, Contender]:
    """Return the engines and programs that compute vectors with a BERT model of Hugging Face."""
    ours = import_model(folder, place / "ours", quiet=True)
    found: dict[str, Contender] = {}
    for name, precision in ENGINES:
        found[f"{name} {precision}"] = Predictor.load(ours, "cpu", engine=name, precision=precision).vectors
    if find_spec("transformers") is None:
        return found
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def states(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            result = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return result.last_hidden_state.numpy()  # type: ignore[no-any-return]

    found["transformers float32"] = pooled(tokenizer, states)
    if find_spec("onnxruntime") and find_spec("onnx"):
        for precision, session in sessions(folder, place, threads).items():
            found[f"onnxruntime {precision}"] = pooled(
                tokenizer, lambda ids, mask, session=session: session.run(None, {"ids": ids, "mask": mask})[0]
            )
    return found


def pooled(tokenizer: Any, states: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Contender:
    """Return a function that computes the mean of the states of each text, scaled to length 1."""

    def vectors(texts: Sequence[str]) -> np.ndarray:
        encoded = tokenizer(list(texts), truncation=True)["input_ids"]
        result: list[Any] = [None] * len(encoded)
        for rows in length_batches([len(ids) for ids in encoded], 4096):
            longest = max(len(encoded[row]) for row in rows)
            ids, mask = (np.zeros((len(rows), longest), np.int64) for _ in range(2))
            for index, row in enumerate(rows):
                ids[index, : len(encoded[row])], mask[index, : len(encoded[row])] = encoded[row], 1
            means = (states(ids, mask) * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            for row, mean in zip(rows, means, strict=True):
                result[row] = mean / np.linalg.norm(mean)
        return np.stack(result)

    return vectors


def sessions(folder: Path, place: Path, threads: int) -> dict[str, Any]:
    """Return ONNX Runtime's session of the exported model in each precision."""
    import onnxruntime
    import transformers
    from onnxruntime.quantization import quantize_dynamic

    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state  # type: ignore[no-any-return]

    ids, mask = torch.full((2, 9), 5), torch.ones(2, 9, dtype=torch.int64)
    mask[1, 5:] = 0  # otherwise the exporter leaves the mask out
    axes = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask", "states")}
    names: dict[str, Any] = {"input_names": ["ids", "mask"], "output_names": ["states"]}
    paths = {"float32": place / "float32.onnx", "int8": place / "int8.onnx"}
    torch.onnx.export(States().eval(), (ids, mask), str(paths["float32"]), dynamo=False, dynamic_axes=axes, **names)
    quantize_dynamic(paths["float32"], paths["int8"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return {name: onnxruntime.InferenceSession(path, options) for name, path in paths.items()}


def alternate(
    found: dict[str, Contender], texts: Sequence[Sequence[str]], clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Return the seconds of each contender for each list of texts. The order is rotated after every list."""
    seconds: dict[str, list[float]] = {name: [] for name in found}
    names = list(found)
    for turn, each in enumerate(texts):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = clock()
            found[name](each)
            seconds[name].append(clock() - began)
    return seconds


def measure(title: str, found: dict[str, Contender], texts: list[str], settings: argparse.Namespace) -> None:
    """Print a row for each contender."""
    single = [text for text in texts if len(text.split()) == WORDS]
    reference = next(iter(found.values()))(texts[:64])
    differences = {name: float(np.abs(compute(texts[:64]) - reference).max()) for name, compute in found.items()}
    one = alternate(found, [[text] for text in itertools.islice(itertools.cycle(single), settings.one)], settings.clock)
    many = alternate(found, [texts] * settings.turns, settings.clock)
    for name in found:
        milliseconds = sorted(1000 * each for each in one[name])
        rates = [len(texts) / each for each in many[name]]
        slow = milliseconds[min(len(milliseconds) - 1, round(0.95 * len(milliseconds)))]
        cells = (title, name, f"**{statistics.median(milliseconds):.2f}**", f"{slow:.2f}")
        cells += (
            f"**{statistics.median(rates):.0f}**",
            f"{min(rates):.0f} – {max(rates):.0f}",
            f"{differences[name]:.1g}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="one text per line, whose last column after a tab is ignored")
    parser.add_argument("--bert", type=Path, help="a Hugging Face folder of a BertModel")
    parser.add_argument("--presets", nargs="*", default=["tiny", "mini"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", type=int, default=300, help="number of single sentences")
    parser.add_argument("--turns", type=int, default=3, help="number of passes over all lines")
    parser.add_argument("--lines", type=int, help="use only the first N lines of the file")
    parser.add_argument(
        "--processor-time",
        dest="clock",
        action="store_const",
        const=time.process_time,
        default=time.perf_counter,
        help="measure CPU time of all threads instead of wall time: for one thread on a busy machine",
    )
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = str(settings.threads > 1).lower()
    texts = [line.rpartition("\t")[0] or line for line in itertools.islice(read_lines(settings.texts), settings.lines)]
    load = os.getloadavg()[0]
    print(f"{len(texts)} lines, {settings.threads} threads, {best_library().stem.split('-')[1]}, load {load:.1f}\n")
    print("| model | engine | ms per sentence, median | 95th percentile | texts/s | range | difference |")
    print("|---|---|--:|--:|--:|--:|--:|")
    tokenizer = train_tokenizers(TextConfig(), texts, texts).source
    for preset in settings.presets:
        measure(preset, classifiers(preset, tokenizer), texts, settings)
    if settings.bert:
        with tempfile.TemporaryDirectory() as place:
            try:
                found = bert_contenders(settings.bert, Path(place), settings.threads)
            except DragomanError as error:
                raise SystemExit(str(error)) from None
            measure(settings.bert.name, found, texts, settings)


if __name__ == "__main__":
    main()
