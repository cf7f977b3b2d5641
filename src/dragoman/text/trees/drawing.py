"""Trees as text of several lines, with one line per constituent and word."""

from dragoman.text.trees.tree import Constituent, Tree


def draw_tree(tree: Tree) -> str:
    r"""Return a drawing of a tree, without a final newline. The parts of a constituent are indented.

    (S (NP (DT The) (NN end))) becomes "S\n└─ NP\n   ├─ DT The\n   └─ NN end".
    """
    nodes: list[tuple[int, str]] = []
    depth = 0
    for event in tree.events():
        if event is None:
            depth -= 1
        elif isinstance(event, Constituent):
            nodes.append((depth, event.label))
            depth += 1
        else:
            nodes.append((depth, " ".join(tree.words[event])))
    lines: list[str] = []
    continued: list[bool] = []
    """For each depth from 1, whether a part at this depth follows below."""
    for depth, text in reversed(nodes):
        continued += [False] * (depth - len(continued))
        if depth == 0:
            lines.append(text)
        else:
            stems = "".join("│  " if each else "   " for each in continued[: depth - 1])
            lines.append(f"{stems}{'├─ ' if continued[depth - 1] else '└─ '}{text}")
            continued[depth - 1] = True
        del continued[depth:]
    return "\n".join(reversed(lines))
