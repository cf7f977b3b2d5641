// The tree of a beam search: replayed step by step, with the best path, the greedy path, and the parts of the scores.

import { menu, number } from "../controls.js";
import { make, newId } from "../dom.js";
import { SearchTree } from "../drawings/search_tree.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

/** The time for which a step is shown during a replay, in milliseconds. */
const STEP_DURATION = 700;

export class TreeView {
  static localSettings = new Set(["step"]);
  static figures = undefined;
  static exported = [["tree", "search tree"]];
  static keys = [["← →", "in the tree: to the parent, to the best child"], ["↑ ↓", "to the next hypothesis of the same step"], ["Home End", "to the start, to the end of the best translation"]];

  constructor(root, context) {
    const { store } = context;
    this.context = context;
    this.form = new SentenceForm(root, context, false);
    this.beam = number(store, "beam", "Beam size", { min: 1, max: 32, otherwise: 4 });
    this.penalty = menu(store, "penalty", "Length penalty", [["", "the model's own"], ["none", "none"], ["mean", "mean per token"], ["0.6", "α = 0.6"], ["1.0", "α = 1"]]);
    const shrinking = make("input", { type: "checkbox", onchange: () => store.set({ shrinking: shrinking.checked ? "true" : "" }, true) });
    this.shrinking = shrinking;
    const slider = newId();
    this.slider = make("input", { type: "range", id: slider, min: 1, step: 1, oninput: () => this.goTo(Number(this.slider.value)) });
    this.play = make("button", { type: "button", class: "plain", onclick: () => this.togglePlay() }, "Play");
    this.stepText = make("output", { for: slider, class: "small" });
    this.outcomes = make("tbody");
    const heads = ["Translation", "Log-probability", "Penalty", "Score"].map((name) => make("th", { scope: "col" }, name));
    this.legend = make(
      "ul",
      { class: "legend small tree-legend" },
      ...[["is-best", "best translation"], ["is-greedy", "greedy search"]].map(([kind, text]) => make("li", {}, make("span", { class: `edge-sample ${kind}`, "aria-hidden": "true" }), text)),
      make("li", {}, "■ finished"),
      make("li", {}, make("span", { class: "node-sample", "aria-hidden": "true" }), "pruned"),
      make("li", {}, "✕ forbidden"),
    );
    this.note = make("p", { class: "small", hidden: true });
    const drawing = make("section", { class: "single", "aria-label": "Search tree" }, this.legend);
    this.content = make(
      "div",
      { hidden: true },
      make("div", { class: "replay" }, this.play, make("label", { for: slider, class: "small muted" }, "Step"), this.slider, this.stepText),
      drawing,
      this.note,
      make("div", { class: "table-scroll outcomes", role: "region", tabindex: "0", "aria-label": "Translations and their scores" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), this.outcomes)),
    );
    root.append(make("div", { class: "controls" }, this.beam, this.penalty, make("label", { class: "check" }, shrinking, "Finished hypotheses shrink the beam")), this.content);
    this.tree = new SearchTree(drawing, context.announce);
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    this.beam.show(state.beam ?? 4);
    this.penalty.show(state.penalty ?? "");
    this.shrinking.checked = state.shrinking === "true";
    const model = modelOf(this.context.workspace, state);
    if (model && !model.verbs.includes("translate")) return `${model.name} is a ${model.kind}, which does not search for translations`;
    return state.source?.trim() ? "" : "Enter a sentence to see how the model searches for its translation";
  }

  show({ figures }, state) {
    this.stop();
    this.content.hidden = false;
    const figure = figures.tree;
    this.tree.show(figure);
    this.slider.max = this.tree.steps;
    this.outcomes.replaceChildren(
      ...figure.outcomes.map(({ text, log_probability: own, penalty, score }) =>
        make("tr", {}, make("td", {}, make("bdi", {}, text)), ...[own, penalty, score].map((value) => make("td", {}, value.toFixed(3).replace("-", "−")))),
      ),
    );
    this.explainGreedy(figure);
    this.update(state);
  }

  /** Say whether the greedy path leaves the best path, and where. */
  explainGreedy({ best_path: best, greedy_path: greedy, greedy_is_cut: isCut, pieces }) {
    const place = greedy.findIndex((node, index) => best[index] !== node);
    this.note.hidden = place < 1 && !isCut;
    if (place < 1) return;
    const [chosen, better] = [pieces[greedy[place]], pieces[best[place]] ?? "the end"];
    this.note.replaceChildren(
      `In step ${place}, greedy search chooses `, make("bdi", { class: "word-mark" }, chosen), ", and the best translation continues with ", make("bdi", { class: "word-mark" }, better), ".",
      isCut ? " The beam then prunes the greedy path." : "",
    );
  }

  update(state) {
    this.form.show(state);
    const step = Math.min(Number(state.step ?? 0), this.tree.steps);
    this.tree.limit(step);
    this.slider.value = step || this.tree.steps;
    this.stepText.textContent = `${this.slider.value} of ${this.tree.steps}`;
  }

  goTo(step) {
    this.stop();
    this.context.store.set({ step: step === this.tree.steps ? "" : step });
  }

  togglePlay() {
    if (this.timer) {
      this.stop();
      return;
    }
    const current = Number(this.slider.value);
    let step = current === this.tree.steps ? 1 : current;
    this.play.textContent = "Pause";
    const advance = () => {
      this.context.store.set({ step: step === this.tree.steps ? "" : step });
      if (step === this.tree.steps) this.stop();
      step += 1;
    };
    this.timer = setInterval(advance, STEP_DURATION);
    advance();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.play.textContent = "Play";
  }

  clear() {
    this.stop();
    this.content.hidden = true;
  }

  figure() {
    return "tree";
  }

  close() {
    this.stop();
  }
}
