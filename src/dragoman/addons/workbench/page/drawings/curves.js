// Panels of curves over a common horizontal axis. Each panel is a slider, whose cursor reads the values of its curves.

import { draw, make } from "../dom.js";

const HEIGHT = 250;
/** The space around the plot: top, right, bottom, left, in pixels. */
const [TOP, RIGHT, BOTTOM, LEFT] = [10, 14, 34, 58];
const COLOURS = 6;

export class Curves {
  /** root: the element to fill. announce: makes a screen reader say a message. */
  constructor(root, announce) {
    this.announce = announce;
    this.element = make("div", { class: "curve-panels" });
    root.append(this.element);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
    this.cursor = null;
  }

  /** Draw a figure of the kind "curves". A cursor stays where it is, also if the figure has new points. */
  show(figure) {
    this.figure = figure;
    const headings = figure.panels.map(({ heading }) => heading.split(" · ")[0]).join("\n");
    if (headings !== this.headings) {
      this.headings = headings;
      this.panels = figure.panels.map((_, index) => new Panel(this, index));
      this.element.replaceChildren(...this.panels.map(({ element }) => element));
    }
    this.resize();
  }

  resize() {
    for (const panel of this.panels ?? []) panel.draw();
  }

  /** Move the cursor of all panels to a step, or hide it for null. */
  moveCursor(x) {
    this.cursor = x;
    for (const panel of this.panels) panel.showCursor();
  }

  close() {
    this.observer.disconnect();
  }
}

