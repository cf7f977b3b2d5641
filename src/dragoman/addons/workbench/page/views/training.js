// The curves of training runs, which grow while the runs train.

import { choice } from "../controls.js";
import { make } from "../dom.js";
import { Curves } from "../drawings/curves.js";

export class TrainingView {
  static localSettings = new Set();
  static figures = undefined;
  static exported = [["curves", "curves"]];
  static keys = [["← →", "in a plot: move the cursor of all plots to the next step"], ["Home End", "first and last step"]];

  constructor(root, context) {
    this.context = context;
    const { store, workspace } = context;
    this.boxes = workspace.runs.map((name) => {
      const box = make("input", { type: "checkbox", value: name, onchange: () => this.choose() });
      return { name, box, label: make("label", { class: "check" }, box, make("bdi", {}, name)) };
    });
    this.scale = choice(store, "scale", "Vertical axes", [["", "Usual axes"], ["linear", "Linear"], ["log", "Logarithmic"]]);
    const runs = make("fieldset", { class: "runs", hidden: workspace.runs.length < 2 }, make("legend", { class: "small muted" }, "Runs"), ...this.boxes.map(({ label }) => label));
    this.content = make("div", { hidden: true });
    root.append(make("div", { class: "controls" }, runs, this.scale), this.content);
    this.curves = new Curves(this.content, context.announce);
    this.news = new EventSource("news");
    this.news.addEventListener("message", ({ data }) => {
      const changed = JSON.parse(data);
      if (changed.some((name) => this.isShown(name))) context.refresh();
    });
  }

  missing(state) {
    for (const { name, box } of this.boxes) box.checked = this.isShown(name);
    this.scale.show(state.scale ?? "");
    return this.context.workspace.runs.length ? "" : "No training run is open. Start the workbench with the folder of a run, which contains log.jsonl";
  }

  /** Whether a run is among those of the state; a state without runs shows all. */
  isShown(name) {
    const chosen = [this.context.store.get("runs", [])].flat();
    return !chosen.length || chosen.includes(name);
  }

  choose() {
    const chosen = this.boxes.filter(({ box }) => box.checked).map(({ name }) => name);
    this.context.store.set({ runs: chosen.length === this.boxes.length ? [] : chosen }, true);
  }

  show({ figures }) {
    this.content.hidden = false;
    this.curves.show(figures.curves);
  }

  update() {}

  clear() {
    this.content.hidden = true;
  }

  figure() {
    return "curves";
  }

  close() {
    this.news.close();
    this.curves.close();
  }
}
