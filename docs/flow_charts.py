"""Flow charts of the pages, as SVG: boxes on a grid, and arrows with right angles between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 150, 84, 48, 50, 20
"""Sizes of a box and of the space between boxes, in pixels."""
COLOURS = {"text": "#e8f0fb", "work": "#fdf1dc", "kept": "#e6f5ea", "lost": "#fbe5e5"}
INK = "#345"

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A box. text: up to three lines. colour: of text, of work that is done, of what is kept or lost."""

    column: int
    row: int
    title: str
    text: str
    colour: Literal["text", "work", "kept", "lost"] = "work"

    @property
    def centre(self) -> Point:
        """The centre of the box in pixels."""
        x = MARGIN + WIDTH / 2 + self.column * (WIDTH + GAP_X)
        return x, MARGIN + HEIGHT / 2 + self.row * (HEIGHT + GAP_Y)

    def svg(self) -> str:
        """Draw the box, with its title in bold."""
        x, y = self.centre
        lines = self.text.split("\n")
        top = y - 8 * len(lines)
        parts = [
            f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="8"'
            f' fill="{COLOURS[self.colour]}" stroke="{INK}"/>',
            f'<text x="{x:g}" y="{top + 4:g}" font-weight="bold" text-anchor="middle">{escape(self.title)}</text>',
        ]
        parts += [
            f'<text x="{x:g}" y="{top + 22 + 16 * number:g}" font-size="12" text-anchor="middle">{escape(line)}</text>'
            for number, line in enumerate(lines)
        ]
        return "\n".join(parts)


@dataclass(frozen=True)
class Arrow:
    """An arrow from a box to another, each given by its title.

    Between boxes of different rows and columns it turns twice, in the middle between two rows; or once, if `turn` is
    the direction in which it starts. shift: pixels to the right, at both ends of an arrow that turns twice.
    """

    start: str
    end: str
    label: str = ""
    dashed: bool = False
    turn: Literal["across", "along"] | None = None
    shift: float = 0

    def points(self, start: Box, end: Box) -> list[Point]:
        """Return the corners of the line, with its ends at the edges of the boxes."""
        (x, y), (to_x, to_y) = start.centre, end.centre
        right, down = (1 if to_x > x else -1), (1 if to_y > y else -1)
        side, edge = right * WIDTH / 2, down * HEIGHT / 2
        if start.row == end.row:
            return [(x + side, y), (to_x - side - 2 * right, y)]
        if start.column == end.column:
            return [(x, y + edge), (x, to_y - edge - 2 * down)]
        if self.turn == "along":
            return [(x + side, y), (to_x, y), (to_x, to_y - edge - 2 * down)]
        if self.turn == "across":
            return [(x, y + edge), (x, to_y), (to_x - side - 2 * right, to_y)]
        middle = y + edge + down * GAP_Y / 2
        x, to_x = x + self.shift, to_x + self.shift
        return [(x, y + edge), (x, middle), (to_x, middle), (to_x, to_y - edge - 2 * down)]

    def svg(self, start: Box, end: Box) -> str:
        """Draw the arrow, with its label at its longest part."""
        points = self.points(start, end)
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' * self.dashed
        parts = [f'<path d="M{path}" stroke="{INK}" stroke-width="1.6" fill="none"{dashes} marker-end="url(#tip)"/>']
        if self.label:
            (x, y), (to_x, to_y) = max(
                pairwise(points), key=lambda ends: abs(ends[0][0] - ends[1][0]) + abs(ends[0][1] - ends[1][1])
            )
            place = (x + to_x) / 2, (y + to_y) / 2
            at = (place[0], place[1] - 6, "middle") if y == to_y else (place[0] + 8, place[1] + 4, "start")
            parts.append(
                f'<text x="{at[0]:g}" y="{at[1]:g}" font-size="12" fill="{INK}" text-anchor="{at[2]}">'
                f"{escape(self.label)}</text>"
            )
        return "\n".join(parts)


