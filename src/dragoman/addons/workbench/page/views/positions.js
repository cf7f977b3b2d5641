// Position schemes and deck 001's criteria for them, attention masks, and learning-rate schedules.

import { choice, menu, number, slider } from "../controls.js";
import { make } from "../dom.js";
import { Curves } from "../drawings/curves.js";
import { HeatMap } from "../drawings/heat_map.js";
import { panels } from "../drawings/panels.js";

const SCHEMES = ["sinusoidal", "learned", "relative", "rotary", "alibi", "bucketed", "none", "index", "one_hot", "fraction"];
const SCHEDULES = [["", "inverse square root"], ["cosine", "cosine"], ["linear", "linear"], ["constant", "constant"]];
/** The schemes inside attention, which have weights, and no vectors. */
const RELATIVE = new Set(["relative", "rotary", "alibi", "bucketed", "none"]);
/** The schemes whose wavelengths have a base. */
const WITH_BASE = new Set(["sinusoidal", "rotary"]);
const WIDTHS = Array.from({ length: 128 }, (_, index) => 8 * (index + 1));
const BASES = Array.from({ length: 21 }, (_, index) => Number((10 ** (1 + index / 4)).toPrecision(3)));
const CRITERIA = ["unique", "deterministic", "evenly spaced", "longer texts"];

export class PositionsView {
  static localSettings = new Set(["picture", "panel"]);
  static figures = undefined;
  static exported = [["encoding", "position vectors"], ["dot-products", "dot products"], ["distances", "dot products by distance"], ["weights", "weights"], ["masks", "masks"], ["schedule", "learning rate"]];
  static keys = [["← → ↑ ↓", "in a matrix: move to another cell; in a plot: move the cursor; in a slider: change the value"], ["Home End", "first and last cell of the row, or step of the plot"]];

  constructor(root, context) {
    const { store } = context;
    this.store = store;
    this.scheme = menu(store, "scheme", "Scheme", SCHEMES.map((name, index) => [index ? name : "", name]), { base: "", panel: "" });
    this.width = slider(store, "width", "Width d", WIDTHS, 128);
    this.base = slider(store, "base", "Base", BASES, 10_000);
    this.length = number(store, "length", "Text length", { min: 4, max: 512, otherwise: 100 });
    this.heads = number(store, "heads", "Heads", { min: 1, max: 64, otherwise: 8 });
    const compared = make("input", { type: "checkbox", onchange: () => store.set({ compared: compared.checked ? "true" : "" }, true) });
    this.compared = compared;
    this.pictures = choice(store, "picture", "Picture", [["", "Vectors"], ["products", "Dot products"], ["distances", "By distance"], ["masks", "Masks"], ["schedule", "Learning rate"]]);
    this.buttons = [...this.pictures.children];
    this.panel = menu(store, "panel", "Shown", []);
    this.tokens = number(store, "tokens", "Tokens", { min: 2, max: 64, otherwise: 12 });
    this.padding = number(store, "padding", "Padding", { min: 0, max: 64, otherwise: 3 });
    this.schedule = menu(store, "schedule", "Schedule", SCHEDULES, { warmup: "" });
    this.warmup = number(store, "warmup", "Warm-up", { min: 0, step: "any", otherwise: 4000 });
    this.steps = number(store, "steps", "Updates", { min: 2, max: 10_000_000, otherwise: 20_000 });
    this.title = make("h2", { class: "head-title" });
    this.note = make("p", { class: "rises small" });
    this.mapBox = make("div");
    this.curveBox = make("div");
    this.absent = make("p", { class: "absent small muted" }, "Without positions, there is nothing to draw: the model represents word order only through recurrence, convolution or a causal mask.");
    const picture = make("section", { class: "single", "aria-label": "Picture" }, this.title, this.mapBox, this.curveBox, this.absent, this.note);
    this.table = make("table");
    const criteria = make(
      "section",
      { class: "single criteria", "aria-label": "Criteria" },
      make("h2", { class: "head-title" }, "The four criteria of deck 001"),
      make("label", { class: "check small" }, compared, "Compare all schemes"),
      make("div", { class: "table-scroll", role: "region", tabindex: "0", "aria-label": "Criteria and schemes" }, this.table),
    );
    this.content = make(
      "div",
      { hidden: true },
      make("div", { class: "controls" }, this.panel, this.tokens, this.padding, this.schedule, this.warmup, this.steps),
      make("div", { class: "columns" }, picture, criteria),
    );
    root.append(make("div", { class: "controls" }, this.scheme, this.width, this.base, this.length, this.heads), this.pictures, this.content);
    this.map = new HeatMap(this.mapBox, "Matrix", context.announce);
    this.curves = new Curves(this.curveBox, context.announce);
  }

