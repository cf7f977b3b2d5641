// A menu of the translation models, and a slider over the checkpoints of the chosen run.

import { make, newId } from "./dom.js";
import { runOf } from "./sentence_form.js";

export class ModelChoice {
  /** onChoose: called with the name of a model, and whether it comes from the slider. */
  constructor(label, workspace, onChoose) {
    this.workspace = workspace;
    const [menu, slider] = [newId(), newId()];
    const models = workspace.models.filter(({ abilities }) => abilities.includes("translate")).map(({ name }) => name);
    this.models = new Set(models);
    const runs = Object.keys(workspace.checkpoints).filter((name) => !this.models.has(name) && workspace.checkpoints[name].length);
    const options = [...models, ...runs].map((name) => make("option", { value: name }, name));
    this.menu = make("select", { id: menu, class: "choice", onchange: () => onChoose(this.latest(this.menu.value), false) }, ...options);
    this.slider = make("input", { type: "range", id: slider, min: 0, step: 1, oninput: () => onChoose(this.choices[Number(this.slider.value)], true) });
    this.output = make("output", { for: slider, class: "small" });
    this.checkpoints = make("div", { class: "slider" }, make("label", { for: slider, class: "small muted" }, "Checkpoint"), make("div", {}, this.slider, this.output));
    this.element = make("div", { class: "side", role: "group", "aria-label": label }, make("div", { class: "control" }, make("label", { for: menu, class: "small muted" }, label), this.menu), this.checkpoints);
  }

  /** Return the name of a model, or of the last checkpoint of a run that has no model yet. */
  latest(name) {
    return this.models.has(name) ? name : `${name}@${this.workspace.checkpoints[name].at(-1)}`;
  }

  /** Show a model or checkpoint. steps: those of the checkpoints that its run has now. */
  show(name, steps) {
    this.name = name;
    const run = this.models.has(name) ? name : runOf(name);
    this.menu.value = run;
    const known = steps ?? this.workspace.checkpoints[run] ?? [];
    this.choices = [...known.map((step) => `${run}@${step}`), ...(this.models.has(run) ? [run] : [])];
    this.checkpoints.hidden = !known.length;
    this.slider.max = this.choices.length - 1;
    this.slider.value = this.choices.indexOf(name);
    this.output.textContent = name === run ? "model of the run" : `step ${Number(name.slice(run.length + 1)).toLocaleString("en")}`;
    this.slider.setAttribute("aria-valuetext", this.output.textContent);
  }
}
