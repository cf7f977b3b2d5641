// The page: creates its parts and connects them.

import { Alignment } from "./alignment.js";
import { Alternatives } from "./alternatives.js";
import * as copying from "./copying.js";
import { DocumentBox } from "./documents.js";
import { EXAMPLES } from "./examples.js";
import * as files from "./files.js";
import { GlossaryBox } from "./glossary.js";
import { AUTO, Languages } from "./languages.js";
import { locateSentences } from "./sentences.js";
import * as server from "./server.js";
import { SourcePane } from "./source.js";
import * as state from "./state.js";
import { TranslationPane } from "./translation.js";
import { Translating } from "./translating.js";

const element = (id) => document.getElementById(id);
const format = element("format");

const source = new SourcePane(changed, (place) => alignment.point(place, "source"));
const target = new TranslationPane(
  (place, byKey) => alignment.point(place, "target", byKey),
  (number, sentence) =>
    alternatives.open({
      number,
      element: sentence,
      source: target.sentences[number].source,
      now: target.sentences[number].target,
      lang: target.element.lang,
      dir: target.element.dir,
    }),
);
const alignment = new Alignment(
  source,
  target,
  (text, signal) => server.translate({ ...fields(), text, format: "text", alignment: true }, signal),
  (message) => state.announce(message, 100),
);
const alternatives = new Alternatives(
  (text, nbest, signal) => server.translate({ ...fields(), text, format: "text", nbest, beam: nbest }, signal),
  (number, text) => {
    target.replace(number, text);
    alignment.forget(number);
    target.focus(number);
    state.announce(`Chosen: ${text}`, 100);
  },
);
const languages = new Languages(languageChanged);
const glossary = new GlossaryBox(changed);
const translating = new Translating(request, showProgress);
const documents = new DocumentBox(
  (file, signal) => server.translateFile(file, { source: languages.source, target: languages.target }, signal),
  (message) => state.announce(message, 100),
);
/** Extensions of files that the server translates as a whole. */
let whole = [];

/** The fields of a request except its text, with the detected source language if it is known. */
function fields() {
  return { source: languages.known ?? AUTO, target: languages.target, glossary: glossary.given };
}

/** Called when the text, its format or the glossary has changed. */
function changed() {
  alternatives.close();
  alignment.close();
  target.isStale = true;
  if (source.value.trim() && !source.isTooLong && languages.target) {
    translating.later();
    return;
  }
  translating.stop();
  if (!source.value.trim()) {
    show("", []);
    languages.showDetected(null);
    sourceLanguageChanged();
  } else if (source.isTooLong) {
    state.show("failed", "The text is too long");
    state.announce(source.problem.textContent);
  }
}

/** Called when a language was chosen. */
function languageChanged() {
  target.setLanguage(languages.target);
  glossary.open(languages.target, languages.name(languages.target));
  sourceLanguageChanged();
  changed();
}

function sourceLanguageChanged() {
  source.setLanguage(languages.known);
  const swap = element("swap");
  swap.disabled = !languages.canSwap;
  const hint = languages.canSwap
    ? `Swap: translate from ${languages.name(languages.target)} into ${languages.name(languages.known)}`
    : languages.known === null
      ? "Swap: the language of the text is not known yet"
      : `This server does not translate from ${languages.name(languages.target)} into ${languages.name(languages.known)}`;
  swap.title = hint;
  element("swap-hint").textContent = hint;
  const sample = exampleLanguage();
  element("example-line").hidden = sample === null || Boolean(source.value);
  element("clear").hidden = !source.value;
}

/** Request the translation of the text; returns null if there is nothing to translate. */
function request(signal) {
  if (!source.value.trim() || source.isTooLong || !languages.target) return null;
  return translate({ text: source.value, format: format.value, source: languages.source }, signal);
}

/** Translate; if the server does not translate the detected language into the chosen target, choose another target. */
async function translate(given, signal) {
  const attempt = () => server.translate({ ...given, target: languages.target, glossary: glossary.given }, signal);
  try {
    return await attempt();
  } catch (error) {
    if (given.source !== AUTO || error.status !== 400) throw error;
    const [found] = await server.detect(given.text, signal);
    const targets = found ? languages.targets(found.language) : [];
    if (!targets.length || targets.includes(languages.target)) throw error;
    languages.select(AUTO, languages.usual(targets));
    target.setLanguage(languages.target);
    glossary.open(languages.target, languages.name(languages.target));
    return attempt();
  }
}