  missing(state) {
    const scheme = state.scheme ?? "sinusoidal";
    const defaults = { scheme: "", width: 128, base: 10_000, length: 100, heads: 8, tokens: 12, padding: 3, schedule: "", warmup: 4000, steps: 20_000 };
    for (const [name, value] of Object.entries(defaults)) this[name].show(["width", "base"].includes(name) ? Number(state[name] ?? value) : (state[name] ?? value));
    this.compared.checked = state.compared === "true";
    this.base.hidden = !WITH_BASE.has(scheme);
    this.heads.hidden = !RELATIVE.has(scheme);
    this.buttons[0].textContent = RELATIVE.has(scheme) ? "Weights" : "Vectors";
    this.buttons[1].hidden = this.buttons[2].hidden = RELATIVE.has(scheme);
    return "";
  }

  show(content, state) {
    this.shown = content;
    this.content.hidden = false;
    const { criteria, first_rise: rise } = content.facts;
    const row = (kind, verdicts) => make("tr", {}, make("th", { scope: "row" }, kind), ...CRITERIA.map((name) => make("td", {}, verdicts[name] ?? "–")));
    const head = make("tr", {}, ...["scheme", ...CRITERIA].map((name) => make("th", { scope: "col" }, name)));
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...Object.entries(criteria).map(([kind, verdicts]) => row(kind, verdicts))));
    this.rises = "encoding" in content.figures ? (rise === null ? "The dot products with position 0 fall throughout." : `The dot products with position 0 first rise at distance ${rise}.`) : "";
    this.update(state);
  }

  update(state) {
    this.missing(state);
    const name = this.figure(this.shown, state);
    const figure = this.shown.figures[name];
    const picture = state.picture ?? "";
    this.pictures.show(picture);
    for (const each of [this.tokens, this.padding]) each.hidden = picture !== "masks";
    for (const each of [this.schedule, this.warmup, this.steps]) each.hidden = picture !== "schedule";
    this.absent.hidden = figure !== undefined;
    this.mapBox.hidden = figure === undefined || figure.kind === "curves";
    this.curveBox.hidden = figure?.kind !== "curves";
    this.note.textContent = ["encoding", "dot-products"].includes(name) ? this.rises : "";
    this.title.textContent = figure?.title ?? "";
    this.panel.hidden = true;
    if (figure === undefined) return;
    if (figure.kind === "curves") this.curves.show(figure);
    else this.showMatrix(figure, Number(state.panel ?? 1));
  }

  showMatrix(figure, chosen) {
    const all = figure.kind === "matrices" ? matrices(figure) : panels(figure).flat();
    const index = Math.min(Math.max(1, chosen), all.length) - 1;
    const panel = all[index];
    this.panel.hidden = all.length < 2;
    this.panel.setOptions(all.map(({ heading }, place) => [place ? String(place + 1) : "", heading]));
    this.panel.show(index ? String(index + 1) : "");
    const numbers = (count) => Array.from({ length: count }, (_, number) => String(number));
    const [rows, columns] = [figure.rows ?? numbers(panel.rows), figure.columns ?? numbers(panel.columns)];
    const axes = figure.axes ?? ["query", "key"];
    this.map.show(panel, rows, columns, figure.limit, { isSigned: figure.signed, axes, digits: 6 });
  }

  clear() {
    this.content.hidden = true;
  }

  figure({ figures }, { picture = "" }) {
    const own = { products: "dot-products", distances: "distances", masks: "masks", schedule: "schedule" }[picture];
    return own in figures ? own : "encoding" in figures ? "encoding" : "weights";
  }

  close() {
    this.map.close();
    this.curves.close();
  }
}

/** Return the matrices of a figure of the kind "matrices", as panels (panels.js). */
function matrices(figure) {
  return figure.headings.map((heading, index) => {
    const { shape, data } = figure.arrays[`matrix-${index}`];
    return { heading, rows: shape[0], columns: shape[1], values: data };
  });
}
