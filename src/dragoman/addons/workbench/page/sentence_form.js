// The fields of a source sentence and of a translation, for the views of one sentence.

import { direction, tag } from "../shared/languages.js";
import { EXAMPLES } from "../shared/examples.js";
import { make, newId } from "./dom.js";

/** The field of a translation that replaces the model's own. */
const TARGET = { name: "target", label: "Translation to inspect", placeholder: "empty: the model's own translation" };

export class SentenceForm {
  /**
   * root: the element to fill. context: see store.js. translation: the setting, label and placeholder of the field of a
   * translation; null for none.
   */
  constructor(root, { store, workspace }, translation = TARGET) {
    this.translation = translation;
    this.store = store;
    this.workspace = workspace;
    this.source = field("Sentence", () => store.set({ source: this.source.field.value, target: "" }));
    this.target = field(translation?.label ?? "", () => store.set({ [translation.name]: this.target.field.value }));
    this.target.field.placeholder = translation?.placeholder ?? "";
    this.example = make("button", { type: "button", class: "plain", onclick: () => this.useExample() }, "Try an example");
    this.box = make("div", { class: translation ? "sentence-form" : "sentence-form is-single" }, this.source, this.target, this.example);
    root.append(this.box);
  }

  show(state) {
    const model = modelOf(this.workspace, state);
    const [source, target] = model?.languages ?? [null, null];
    this.model = model;
    this.target.hidden = !this.translation || model?.abilities.includes("translate") === false;
    showText(this.source.field, state.source ?? "", source);
    showText(this.target.field, state[this.translation?.name] ?? "", target);
    this.example.hidden = Boolean(state.source) || !(source in EXAMPLES);
  }

  useExample() {
    const [first] = EXAMPLES[this.model.languages[0]].split(/(?<=[.!?])\s/);
    this.store.set({ source: first, target: "", ...(this.translation ? { [this.translation.name]: "" } : {}) }, true);
    this.source.field.focus();
  }
}

/** Return the model of a state, that of the run for a checkpoint, or undefined if no model has its name. */
export function modelOf({ models }, { model }) {
  if (!model) return models[0];
  return models.find(({ name }) => name === model) ?? models.find(({ name }) => name === runOf(model));
}

/** Return the name of the run of a checkpoint, such as `ende` for `ende@500`; other names are returned as they are. */
export function runOf(model) {
  return model.replace(/@\d+$/, "");
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
