// The main module, which loads the list of models, and shows the view that the address names.

import { RequestScheduler } from "../shared/scheduler.js";
import { request } from "../shared/server.js";
import { Announcer, StateLine, describe } from "../shared/state.js";
import { make } from "./dom.js";
import { Frame } from "./frame.js";
import { modelOf, runOf } from "./sentence_form.js";
import { Store } from "./store.js";
import { VIEWS, hasSentence, isView } from "./views.js";

const element = (id) => document.getElementById(id);

const KEYS = [
  ["?", "open this list"],
  ["1 … 8", "open a view, in the order of the navigation"],
  ["Tab", "move through the page in reading order; each picture is one tab stop"],
  ["Alt ←", "undo: return to the state before"],
];

const announcer = new Announcer(element("announced"));
const store = new Store(location, history, show, hasSentence);
const startLine = element("startup");
const startState = new StateLine({
  line: startLine,
  text: startLine.querySelector(".state-text"),
  retry: startLine.querySelector("button"),
});
let frame;
let workspace;

/** Requests the list of views, models and runs until the server responds. */
const startup = new RequestScheduler(
  (signal) => request("workspace", undefined, signal),
  (kind, { response, error, seconds }) => {
    if (kind === "translating") startState.show(kind, "Loading …");
    if (kind === "waiting") startState.show(kind, `${describe(error)}. Trying again in ${seconds} s`, "Try now");
    if (kind === "failed") startState.show(kind, describe(error), "Try again");
    if (kind === "done") open(response);
  },
);

function open(response) {
  workspace = { ...response, views: Object.fromEntries(Object.entries(response.views).filter(([name]) => isView(name))) };
  startLine.remove();
  const { models, runs } = workspace;
  element("model").replaceChildren(...models.map(({ name }) => make("option", { value: name }, name)));
  element("views").replaceChildren(...Object.entries(workspace.views).map(([name, title]) => tab(name, title)));
  store.read();
  if (store.state.view) show(store.state);
  else store.set({ view: models.length ? "translate" : runs.length ? "training" : "positions" });
}

function tab(name, title) {
  const link = make("a", { href: `#view=${name}` }, title);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    store.open(name);
  });
  link.dataset.view = name;
  return make("li", {}, link);
}

/** Show a state of the store. */
function show(state, isFromAddress) {
  if (workspace === undefined) return;
  for (const link of element("views").querySelectorAll("a")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showModel(state);
  if (frame?.view !== state.view) {
    frame?.close();
    frame = new Frame(element("view"), state.view, { store, workspace, announce: (message) => announcer.announce(message, 100) });
    document.title = `${workspace.views[state.view] ?? "Unknown view"} – dragoman workbench`;
  }
  frame.show(state, isFromAddress);
}

/** Select the model of a state in the menu, which also lists a checkpoint that a state names. */
function showModel(state) {
  const menu = element("model");
  menu.querySelector("[data-checkpoint]")?.remove();
  const { models, checkpoints } = workspace;
  const isCheckpoint = !models.some(({ name }) => name === state.model) && runOf(state.model ?? "") in checkpoints;
  if (isCheckpoint) menu.append(make("option", { value: state.model, "data-checkpoint": "" }, state.model));
  menu.value = isCheckpoint ? state.model : (modelOf(workspace, state)?.name ?? models[0]?.name ?? "");
  element("model-box").hidden = menu.options.length < 2;
}

function openKeys() {
  const own = VIEWS[store.state.view]?.keys ?? [];
  element("help-keys").replaceChildren(
    ...[...KEYS, ...own].map(([keys, meaning]) =>
      make("div", {}, make("dt", {}, ...keys.split(" ").map((key) => (key === "…" ? " … " : make("kbd", {}, key)))), make("dd", {}, meaning)),
    ),
  );
  element("help").showModal();
}

element("model").addEventListener("change", ({ target }) => store.set({ model: target.value, target: "" }, true));
element("help-button").addEventListener("click", openKeys);
element("help-close").addEventListener("click", () => element("help").close());
element("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the state
  element("view").focus();
});
startState.retry.addEventListener("click", () => startup.runNow());
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=range]), textarea, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || element("help").open) return;
  const view = Object.keys(workspace?.views ?? {})[Number(event.key) - 1];
  if (event.key === "?") openKeys();
  else if (view) store.open(view);
  else return;
  event.preventDefault();
});
startup.runNow();
