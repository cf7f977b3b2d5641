// The fields of a source sentence and of a translation to inspect, for the views of one sentence.

import { direction, tag } from "../shared/languages.js";
import { EXAMPLES } from "../shared/examples.js";
import { make, newId } from "./dom.js";

export class SentenceForm {
  /** root: the element to fill. context: see store.js. hasTarget: whether the view shows a given translation. */
  constructor(root, { store, workspace }, hasTarget = true) {
    this.hasTarget = hasTarget;
    this.store = store;
    this.workspace = workspace;
    this.source = field("Sentence", () => store.set({ source: this.source.field.value, target: "" }));
    this.target = field("Translation to inspect", () => store.set({ target: this.target.field.value }));
    this.target.field.placeholder = "empty: the model's own translation";
    this.example = make("button", { type: "button", class: "plain", onclick: () => this.useExample() }, "Try an example");
    this.box = make("div", { class: hasTarget ? "sentence-form" : "sentence-form is-single" }, this.source, this.target, this.example);
    root.append(this.box);
  }

  show(state) {
    const model = modelOf(this.workspace, state);
    const [source, target] = model?.languages ?? [null, null];
    this.model = model;
    this.target.hidden = !this.hasTarget || !model?.verbs.includes("translate");
    showText(this.source.field, state.source ?? "", source);
    showText(this.target.field, state.target ?? "", target);
    this.example.hidden = Boolean(state.source) || !(source in EXAMPLES);
  }

  useExample() {
    const [first] = EXAMPLES[this.model.languages[0]].split(/(?<=[.!?])\s/);
    this.store.set({ source: first, target: "" }, true);
    this.source.field.focus();
  }
}

/** Return the model of a state, or undefined if no model has its name. */
export function modelOf(workspace, state) {
  return state.model ? workspace.models.find(({ name }) => name === state.model) : workspace.models[0];
}

function field(label, onInput) {
  const id = newId();
  const input = make("textarea", { id, rows: 1, class: "line", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", onInput);
  input.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  const box = make("div", { class: "labelled" }, make("label", { for: id, class: "small muted" }, label), input);
  box.field = input;
  return box;
}

function showText(input, text, language) {
  if (input.value !== text && document.activeElement !== input) input.value = text;
  input.lang = language ? tag(language) : "";
  input.dir = language ? direction(language) : "auto";
}