class Panel {
  constructor(owner, index) {
    this.owner = owner;
    this.index = index;
    this.title = make("h2", { class: "panel-title" });
    this.legend = make("ul", { class: "legend small" });
    this.readout = make("p", { class: "readout small" });
    this.plot = draw("svg", { class: "curves", role: "slider", tabindex: "0", height: HEIGHT });
    this.element = make("section", { class: "curve-panel" }, this.title, this.plot, this.legend, this.readout);
    this.plot.addEventListener("pointermove", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerleave", () => owner.moveCursor(null));
    this.plot.addEventListener("keydown", (event) => this.onKeydown(event));
  }

  draw() {
    const panel = this.owner.figure.panels[this.index];
    this.curves = panel.curves
      .map((curve) => {
        const { data } = this.owner.figure.arrays[curve.array];
        return { ...curve, x: data.subarray(0, data.length / 2), y: data.subarray(data.length / 2) };
      })
      .filter(({ x }) => x.length);
    this.width = Math.max(240, this.element.clientWidth);
    this.title.textContent = panel.heading;
    this.plot.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.plot.setAttribute("width", this.width);
    this.plot.setAttribute("aria-label", `${panel.heading}${panel.unit ? `, ${panel.unit}` : ""}`);
    this.steps = Float64Array.from(new Set(this.curves.filter(({ style }) => style !== "faint").flatMap(({ x }) => [...x]))).sort();
    if (!this.steps.length) {
      this.plot.replaceChildren(draw("text", { x: this.width / 2, y: HEIGHT / 2, class: "axis-text middle" }, panel.note || "nothing logged yet"));
      this.legend.replaceChildren();
      this.setValue(0, 0, 0, "nothing logged yet");
      return;
    }
    this.scales(panel);
    this.line = draw("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM });
    this.plot.replaceChildren(
      ...this.axes(panel),
      ...this.curves.flatMap((curve) => this.marks(curve)),
      this.line,
    );
    const named = this.curves.filter(({ style }) => style !== "faint");
    this.legend.replaceChildren(...named.map((curve) => make("li", {}, swatch(curve), make("bdi", {}, curve.label))));
    this.showCursor();
  }

  scales({ logarithmic, limits }) {
    const values = this.curves.flatMap(({ y }) => [...y]).filter((value) => !logarithmic || value > 0);
    const all = values.length ? values : [1];
    let [low, high] = limits ?? [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    if (logarithmic) low = Math.max(low, all.reduce((a, b) => Math.min(a, b)));
    if (low === high) [low, high] = logarithmic ? [low / 2, high * 2] : [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2];
    else if (!limits && !logarithmic) [low, high] = [low - 0.04 * (high - low), high + 0.04 * (high - low)];
    const [first, last] = [this.steps[0], this.steps.at(-1)];
    const right = last === first ? first + 1 : last;
    this.range = { low, high, first, right, logarithmic };
    const plotWidth = this.width - LEFT - RIGHT;
    const plotHeight = HEIGHT - TOP - BOTTOM;
    this.toX = (x) => LEFT + ((x - first) / (right - first)) * plotWidth;
    const [bottom, top] = logarithmic ? [Math.log(low), Math.log(high)] : [low, high];
    this.toY = (y) => {
      const share = ((logarithmic ? Math.log(Math.max(y, low / 10)) : y) - bottom) / (top - bottom);
      return TOP + (1 - Math.max(-0.02, Math.min(1.02, share))) * plotHeight;
    };
  }

  axes({ unit }) {
    const { low, high, first, right, logarithmic } = this.range;
    const parts = [];
    for (const value of logarithmic ? decades(low, high) : ticks(low, high, 5)) {
      const y = this.toY(value);
      parts.push(draw("line", { class: "grid-line", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }));
      parts.push(draw("text", { class: "axis-text end", x: LEFT - 8, y: y + 4 }, short(value)));
    }
    for (const value of ticks(first, right, Math.max(2, Math.floor(this.width / 75)))) {
      parts.push(draw("text", { class: "axis-text middle", x: this.toX(value), y: HEIGHT - BOTTOM + 18 }, short(value)));
    }
    parts.push(draw("text", { class: "axis-text end", x: this.width - RIGHT, y: HEIGHT - 2 }, this.owner.figure.x_label));
    if (unit) parts.push(draw("text", { class: "axis-text", x: 2, y: HEIGHT - 2 }, unit));
    return parts;
  }

  marks({ x, y, colour, style }) {
    const points = Array.from(x, (value, index) => `${this.toX(value).toFixed(1)},${this.toY(y[index]).toFixed(1)}`);
    const name = `curve-line colour-${colour % COLOURS} is-${style}`;
    const marks = [draw("polyline", { class: name, points: points.join(" ") })];
    if (style === "points" && points.length <= 80) {
      marks.push(...points.map((point) => draw("circle", { class: name, cx: point.split(",")[0], cy: point.split(",")[1], r: 2.8 })));
    }
    return marks;
  }

  /** Show the cursor of all panels at the nearest step of this one. */
  showCursor() {
    if (!this.steps?.length) return;
    const { first, right } = this.range;
    const step = this.owner.cursor === null ? null : nearest(this.steps, this.owner.cursor);
    this.line.classList.toggle("is-hidden", step === null);
    if (step === null) {
      this.readout.replaceChildren(`${this.steps.length.toLocaleString("en")} steps with values, up to ${short(this.steps.at(-1))}`);
      this.setValue(first, right, this.steps.at(-1), this.describe(this.steps.at(-1)));
      return;
    }
    this.line.setAttribute("x1", this.toX(step));
    this.line.setAttribute("x2", this.toX(step));
    const text = this.describe(step);
    this.readout.replaceChildren(make("bdi", {}, text));
    this.setValue(first, right, step, text);
  }

  describe(step) {
    const values = this.curves.filter(({ style }) => style !== "faint").map(({ label, x, y }) => {
      const index = x.indexOf(nearest(x, step));
      return `${label} ${short(y[index])}${x[index] === step ? "" : ` (step ${x[index]})`}`;
    });
    return `${this.owner.figure.x_label} ${step.toLocaleString("en")}: ${values.join(", ")}`;
  }

  setValue(low, high, now, text) {
    for (const [name, value] of [["min", low], ["max", high], ["now", now], ["text", text]]) {
      this.plot.setAttribute(`aria-value${name}`, value);
    }
  }

  onPointer(event) {
    if (!this.steps?.length) return;
    const { first, right } = this.range;
    const box = this.plot.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    this.owner.moveCursor(first + Math.max(0, Math.min(1, share)) * (right - first));
  }

  onKeydown(event) {
    if (!this.steps?.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = this.steps.indexOf(nearest(this.steps, this.owner.cursor ?? this.steps.at(-1)));
    const page = Math.max(1, Math.round(this.steps.length / 10));
    const move = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    this.owner.moveCursor(this.steps[Math.max(0, Math.min(this.steps.length - 1, index + move))]);
  }
}

function swatch({ colour, style }) {
  const line = draw("line", { x1: 1, x2: 27, y1: 6, y2: 6, class: `curve-line colour-${colour % COLOURS} is-${style}` });
  return draw("svg", { viewBox: "0 0 28 12", class: "swatch", "aria-hidden": "true" }, line);
}

/** Return the value of a sorted list that is nearest to a number. */
function nearest(sorted, value) {
  let [low, high] = [0, sorted.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle;
  }
  return value - sorted[low] <= sorted[high] - value ? sorted[low] : sorted[high];
}

/** Return about `count` round numbers between two numbers. */
export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) values.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return values;
}

function decades(low, high) {
  const values = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    values.push(...[1, 2, 5].map((each) => each * 10 ** power).filter((each) => each >= low * 0.999 && each <= high * 1.001));
  }
  return values.length > 7 ? values.filter((each) => Number.isInteger(Math.log10(each))) : values;
}

function short(value) {
  const magnitude = Math.abs(value);
  if (magnitude >= 10_000) return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
  if (magnitude !== 0 && magnitude < 0.001) return value.toExponential(1);
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}