/** Show the state that `Translating` reports. */
function showProgress(kind, { answer, error, seconds }) {
  element("target-pane").setAttribute("aria-busy", String(kind === "translating"));
  element("clear").hidden = !source.value;
  element("example-line").hidden = Boolean(source.value) || exampleLanguage() === null;
  if (kind === "done") {
    done(answer, seconds);
  } else if (kind === "waiting") {
    const message = `${state.describe(error)}. Trying again in ${state.formatDuration(seconds)}`;
    if (element("state").dataset.state !== "waiting") state.announce(message);
    state.show(kind, message, "Try now");
  } else if (kind === "failed") {
    const needsKey = error.status === 401 || error.status === 403;
    if (needsKey) askForKey(error);
    if (!(error instanceof server.RefusedError)) console.error(error);
    state.show(kind, state.describe(error), needsKey || error.status === 400 ? "" : "Try again");
    state.announce(state.describe(error));
  } else {
    state.show(kind, kind === "translating" ? "Translating …" : "");
  }
}

function done(answer, seconds) {
  const [found] = answer.translations;
  languages.showDetected(languages.source === AUTO ? answer.detected : null);
  sourceLanguageChanged();
  show(found.text, locateSentences(source.value, found.text, found.sentences));
  const unfinished = found.sentences.some(({ finished }) => !finished);
  const time = `Translated in ${seconds < 0.1 ? "0.1" : seconds.toFixed(1)} s`;
  state.show("done", unfinished ? "A sentence was not finished: it may be too long" : time);
  state.announceTranslation(found.text);
}

function show(text, sentences) {
  source.show(sentences);
  target.show(text, sentences);
  alignment.open(sentences);
  element("copy").disabled = !text;
  element("translation-hint").classList.toggle("is-idle", !sentences.length);
}

function swap() {
  if (!languages.canSwap) return;
  const text = target.stale ? source.value : target.text || source.value;
  languages.swap();
  source.value = text;
  languageChanged();
}

function exampleLanguage() {
  const own = [languages.source, navigator.language.split("-")[0], ...languages.sources.keys()];
  return own.find((code) => languages.sources.has(code) && code in EXAMPLES) ?? null;
}

async function opened(file) {
  const found = await files.read(file, source.limit, whole);
  if (found.problem) {
    source.showProblem(found.problem);
    state.announce(found.problem, 100);
    return;
  }
  if (found.whole) {
    if (!source.isTooLong) source.showProblem("");
    documents.translate(file);
    return;
  }
  format.value = found.format;
  put(found.text);
}

function put(text) {
  source.value = text;
  changed();
  source.field.focus();
}

function askForKey(error) {
  element("key-box").hidden = false;
  element("key-message").textContent = error.message;
}

/** Requests the languages and limits of the server until it answers. */
const opening = new Translating(
  (signal) => Promise.all([server.languages(signal), server.settings(signal)]),
  (kind, { answer, error, seconds }) => {
    if (kind === "translating" || kind === "done") state.show("idle");
    if (kind === "waiting" || kind === "failed") showProgress(kind, { error, seconds });
    if (kind !== "done") return;
    const [served, { charLimit, filesTranslation, supportedFilesFormat }] = answer;
    whole = filesTranslation ? supportedFilesFormat : [];
    source.limit = charLimit > 0 ? charLimit : Infinity;
    source.changed();
    languages.open(served);
    languageChanged();
  },
);

format.addEventListener("change", changed);
element("swap").addEventListener("click", swap);
element("clear").addEventListener("click", () => put(""));
element("example").addEventListener("click", () => put(EXAMPLES[exampleLanguage()]));
element("again").addEventListener("click", () => (languages.target ? translating : opening).now());
element("key-box").addEventListener("submit", (event) => {
  event.preventDefault();
  server.useKey(element("key").value);
  element("key-box").hidden = true;
  (languages.target ? translating : opening).now();
});
element("help-button").addEventListener("click", () => element("help").showModal());
element("help-close").addEventListener("click", () => element("help").close());
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || element("help").open) return;
  const act = { Enter: () => translating.now(), ".": swap, "/": () => element("help").showModal() }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
files.watch(opened);
copying.watch(() => target.text, (message) => state.announce(message, 100));
opening.now();
