// A search tree: steps from left to right, ranks from top to bottom. One tab stop; arrow keys move between hypotheses.

import { draw, make, newId, visible } from "../dom.js";

/** The height of a lane, the space between columns, and the height of a box, in pixels. */
const [LANE, GAP, BOX] = [30, 34, 22];
const MARGIN = 8;
/** The longest token that is shown in full, in characters, and the width of a character in pixels. */
const [LONGEST, CHARACTER] = [14, 7.4];
/** Signs before the token, so that outcomes differ not only by colour. */
const SIGNS = { finished: "■ ", "pruned: forbidden": "✕ " };

export class SearchTree {
  /** root: the element to fill. announce: makes a screen reader say a message. */
  constructor(root, announce) {
    this.announce = announce;
    const option = newId();
    this.option = make("div", { role: "option", id: option, class: "unseen", "aria-selected": "true" });
    this.svg = draw("svg", { class: "tree", "aria-hidden": "true" });
    this.box = make(
      "div",
      { class: "tree-scroll", role: "listbox", tabindex: "0", "aria-label": "Hypotheses of the search", "aria-activedescendant": option },
      this.svg,
      this.option,
    );
    this.readout = make("p", { class: "readout small" });
    root.append(this.box, this.readout);
    this.box.addEventListener("keydown", (event) => this.onKeydown(event));
    this.box.addEventListener("focus", () => this.box.matches(":focus-visible") && this.select(this.selected ?? 0, true));
    this.svg.addEventListener("pointerover", ({ target }) => {
      const node = target.closest("[data-node]");
      if (node) this.select(Number(node.dataset.node), false);
    });
  }

  /** Draw a figure of the kind "search-tree". */
  show(figure) {
    this.figure = figure;
    this.selected = undefined;
    this.values = Object.fromEntries(Object.entries(figure.arrays).map(([name, { data }]) => [name, data]));
    const { step, lane, parent } = this.values;
    this.labels = figure.pieces.map((piece, node) => this.label(piece, node));
    const longest = this.labels.reduce((length, label) => Math.max(length, [...label].length), 0);
    this.column = Math.ceil(longest * CHARACTER) + 14;
    const x = (node) => MARGIN + step[node] * (this.column + GAP);
    const y = (node) => MARGIN + lane[node] * LANE;
    const steps = step.reduce((a, b) => Math.max(a, b), 0);
    const lanes = lane.reduce((a, b) => Math.max(a, b), 0);
    const width = 2 * MARGIN + (steps + 1) * this.column + steps * GAP;
    const height = 2 * MARGIN + lanes * LANE + BOX + 4;
    for (const [name, value] of [["viewBox", `0 0 ${width} ${height}`], ["width", width], ["height", height]]) this.svg.setAttribute(name, value);
    this.steps = steps;
    this.children = this.labels.map(() => []);
    const best = new Set(figure.best_path);
    const { greedy_path: greedy, exact_path: exact } = figure;
    const edge = (from, to, shift = 0) => {
      const [left, right] = [x(from) + this.column, x(to)];
      const [top, bottom] = [y(from) + BOX / 2 + shift, y(to) + BOX / 2 + shift];
      return `M${left} ${top}C${left + GAP / 2} ${top} ${right - GAP / 2} ${bottom} ${right} ${bottom}`;
    };
    const edges = [];
    this.nodes = this.labels.map((label, node) => {
      if (parent[node] >= 0) {
        this.children[parent[node]].push(node);
        edges.push(draw("path", { d: edge(parent[node], node), class: best.has(node) ? "edge is-best" : "edge", "data-step": step[node] }));
      }
      return this.node(label, node, x(node), y(node), best.has(node));
    });
    const path = (nodes, shift, kind) => nodes.slice(1).map((node, index) => draw("path", { d: edge(nodes[index], node, shift), class: `edge ${kind}`, "data-step": step[node] }));
    const steered = [...path(greedy, 4, "is-greedy"), ...path(exact, -4, "is-exact")];
    this.edges = [...edges.filter((each) => !each.classList.contains("is-best")), ...edges.filter((each) => each.classList.contains("is-best")), ...steered];
    this.svg.replaceChildren(...this.edges, ...this.nodes);
    this.readout.textContent = "Point at a hypothesis, or move with the arrow keys, to read its scores.";
    this.option.textContent = "no hypothesis is selected";
  }

  /** Show the tree up to a step; 0 shows all of it. */
  limit(step) {
    const last = step || Infinity;
    for (const edge of this.edges) edge.classList.toggle("is-hidden", Number(edge.dataset.step) > last);
    this.nodes.forEach((node, index) => node.classList.toggle("is-hidden", this.values.step[index] > last));
  }

  label(piece, node) {
    if (node === 0) return "start";
    const text = visible(piece);
    const sign = SIGNS[this.fate(node)] ?? "";
    return sign + ([...text].length > LONGEST ? `${[...text].slice(0, LONGEST - 1).join("")}…` : text);
  }

  node(label, node, x, y, isBest) {
    const kind = this.fate(node).split(":")[0];
    const group = draw("g", { class: `node is-${kind}${isBest ? " is-best" : ""}`, "data-node": node });
    group.append(
      draw("rect", { x, y, width: this.column, height: BOX, rx: 5 }),
      draw("text", { x: x + this.column / 2, y: y + 15.5, direction: "ltr" }, `\u2068${label}\u2069`),
    );
    return group;
  }

  fate(node) {
    return this.figure.fates[this.values.fate[node]];
  }

  select(node, isSpoken) {
    this.nodes[this.selected]?.classList.remove("is-lit");
    this.selected = node;
    this.nodes[node].classList.add("is-lit");
    const { step, rank, log_probability: own, total, score } = this.values;
    const place = node === 0 ? "start of the search" : `step ${step[node]}${rank[node] < 0 ? "" : `, rank ${rank[node] + 1}`}`;
    const numbers = node === 0 ? "" : `: log-probability ${own[node].toFixed(3)}, total ${total[node].toFixed(3)}, score if it ended here ${score[node].toFixed(3)}; ${this.fate(node)}`;
    const token = node === 0 ? "" : `${visible(this.figure.pieces[node])}, `;
    const text = `${token}${place}${numbers}`.replaceAll("-", "−").replaceAll("log−p", "log-p");
    this.readout.replaceChildren(make("bdi", {}, text));
    this.option.textContent = text;
    if (!isSpoken) return;
    this.announce(text);
    this.nodes[node].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  onKeydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.figure) return;
    const node = this.selected ?? 0;
    const { step, lane, parent, total } = this.values;
    const column = this.labels.map((_, index) => index).filter((index) => step[index] === step[node]);
    column.sort((one, other) => lane[one] - lane[other]);
    const place = column.indexOf(node);
    const children = [...this.children[node]].sort((one, other) => total[other] - total[one]);
    const best = this.figure.best_path;
    const target = {
      ArrowLeft: Math.max(0, parent[node]),
      ArrowRight: children.find((child) => best.includes(child)) ?? children[0] ?? node,
      ArrowUp: column[Math.max(0, place - 1)],
      ArrowDown: column[Math.min(column.length - 1, place + 1)],
      Home: 0,
      End: best.at(-1) ?? node,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(target, true);
  }
}
