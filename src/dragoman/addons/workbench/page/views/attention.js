// The attention of all layers and heads, or their rollout, and one head as a heat map or as lines between the tokens. A
// token or a cell at the pointer is highlighted in all pictures.

import { choice, menu } from "../controls.js";
import { make } from "../dom.js";
import { HeadGrid } from "../drawings/head_grid.js";
import { HeatMap } from "../drawings/heat_map.js";
import { meanOf, panels } from "../drawings/panels.js";
import { TokenLines } from "../drawings/token_lines.js";
import { TokenRows } from "../drawings/token_rows.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

const KINDS = {
  "encoder.self_attention": "encoder, self-attention",
  "decoder.self_attention": "decoder, self-attention",
  "decoder.cross_attention": "decoder, attention over the source",
  "encoder.rollout": "encoder, rollout through the layers",
  "decoder.rollout": "decoder, rollout through the layers",
};

export class AttentionView {
  static localSettings = new Set(["layer", "head", "drawing", "order"]);
  static figures = ["heads"];
  static exported = [["heads", "all heads"], ["head", "this head as a heat map"], ["lines", "this head as lines"]];
  static keys = [
    ["← →", "in the tokens: move to another token; Esc ends the highlighting"],
    ["← → ↑ ↓", "in the heads: select another head; in a heat map: move to another cell"],
    ["↑ ↓", "in the lines: move to another token"],
    ["Home End", "first and last in the row"],
  ];

  constructor(root, context) {
    const { store } = context;
    this.context = context;
    this.form = new SentenceForm(root, context);
    this.kind = menu(store, "kind", "Kind", []);
    this.order = choice(store, "order", "Order of the heads", [["layer", "By layer"], ["entropy", "By entropy"]]);
    this.drawing = choice(store, "drawing", "Form of the head", [["map", "Heat map"], ["lines", "Lines"]]);
    this.absent = make("ul", { class: "absent small muted" });
    this.overview = make("section", { class: "overview", "aria-label": "All heads" });
    this.tokenBox = make("section", { class: "single token-rows", "aria-label": "Tokens" });
    this.title = make("h2", { class: "head-title" });
    this.single = make("section", { class: "single", "aria-label": "One head" });
    this.content = make(
      "div",
      { class: "attention", hidden: true },
      make("div", { class: "controls" }, this.kind, this.order, this.drawing),
      this.tokenBox,
      make("div", { class: "columns" }, this.overview, this.single),
      this.absent,
    );
    root.append(this.content);
    this.grid = new HeadGrid(this.overview, ({ layer, head }) => store.set({ layer: layer ?? 1, ...(this.isRollout ? {} : { head: head ?? 0 }) }));
    this.single.append(this.title);
    this.mapBox = make("div");
    this.linesBox = make("div");
    this.single.append(this.mapBox, this.linesBox);
    this.map = new HeatMap(this.mapBox, "Weights of the head", context.announce, (at, isChosen) => this.highlight(at, isChosen, this.map));
    this.lines = new TokenLines(this.linesBox, context.announce, (at, isChosen) => this.highlight(at, isChosen));
    this.tokens = new TokenRows(this.tokenBox, ["Queries (rows)", "Keys (columns)"], context.announce, (at, isChosen) => this.highlight(at, isChosen));
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    const model = modelOf(this.context.workspace, state);
    if (model && !model.abilities.includes("inspect")) return `${model.name} is a ${model.kind}, which has no attention`;
    return state.source?.trim() ? "" : "Enter a sentence to see how the model attends to its tokens";
  }

  show({ facts, figures }, state) {
    this.figureData = figures.heads;
    this.rows = panels(figures.heads);
    this.isRollout = facts.kind.endsWith(".rollout");
    this.order.hidden = this.isRollout;
    this.showTokens();
    this.content.hidden = false;
    this.kind.setOptions(facts.kinds.map((kind) => [kind, KINDS[kind] ?? kind]));
    this.kind.show(facts.kind);
    this.absent.replaceChildren(...facts.absent.map((line) => make("li", {}, `No weights: ${line}`)));
    this.form.target.field.placeholder = facts.target && !state.target ? facts.target : "empty: the model's own translation";
    this.orderShown = undefined;
    this.update(state);
  }

  /** Show the tokens with the mean of all heads, or with the rollout through all layers. */
  showTokens() {
    const { rows, columns } = this.figureData;
    const labels = JSON.stringify([rows, columns]);
    if (labels !== this.labels) this.chosen = null;
    this.labels = labels;
    const heads = this.rows.flat().filter(({ head }) => head !== null);
    const mean = this.isRollout ? this.rows.at(-1)[0].values : meanOf(heads);
    this.tokens.show(mean, this.isRollout ? "rollout through all layers" : "mean of all heads", rows, columns);
  }

  /**
   * Highlight a row, a column, or a cell, {row, column}, in all pictures; for null, what was chosen before. isChosen: whether
   * it stays when the pointer leaves. source: the picture that highlights it itself.
   */
  highlight(at, isChosen, source) {
    if (isChosen) this.chosen = at;
    if (isChosen && source !== this.map) this.map.release();
    const shown = at ?? this.chosen;
    this.grid.mark(shown);
    this.tokens.light(shown);
    const picture = this.mapBox.hidden ? this.lines : this.map;
    if (picture !== source || at === null) picture.light(shown);
  }

  update(state) {
    this.form.show(state);
    const { drawing = "map" } = state;
    const order = this.isRollout ? "layer" : (state.order ?? "layer");
    if (order !== this.orderShown) this.grid.show(this.rows, this.figureData.limit, order);
    this.orderShown = order;
    this.order.show(order);
    this.drawing.show(drawing);
    const layers = this.rows.length;
    const layer = Math.min(Math.max(1, Number(state.layer || layers)), layers);
    const row = this.rows[layer - 1];
    const head = Number(state.head ?? 1);
    const panel = row.find((each) => (each.head ?? 0) === head) ?? row[0];
    this.grid.select(panel.layer ?? 1, panel.head ?? 0);
    this.title.textContent = panel.heading.charAt(0).toUpperCase() + panel.heading.slice(1);
    const { rows, columns, limit } = this.figureData;
    this.mapBox.hidden = drawing !== "map";
    this.linesBox.hidden = drawing !== "lines";
    if (drawing === "map") this.map.show(panel, rows, columns, limit);
    else this.lines.show(panel, rows, columns);
    this.highlight(null, false);
  }

  clear() {
    this.content.hidden = true;
  }

  figure() {
    return "heads";
  }

  close() {
    this.grid.close();
    this.map.close();
  }
}
