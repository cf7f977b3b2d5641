// The views of the page, in the order of the navigation. The interface is described in store.js.

import { AttentionView } from "./views/attention.js";
import { TrainingView } from "./views/training.js";
import { TranslateView } from "./views/translate.js";
import { TreeView } from "./views/tree.js";
import { WhatIfView } from "./views/what_if.js";

/** The class of each view by its name in addresses. */
export const VIEWS = {
  translate: TranslateView,
  attention: AttentionView,
  "what-if": WhatIfView,
  tree: TreeView,
  training: TrainingView,
};
