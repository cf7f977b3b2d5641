// What the model predicts if a token is forced, or if heads are switched off.

import { menu } from "../controls.js";
import { make, token, visible } from "../dom.js";
import { Bars } from "../drawings/bars.js";
import { HeadSwitches } from "../drawings/head_switches.js";
import { LensTable } from "../drawings/lens.js";
import { connectArrows, setTabStop } from "../roving.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−");

export class WhatIfView {
  static localSettings = new Set();
  static figures = undefined;
  static exported = [["next", "alternatives"], ["lens", "layers"], ["effect", "effect of the heads"]];
  static keys = [
    ["← →", "in the output: to another position; Enter chooses it"],
    ["↑ ↓", "in the alternatives: to another token; Enter forces it"],
    ["← → ↑ ↓", "in the layers: to another cell; Enter chooses its layer and position"],
    ["← → ↑ ↓", "in the heads: to another head; space switches it"],
    ["Ctrl z", "undo the last forced token or switched head"],
  ];

  constructor(root, context) {
    const { store } = context;
    this.context = context;
    this.form = new SentenceForm(root, context);
    this.before = make("bdi", { class: "output" });
    this.beforeScore = make("span", { class: "small muted" });
    this.tokens = make("div", { class: "token-row", role: "group", "aria-label": "Tokens of the output" });
    this.afterScore = make("span", { class: "small muted" });
    this.change = make("p", { class: "change", role: "status" });
    connectArrows(this.tokens, () => [this.buttons ?? []]);
    this.past = []; // the changes before the current one, for the same sentence
    this.undo = make("button", { type: "button", class: "plain", hidden: true, onclick: () => this.undoChange() }, "Undo");
    this.release = make("button", { type: "button", class: "plain", onclick: () => store.set({ prefix: "" }, true) }, "Let the model choose all tokens");
    this.restore = make("button", { type: "button", class: "plain", onclick: () => store.set({ off: [] }, true) }, "Switch all heads on");
    this.title = make("h2", { class: "head-title" });
    this.layer = menu(store, "layer", "Predicted after", []);
    const alternatives = make("section", { class: "single", "aria-label": "Alternatives" }, this.title, this.layer, make("p", { class: "small muted" }, "Choose a token to force it: the rest of the output is searched again."));
    this.switchBox = make("section", { class: "single", "aria-label": "Heads" }, make("h2", { class: "head-title" }, "Heads"), make("p", { class: "small muted" }, "Switch heads off, and see how the output changes."), this.restore);
    this.lensNote = make("p", { class: "small muted" });
    this.lensBox = make("div");
    const layers = make("section", { class: "single layers", "aria-label": "Layers" }, make("h2", { class: "head-title" }, "What the decoder would predict after each layer"), this.lensNote, this.lensBox);
    this.effectBox = make("section", { class: "single effect", "aria-label": "Effect of the heads", hidden: true }, make("h2", { class: "head-title" }, "Change of the log-probability of each token of the original output"));
    this.content = make(
      "div",
      { hidden: true, class: "what-if" },
      make(
        "section",
        { class: "single outputs", "aria-label": "Output" },
        make("p", {}, make("span", { class: "output-name small muted" }, "Originally"), this.before, this.beforeScore),
        make("div", { class: "now" }, make("span", { class: "output-name small muted" }, "Now"), this.tokens, this.afterScore),
        this.change,
        make("div", { class: "actions" }, this.undo, this.release),
      ),
      layers,
      make("div", { class: "columns" }, make("div", { class: "stack" }, alternatives, this.effectBox), this.switchBox),
    );
    root.append(this.content);
    root.addEventListener("keydown", (event) => this.onKeydown(event));
    this.lens = new LensTable(this.lensBox, ({ layer, position }) => this.choose(layer, position));
    this.bars = new Bars(alternatives, (index) => this.force(index));
    this.switches = new HeadSwitches(this.switchBox, (off) => store.set({ off }, true));
    this.effect = new Bars(this.effectBox);
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    const model = modelOf(this.context.workspace, state);
    if (model && !model.abilities.some((each) => each === "translate" || each === "generate")) return `${model.name} is a ${model.kind}, which generates no tokens`;
    return state.source?.trim() ? "" : "Enter a sentence to force tokens of its translation, or to switch heads off";
  }

