// What the model predicts if a token is forced, or if heads are switched off.

import { make, token, visible } from "../dom.js";
import { Bars } from "../drawings/bars.js";
import { HeadSwitches } from "../drawings/head_switches.js";
import { connectArrows, setTabStop } from "../roving.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−");

export class WhatIfView {
  static localSettings = new Set();
  static figures = undefined;
  static exported = [["next", "alternatives"], ["effect", "effect of the heads"]];
  static keys = [["← →", "in the output: choose another position"], ["↑ ↓", "in the alternatives: to another token; Enter forces it"], ["← → ↑ ↓", "in the heads: to another head; space switches it"]];

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
    this.undo = make("button", { type: "button", class: "plain", onclick: () => store.set({ prefix: "" }, true) }, "Let the model choose all tokens");
    this.restore = make("button", { type: "button", class: "plain", onclick: () => store.set({ off: [] }, true) }, "Switch all heads on");
    this.title = make("h2", { class: "head-title" });
    const alternatives = make("section", { class: "single", "aria-label": "Alternatives" }, this.title, make("p", { class: "small muted" }, "Choose a token to force it: the rest of the output is searched again."));
    this.switchBox = make("section", { class: "single", "aria-label": "Heads" }, make("h2", { class: "head-title" }, "Heads"), make("p", { class: "small muted" }, "Switch heads off, and see how the output changes."), this.restore);
    this.effectBox = make("section", { class: "single effect", "aria-label": "Effect of the heads", hidden: true }, make("h2", { class: "head-title" }, "Change of the log-probability of each token of the original output"));
    this.content = make(
      "div",
      { hidden: true, class: "what-if" },
      make(
        "section",
        { class: "single outputs", "aria-label": "Output" },
        make("p", {}, make("span", { class: "output-name small muted" }, "Originally"), this.before, this.beforeScore),
        make("div", { class: "now" }, make("span", { class: "output-name small muted" }, "Now"), this.tokens, this.afterScore, this.undo),
        this.change,
      ),
      make("div", { class: "columns" }, make("div", { class: "stack" }, alternatives, this.effectBox), this.switchBox),
    );
    root.append(this.content);
    this.bars = new Bars(alternatives, (index) => this.force(index));
    this.switches = new HeadSwitches(this.switchBox, (off) => store.set({ off }, true));
    this.effect = new Bars(this.effectBox);
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    const model = modelOf(this.context.workspace, state);
    if (model && !model.verbs.some((verb) => verb === "translate" || verb === "generate")) return `${model.name} is a ${model.kind}, which generates no tokens`;
    return state.source?.trim() ? "" : "Enter a sentence to force tokens of its translation, or to switch heads off";
  }

  show({ facts, figures }, state) {
    this.facts = facts;
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
    this.undo.hidden = !forced;
    this.restore.hidden = !facts.off.length;
    this.showChange(before, after, change, facts.off);
    this.title.textContent = `Alternatives at position ${position}`;
    this.bars.show(figures.next, (index) => facts.alternatives[index] !== null);
    this.switches.show(facts.heads, facts.off);
    this.effectBox.hidden = figures.effect === undefined;
    if (figures.effect) this.effect.show(figures.effect);
    this.form.target.field.placeholder = state.target ? "empty: the model's own translation" : before.text;
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

  figure() {
    return "next";
  }

  close() {}
}
