// The tree of a beam search: replayed step by step, with the paths of greedy and exact search, and the parts of the scores.

import { menu, number } from "../controls.js";
import { make, newId } from "../dom.js";
import { SearchTree } from "../drawings/search_tree.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

/** The time for which a step is shown during a replay, in milliseconds. */
const STEP_DURATION = 700;

/** The trees of the lecture, which need no model. */
const EXAMPLES = [["", "translations of a model"], ["deck-004", "deck 004's tree: ok and yes"], ["hidden", "a tree that needs a beam of 3"]];
const PENALTIES = [["", "the model's own"], ["none", "none"], ["mean", "mean per token"], ["0.6", "α = 0.6"], ["1.0", "α = 1"]];
/** The numbers of prefixes that exact search may expand. */
const EXACT = [["", "no"], ["1000", "up to 1,000 prefixes"], ["10000", "up to 10,000 prefixes"], ["100000", "up to 100,000 prefixes"]];

export class TreeView {
  static localSettings = new Set(["step"]);
  static figures = undefined;
  static exported = [["tree", "search tree"]];
  static keys = [["← →", "in the tree: to the parent, to the best child"], ["↑ ↓", "to the next hypothesis of the same step"], ["Home End", "to the start, to the end of the best translation"]];

  constructor(root, context) {
    const { store } = context;
    this.context = context;
    this.form = new SentenceForm(root, context, null);
    this.example = menu(store, "example", "Search among", EXAMPLES, { step: "" });
    this.exact = menu(store, "exact", "Exact search", EXACT);
    this.beam = number(store, "beam", "Beam size", { min: 1, max: 32, otherwise: 4 });
    this.penalty = menu(store, "penalty", "Length penalty", PENALTIES);
    const shrinking = make("input", { type: "checkbox", onchange: () => store.set({ shrinking: shrinking.checked ? "true" : "" }, true) });
    this.shrinking = shrinking;
    const slider = newId();
    this.slider = make("input", { type: "range", id: slider, min: 1, step: 1, oninput: () => this.goTo(Number(this.slider.value)) });
    this.play = make("button", { type: "button", class: "plain", onclick: () => this.togglePlay() }, "Play");
    this.stepText = make("output", { for: slider, class: "small" });
    this.outcomes = make("tbody");
    const heads = ["Search", "Translation", "Log-probability", "Penalty", "Score"].map((name) => make("th", { scope: "col" }, name));
    this.legend = make(
      "ul",
      { class: "legend small tree-legend" },
      ...[["is-best", "best translation"], ["is-greedy", "greedy search"], ["is-exact", "exact search"]].map(([kind, text]) =>
        make("li", { class: `of-${kind}` }, make("span", { class: `edge-sample ${kind}`, "aria-hidden": "true" }), text),
      ),
      make("li", {}, "■ finished"),
      make("li", {}, make("span", { class: "node-sample", "aria-hidden": "true" }), "pruned"),
      make("li", {}, "✕ forbidden"),
    );
    this.note = make("p", { class: "small", hidden: true });
    this.verdict = make("p", { class: "verdict", hidden: true });
    const drawing = make("section", { class: "single", "aria-label": "Search tree" }, this.legend);
    this.content = make(
      "div",
      { hidden: true },
      make("div", { class: "replay" }, this.play, make("label", { for: slider, class: "small muted" }, "Step"), this.slider, this.stepText),
      drawing,
      this.verdict,
      this.note,
      make("div", { class: "table-scroll outcomes", role: "region", tabindex: "0", "aria-label": "Translations and their scores" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), this.outcomes)),
    );
    root.append(make("div", { class: "controls" }, this.example, this.beam, this.penalty, this.exact, make("label", { class: "check" }, shrinking, "Finished hypotheses shrink the beam")), this.content);
    this.tree = new SearchTree(drawing, context.announce);
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    this.form.box.hidden = Boolean(state.example);
    this.example.show(state.example ?? "");
    const exact = state.exact ?? "";
    this.exact.setOptions(EXACT.some(([value]) => value === exact) ? EXACT : [...EXACT, [exact, `up to ${exact} prefixes`]]);
    this.exact.show(exact);
    this.beam.show(state.beam ?? 4);
    this.penalty.setOptions(state.example ? [["", "as on the slide: none"], ...PENALTIES.slice(1)] : PENALTIES);
    this.penalty.show(state.penalty ?? "");
    this.shrinking.checked = state.shrinking === "true";
    if (state.example) return "";
    const model = modelOf(this.context.workspace, state);
    if (!model && !state.model) return "No model is open: choose one of the lecture's trees";
    if (model && !model.abilities.includes("translate")) return `${model.name} is a ${model.kind}, which does not search for translations`;
    return state.source?.trim() ? "" : "Enter a sentence to see how the model searches for its translation";
  }

  show({ figures, facts }, state) {
    this.stop();
    this.content.hidden = false;
    const figure = figures.tree;
    this.tree.show(figure);
    this.slider.max = this.tree.steps;
    const { greedy, beam, exact } = facts;
    const isGreedy = beam.length === 1 && beam[0].text === greedy.text;
    const rows = [...(isGreedy ? [] : [["greedy", greedy]]), ...beam.map((each, index) => [`beam, rank ${index + 1}`, each]), ...(exact ? [["exact", exact]] : [])];
    this.outcomes.replaceChildren(
      ...rows.map(([name, each]) =>
        make("tr", { class: beam[0] === each && "is-best" }, make("th", { scope: "row" }, name), make("td", {}, make("bdi", {}, each.text)), ...[each.log_probability, each.penalty, each.score].map((value) => make("td", {}, signed(value)))),
      ),
    );
    this.legend.querySelector(".of-is-exact").hidden = !exact;
    this.judge(facts, figure, state);
    this.explainGreedy(figure);
    this.update(state);
  }

  /** Say whether the search or the model is to blame if the best translation is wrong. */
  judge({ beam: [best], exact, bound, verdict }, figure, { exact: limit }) {
    this.verdict.hidden = !verdict;
    if (!verdict) return;
    const open = bound !== null && bound > exact.score ? ` Exact search stopped after ${Number(limit).toLocaleString("en")} prefixes, and scores up to ${signed(bound)} are not excluded.` : "";
    const parts = {
      "search error": ["Search error: ", make("bdi", { class: "word-mark" }, exact.text), ` has a higher score (${signed(exact.score)}) than the best translation of the beam (${signed(best.score)}).`, ...this.lost(figure)],
      "no search error": ["No search error: no translation has a higher score than the best one of the beam. If it is wrong, the model errs."],
      open: ["Open: exact search has found no translation with a higher score than the best one of the beam."],
    };
    this.verdict.replaceChildren(...parts[verdict], open);
  }

  /** Say where the beam lost the best translation of the exact search. */
  lost({ exact_path: path, pieces, fates, arrays }) {
    const node = path.at(-1);
    const step = arrays.step.data[node];
    if (!fates[arrays.fate.data[node]].startsWith("pruned")) return [` After step ${step}, its next token was not among the best continuations.`];
    return [` In step ${step}, the beam pruned its token `, make("bdi", { class: "word-mark" }, pieces[node]), "."];
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

function signed(value) {
  return value.toFixed(3).replace("-", "−");
}
