// The attention of all layers and heads, and one head as a heat map or as lines between the tokens.

import { choice, menu } from "../controls.js";
import { make } from "../dom.js";
import { HeadGrid } from "../drawings/head_grid.js";
import { HeatMap } from "../drawings/heat_map.js";
import { panels } from "../drawings/panels.js";
import { TokenLines } from "../drawings/token_lines.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

const KINDS = {
  "encoder.self_attention": "encoder, self-attention",
  "decoder.self_attention": "decoder, self-attention",
  "decoder.cross_attention": "decoder, attention over the source",
};

export class AttentionView {
  static localSettings = new Set(["layer", "head", "drawing", "order"]);
  static figures = ["heads"];
  static exported = [["heads", "all heads"], ["head", "this head"]];
  static keys = [["← → ↑ ↓", "in the heads: select another head; in a heat map: move to another cell"], ["Home End", "first and last in the row"]];

  constructor(root, context) {
    const { store } = context;
    this.context = context;
    this.form = new SentenceForm(root, context);
    this.kind = menu(store, "kind", "Kind", []);
    this.order = choice(store, "order", "Order of the heads", [["layer", "By layer"], ["entropy", "By entropy"]]);
    this.drawing = choice(store, "drawing", "Form of the head", [["map", "Heat map"], ["lines", "Lines"]]);
    this.absent = make("ul", { class: "absent small muted" });
    this.overview = make("section", { class: "overview", "aria-label": "All heads" });
    this.title = make("h2", { class: "head-title" });
    this.single = make("section", { class: "single", "aria-label": "One head" });
    this.content = make(
      "div",
      { class: "attention", hidden: true },
      make("div", { class: "controls" }, this.kind, this.order, this.drawing),
      make("div", { class: "columns" }, this.overview, this.single),
      this.absent,
    );
    root.append(this.content);
    this.grid = new HeadGrid(this.overview, ({ layer, head }) => store.set({ layer: layer ?? 1, head: head ?? 0 }));
    this.single.append(this.title);
    this.mapBox = make("div");
    this.linesBox = make("div");
    this.single.append(this.mapBox, this.linesBox);
    this.map = new HeatMap(this.mapBox, "Weights of the head", context.announce);
    this.lines = new TokenLines(this.linesBox, context.announce);
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    const model = modelOf(this.context.workspace, state);
    if (model && !model.verbs.includes("inspect")) return `${model.name} is a ${model.kind}, which has no attention`;
    return state.source?.trim() ? "" : "Enter a sentence to see how the model attends to its tokens";
  }

  show({ facts, figures }, state) {
    this.figureData = figures.heads;
    this.rows = panels(figures.heads);
    this.content.hidden = false;
    this.kind.setOptions(facts.kinds.map((kind) => [kind, KINDS[kind] ?? kind]));
    this.kind.show(facts.kind);
    this.absent.replaceChildren(...facts.absent.map((line) => make("li", {}, `No weights: ${line}`)));
    this.form.target.field.placeholder = facts.target && !state.target ? facts.target : "empty: the model's own translation";
    this.orderShown = undefined;
    this.update(state);
  }

  update(state) {
    this.form.show(state);
    const { order = "layer", drawing = "map" } = state;
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
    this.title.textContent = `${panel.layer ? `Layer ${panel.layer}, ` : ""}${panel.head ? `head ${panel.head}` : "mean of the heads"}`;
    const { rows, columns, limit } = this.figureData;
    this.mapBox.hidden = drawing !== "map";
    this.linesBox.hidden = drawing !== "lines";
    if (drawing === "map") this.map.show(panel, rows, columns, limit);
    else this.lines.show(panel, rows, columns);
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