def draw(title: str, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Return a chart as SVG."""
    named = {box.title: box for box in boxes}
    width = 2 * MARGIN + (max(box.column for box in boxes) + 1) * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + (max(box.row for box in boxes) + 1) * (HEIGHT + GAP_Y) - GAP_Y
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="sans-serif" font-size="14" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            f' orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *(arrow.svg(named[arrow.start], named[arrow.end]) for arrow in arrows),
            *(box.svg() for box in boxes),
            "</svg>\n",
        ]
    )


def charts() -> dict[str, str]:
    """Return the charts by the names of their files in docs/pictures."""
    return {"data-flow.svg": _data_flow(), "serving.svg": _serving(), "resumption.svg": _resumption()}


def _data_flow() -> str:
    boxes = [
        Box(0, 0, "corpus", "pairs as text:\nTSV, TMX, two files", "text"),
        Box(1, 0, "cleaning", "drops what is\nno good pair"),
        Box(2, 0, "held out", "sets that training\nnever sees"),
        Box(3, 0, "preparation", "vocabulary; text\nbecomes token ids"),
        Box(4, 0, "training", "ids become\nparameters"),
        Box(1, 1, "report", "which rule, which line", "kept"),
        Box(2, 1, "validation, test", "held_out/ in the run", "kept"),
        Box(3, 1, "prepared/", "shared by runs", "kept"),
        Box(4, 1, "model folder", "weights, vocabulary", "kept"),
        Box(4, 2, "engines", "native, cuda,\nctranslate2, torch"),
        Box(3, 2, "search", "token ids, the most\nprobable hypothesis"),
        Box(2, 2, "translations", "file, document,\nserver", "text"),
        Box(1, 2, "evaluation", "scores, verdict,\nexample lines", "kept"),
    ]
    row = ["corpus", "cleaning", "held out", "preparation", "training", "model folder", "engines", "search"]
    arrows = [Arrow(*ends) for ends in pairwise([*row, "translations", "evaluation"])]
    arrows += [Arrow("cleaning", "report"), Arrow("held out", "validation, test"), Arrow("preparation", "prepared/")]
    arrows += [
        Arrow("validation, test", "training", "when to stop", dashed=True, shift=-40),
        Arrow("validation, test", "evaluation", "test set", dashed=True),
        Arrow("evaluation", "corpus", "better data", turn="along"),
    ]
    return draw("How data flows from a corpus to translations", boxes, arrows)


def _serving() -> str:
    boxes = [
        Box(0, 0, "request", "texts, languages,\nkey", "text"),
        Box(1, 0, "access", "key, quota, sizes"),
        Box(2, 0, "sentences", "language detected,\ntexts divided"),
        Box(3, 0, "queue", "one per model, fair\nbetween clients"),
        Box(4, 0, "running batch", "new sentences replace\nfinished ones"),
        Box(1, 1, "refused", "401, 403, 413, 429:\nthe client has to act", "lost"),
        Box(2, 1, "known", "cached, or the same\nsentence is waiting", "kept"),
        Box(3, 1, "rejected", "503 at once:\nthe queue is full", "lost"),
        Box(4, 1, "engine", "one step of all\nsentences at once"),
        Box(2, 2, "response", "as soon as its last\nsentence is finished", "text"),
        Box(3, 2, "output checks", "guard, kept text:\nfaulty ones again"),
    ]
    arrows = [Arrow(*ends) for ends in pairwise(["request", "access", "sentences", "queue", "running batch", "engine"])]
    arrows += [
        Arrow("access", "refused"),
        Arrow("sentences", "known"),
        Arrow("queue", "rejected"),
        Arrow("known", "response"),
        Arrow("engine", "output checks", turn="across"),
        Arrow("output checks", "response"),
    ]
    return draw("How a request becomes a response", boxes, arrows)


def _resumption() -> str:
    boxes = [
        Box(0, 0, "updates 1 to 4", "order and dropout\nfrom seed and epoch"),
        Box(1, 0, "snapshot 4", "parameters, optimiser,\nposition, log length", "kept"),
        Box(2, 0, "updates 5 to 8", "order and dropout\nfrom seed and epoch"),
        Box(3, 0, "model", "of a run that was\nnever interrupted", "kept"),
        Box(2, 1, "updates 5 and 6", "killed here:\nthese are lost", "lost"),
        Box(1, 2, "--resume", "reads the snapshot,\ncuts the log"),
        Box(2, 2, "updates 5 to 8 again", "the same order, the\nsame dropout masks"),
        Box(3, 2, "the same model", "byte for byte", "kept"),
    ]
    arrows = [
        *(Arrow(*ends) for ends in pairwise(["updates 1 to 4", "snapshot 4", "updates 5 to 8", "model"])),
        Arrow("snapshot 4", "updates 5 and 6", dashed=True),
        Arrow("snapshot 4", "--resume"),
        *(Arrow(*ends) for ends in pairwise(["--resume", "updates 5 to 8 again", "the same model"])),
        Arrow("model", "the same model", "compare", dashed=True),
    ]
    return draw("A run that was killed, and one that was not", boxes, arrows)