  show({ facts, figures }, state) {
    this.facts = facts;
    this.remember(state);
    this.content.hidden = false;
    const { before, after, change, position } = facts;
    this.before.textContent = before.text || "(empty)";
    this.beforeScore.textContent = `log-probability ${signed(before.log_probability)}`;
    this.afterScore.textContent = `log-probability ${signed(after.log_probability)}`;
    const hadFocus = this.tokens.contains(document.activeElement);
    const forced = state.prefix ? state.prefix.split(".").length : 0;
    this.buttons = after.tokens.map((text, index) => this.tokenButton(text, index, position, forced, after.log_probabilities[index]));
    this.tokens.replaceChildren(...this.buttons);
    setTabStop([this.buttons], this.buttons[position - 1]);
    if (hadFocus) this.buttons[position - 1].focus();
    this.release.hidden = !forced;
    this.undo.hidden = !this.past.length;
    this.restore.hidden = !facts.off.length;
    this.showChange(before, after, change, facts.off);
    this.showLens(figures.lens);
    this.title.textContent = `Alternatives at position ${position}`;
    this.bars.show(figures.next, (index) => facts.alternatives[index] !== null);
    this.switches.show(facts.heads, facts.off);
    this.effectBox.hidden = figures.effect === undefined;
    if (figures.effect) this.effect.show(figures.effect);
    this.form.target.field.placeholder = state.target ? "empty: the model's own translation" : before.text;
  }

  /** Show the predictions after each layer. figure: undefined for a model that has none. */
  showLens(figure) {
    const { position, layer, without_lens: absence } = this.facts;
    this.lensBox.hidden = this.layer.hidden = figure === undefined;
    this.lensNote.textContent = figure ? "Choose a cell to see its alternatives. Tokens in bold are those of the output." : `Not available: ${absence}`;
    if (figure === undefined) return;
    this.last = figure.layers.length - 1;
    const names = figure.layers.map((name, index) => [index === this.last ? "" : String(index), index === this.last ? `${name} (the prediction)` : name]);
    this.layer.setOptions(names.reverse());
    this.layer.show(layer === null || layer === this.last ? "" : String(layer));
    this.lens.show(figure, layer ?? this.last, position - 1);
  }

  /** Keep the change before the current one, unless the sentence is another one. */
  remember(state) {
    const { model, source, target, to, prefix = "", off = [] } = state;
    const sentence = JSON.stringify([model, source, target, to]);
    const change = { prefix, off: [off].flat() };
    if (sentence !== this.sentence) this.past = [];
    else if (!this.isUndoing && JSON.stringify(change) !== JSON.stringify(this.current)) this.past.push(this.current);
    this.isUndoing = false;
    this.sentence = sentence;
    this.current = change;
  }

  undoChange() {
    if (!this.past.length) return;
    this.isUndoing = true;
    if (document.activeElement === this.undo && this.past.length === 1) this.buttons[this.facts.position - 1].focus();
    this.context.store.set(this.past.pop(), true);
    this.context.announce("The last change is undone");
  }

  onKeydown(event) {
    const isTyping = event.target.matches("textarea, input, select");
    if (isTyping || event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.undoChange();
  }

  /** Choose a layer and a position, both from 0, whose alternatives are shown. */
  choose(layer, position) {
    this.context.store.set({ layer: layer === this.last ? "" : layer, position: position ? position + 1 : "" }, true);
  }

  showChange(before, after, change, off) {
    const parts = [];
    if (off.length) {
      const names = `${off.length} ${off.length === 1 ? "head is" : "heads are"} off: the log-probability of the original output changes by Δ = ${signed(change)}`;
      parts.push(names, before.text === after.text ? ", and the output stays the same." : ", and the output changes.");
    } else if (before.text !== after.text) {
      parts.push(`With the forced tokens, the log-probability is ${signed(after.log_probability)} instead of ${signed(before.log_probability)}.`);
    }
    this.change.replaceChildren(...parts);
    this.change.hidden = !parts.length;
  }

  tokenButton(text, index, position, forced, logProbability) {
    const label = `${visible(text)}, position ${index + 1}, probability ${Math.exp(logProbability).toFixed(3)}${index < forced ? ", forced" : ""}`;
    return make(
      "button",
      { type: "button", class: index < forced ? "token is-forced" : "token", "aria-pressed": String(index === position - 1), "aria-label": label, title: label, onclick: () => this.context.store.set({ position: index ? index + 1 : "" }, true) },
      token(text),
    );
  }

  /** Force a token at the position. The tokens before it stay as they are. */
  force(index) {
    const { after, position, alternatives } = this.facts;
    const prefix = [...after.ids.slice(0, position - 1), alternatives[index]].join(".");
    this.context.store.set({ prefix }, true);
  }

  update() {}

  clear() {
    this.content.hidden = true;
  }

  figure(content, state) {
    return state.layer !== undefined && content.figures.lens ? "lens" : "next";
  }

  close() {}
}
