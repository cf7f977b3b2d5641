// The views of the page, which are loaded when they are first opened. Their interface is described in store.js.

import { UnreachableError } from "../shared/server.js";

/** The file and the class of each view, by its name in addresses. */
const CLASSES = {
  translate: ["translate", "TranslateView"],
  attention: ["attention", "AttentionView"],
  "what-if": ["what_if", "WhatIfView"],
  tree: ["tree", "TreeView"],
  alignment: ["alignment", "AlignmentView"],
  compare: ["compare", "CompareView"],
  training: ["training", "TrainingView"],
  positions: ["positions", "PositionsView"],
};

/** How often loading has failed. Browsers do not load a file again whose import has failed, except by another address. */
let failures = 0;

/** The views that have no model, sentence and translation. */
const WITHOUT_SENTENCE = new Set(["training", "positions"]);

/** The classes that are loaded so far, by the names of the views. */
export const VIEWS = Object.create(null);

export const isView = (name) => Object.hasOwn(CLASSES, name);

export const hasSentence = (name) => !WITHOUT_SENTENCE.has(name);

/** Load a view into VIEWS. Throws UnreachableError if the server does not answer. */
export async function loadView(name) {
  const [file, exported] = CLASSES[name];
  try {
    VIEWS[name] ??= (await import(`./views/${file}.js${failures ? `?attempt=${failures}` : ""}`))[exported];
  } catch (error) {
    failures += 1;
    throw error instanceof TypeError ? new UnreachableError() : error;
  }
  return VIEWS[name];
}
