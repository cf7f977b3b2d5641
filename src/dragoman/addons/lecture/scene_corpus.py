"""`write_scenes` writes a corpus of pictures with captions: region vectors, texts, and the pictures themselves."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.image import imsave

from dragoman.addons.lecture.scenes import GRID, HELD_OUT, REGION_WIDTH, draw_scenes, paint, region_vectors
from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_folder, atomic_write, check_new_folder

_PICTURES = 20
"""Number of pictures of each test set that are written."""


@dataclass(frozen=True)
class SceneCorpus:
    """A corpus of scenes. folder: its folder. counts: number of scenes of each part."""

    folder: Path
    counts: dict[str, int]

    def __str__(self) -> str:
        combinations = ", ".join(f"{colour} {shape}" for colour, shape in HELD_OUT)
        lines = [f"{self.folder}: {GRID * GRID} regions per picture, vectors of {REGION_WIDTH} numbers"]
        lines += [f"  {part}.jsonl, {part}.txt: {count:,} scenes" for part, count in self.counts.items()]
        return "\n".join([*lines, f"only in unseen: {combinations}"])


def write_scenes(
    out: str | Path, *, train: int = 8000, valid: int = 300, test: int = 500, seed: int = 1
) -> SceneCorpus:
    """Write random scenes with captions, like `dragoman scenes`.

    The folder contains the parts train, valid, test and unseen. Each has a file of region vectors, one picture per line
    (`text.vectors`), a file of captions, and a file with the region that each word of a caption names (null for other
    words). Every scene of `unseen`, which is as large as `test`, contains a combination of colour and shape that does
    not occur in the other parts. The first pictures of test and unseen are written as PNG files. Raises ConfigError if
    the folder exists and is not empty, for fewer than one scene and for a negative seed.

    >>> from dragoman import write_scenes
    >>> scenes = write_scenes("scenes", train=10, valid=2, test=2)
    >>> print(scenes)
    scenes: 9 regions per picture, vectors of 41 numbers
      train.jsonl, train.txt: 10 scenes
    ...
    """
    folder = Path(out)
    check_new_folder(folder)
    for name, value, least in (("train", train, 1), ("valid", valid, 1), ("test", test, 1), ("seed", seed, 0)):
        if value < least:
            raise ConfigError(f"{name} must be at least {least}, not {value}")
    counts = {"train": train, "valid": valid, "test": test, "unseen": test}
    with atomic_folder(folder) as temporary:
        for number, (part, count) in enumerate(counts.items()):
            random = np.random.default_rng((seed, number, 1))
            vectors, captions, regions = [], [], []
            for index, scene in enumerate(draw_scenes(count, (seed, number), part == "unseen"), 1):
                picture = paint(scene, random)
                vectors.append(json.dumps(region_vectors(picture).round(3).tolist()))
                captions.append(scene.caption)
                regions.append(json.dumps([word.region for word in scene.words]))
                if part in ("test", "unseen") and index <= _PICTURES:
                    imsave(temporary / f"{part}-{index}.png", picture)
            for suffix, lines in ((".jsonl", vectors), (".txt", captions), (".regions.jsonl", regions)):
                atomic_write(temporary / f"{part}{suffix}", "".join(f"{line}\n" for line in lines))
    return SceneCorpus(folder, counts)
