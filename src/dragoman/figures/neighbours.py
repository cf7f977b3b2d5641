"""`NodeInspection`: the attention weights of a node's neighbours, as arrays or as a folder of pictures."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.figures.inspection import ARRAYS, INDEX, PAGE, page
from dragoman.models.attention_weights import NeighbourWeights

_PICTURES = ("neighbours.png", "neighbours.svg")


@dataclass(frozen=True)
class NodeInspection:
    """The prediction for a node, with the weights of its neighbours.

    node: the id of the node. label: the predicted label. gold: the label in the data, or None. probabilities: the
    probability of each class. layers: the weights of each layer, the lowest first.
    """

    node: str
    label: str
    gold: str | None
    probabilities: dict[str, float]
    layers: tuple[NeighbourWeights, ...]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The weights (heads, n) float32 by layer, `layers.0` first, and the ids of the neighbours as `neighbours`."""
        weights = {f"layers.{number}": layer.weights for number, layer in enumerate(self.layers)}
        return weights | {"neighbours": np.array(self.layers[0].ids, dtype=np.str_)}

    def index(self) -> dict[str, Any]:
        """Return the contents of `index.json`."""
        layers = [
            [{"id": each.ids[i], "label": each.labels[i], "weight": float(each.mean[i])} for i in each.order]
            for each in self.layers
        ]
        prediction = {"node": self.node, "label": self.label, "gold": self.gold, "probabilities": self.probabilities}
        return {**prediction, "layers": layers, "pictures": list(_PICTURES), "arrays": ARRAYS}

    def save(self, folder: str | Path) -> list[Path]:
        """Write pictures (PNG and SVG), `attention.npz`, `index.json` and `index.html`; returns the paths of the files.

        Raises ConfigError if the folder exists and is not empty.
        """
        # a local import, because importing matplotlib takes a second
        from dragoman.figures.neighbour_weights import draw_neighbours

        folder = Path(folder)
        check_new_folder(folder)
        with atomic_folder(folder) as temporary:
            draw_neighbours(self.node, self._title, self.layers, *(temporary / name for name in _PICTURES))
            np.savez_compressed(temporary / ARRAYS, **self.arrays)  # type: ignore[arg-type]
            (temporary / INDEX).write_text(json.dumps(self.index(), ensure_ascii=False, indent=1) + "\n", "utf-8")
            (temporary / PAGE).write_text(self._page(), "utf-8")
            names = sorted(path.name for path in temporary.iterdir())
        return [folder / name for name in names]

    def __str__(self) -> str:
        lines = [f"node {self.node}  {self._title}"]
        for number, layer in enumerate(self.layers, 1):
            lines.append(f"layer {number}, heads {len(layer.weights)}, neighbours {len(layer.ids)}")
            lines += [f"  {layer.mean[i]:.3f}  {layer.ids[i]}  {layer.labels[i]}" for i in layer.order[:10]]
        return "\n".join(lines)

    @property
    def _title(self) -> str:
        """The predicted label, and the label in the data if it is known."""
        return f"predicted {self.label}" + ("" if self.gold is None else f", label in the data {self.gold}")

    def _page(self) -> str:
        png, svg = _PICTURES
        return page(
            f"Neighbours of {escape(self.node)}",
            [
                f"<p>{escape(self._title)}</p>",
                f'<p><a href="{svg}"><img src="{png}" alt="weights of the neighbours"></a></p>',
                f'<p>All weights: <a href="{ARRAYS}">{ARRAYS}</a></p>',
            ],
        )
