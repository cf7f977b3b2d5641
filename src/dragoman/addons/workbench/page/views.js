// The views of the page, which are loaded when they are first opened. Their interface is described in store.js.

import { UnreachableError } from "../shared/server.js";

/** Load the class of each view, by its name in addresses. */
const LOADERS = {
  translate: async () => (await import("./views/translate.js")).TranslateView,
  attention: async () => (await import("./views/attention.js")).AttentionView,
  "what-if": async () => (await import("./views/what_if.js")).WhatIfView,
  tree: async () => (await import("./views/tree.js")).TreeView,
  alignment: async () => (await import("./views/alignment.js")).AlignmentView,
  compare: async () => (await import("./views/compare.js")).CompareView,
  training: async () => (await import("./views/training.js")).TrainingView,
  positions: async () => (await import("./views/positions.js")).PositionsView,
};

/** The views that have no model, sentence and translation. */
const WITHOUT_SENTENCE = new Set(["training", "positions"]);

/** The classes that are loaded so far, by the names of the views. */
export const VIEWS = Object.create(null);

export const isView = (name) => Object.hasOwn(LOADERS, name);

export const hasSentence = (name) => !WITHOUT_SENTENCE.has(name);

/** Load a view into VIEWS. Throws UnreachableError if the server does not answer. */
export async function loadView(name) {
  try {
    VIEWS[name] ??= await LOADERS[name]();
  } catch (error) {
    throw error instanceof TypeError ? new UnreachableError() : error;
  }
  return VIEWS[name];
}
