// The main module, which creates the parts of the page and connects them.

import { Alignment } from "./alignment.js";
import { Alternatives } from "./alternatives.js";
import * as copying from "./copying.js";
import { DocumentBox } from "./documents.js";
import { EXAMPLES } from "./examples.js";
import * as files from "./files.js";
import { GlossaryBox } from "./glossary.js";
import { AUTO, Languages } from "./languages.js";
import { RequestScheduler } from "./scheduler.js";
import { locateSentences } from "./sentences.js";
import * as server from "./server.js";
import { SourcePane } from "./source.js";
import { Announcer, StateLine, describe, detailOf, formatDuration } from "./state.js";
import { fillPage, formatNumber, say } from "./texts.js";
import { TranslationPane } from "./translation.js";

fillPage();

const element = (id) => document.getElementById(id);
const format = element("format");

const state = new StateLine({ line: element("state"), text: element("state-text"), retry: element("again") });
const announcer = new Announcer(element("announced"));
const announceNow = (message) => announcer.announce(message, 100);
const source = new SourcePane(
  {
    pane: element("source-pane"),
    field: element("text"),
    mirror: element("mirror"),
    counter: element("counter"),
    problem: element("text-problem"),
  },
  onTextChange,
  (position) => alignment.selectWord(position, "source"),
);
const target = new TranslationPane(
  element("translation"),
  (position, isKeyboard) => alignment.selectWord(position, "target", isKeyboard),
  (index, sentence) =>
    alternatives.open({
      index,
      element: sentence,
      source: target.sentences[index].source,
      current: target.sentences[index].target,
      lang: target.element.lang,
      dir: target.element.dir,
    }),
);
const alignment = new Alignment(
  source,
  target,
  (text, signal) => server.translate({ ...fields(), text, format: "text", alignment: true }, signal),
  announceNow,
);
const alternatives = new Alternatives(
  { box: element("alternatives"), list: element("alternatives-list"), state: element("alternatives-state") },
  (text, nbest, signal) => server.translate({ ...fields(), text, format: "text", nbest, beam: nbest }, signal),
  (index, text) => {
    target.replace(index, text);
    alignment.clearLinks(index);
    target.focus(index);
    announceNow(say("chosen", { text }));
  },
);
const languages = new Languages(
  {
    sourceMenu: element("source-language"),
    targetMenu: element("target-language"),
    detectedLabel: element("detected"),
  },
  onLanguageChange,
);
const glossary = new GlossaryBox(
  {
    text: element("glossary"),
    title: element("glossary-title"),
    count: element("glossary-count"),
    problems: element("glossary-problems"),
    storage: element("glossary-storage"),
  },
  onTextChange,
);
const translation = new RequestScheduler(request, showProgress);
const documents = new DocumentBox(
  {
    box: element("document"),
    line: element("document-text"),
    link: element("document-link"),
    stop: element("document-stop"),
    retry: element("document-again"),
  },
  (file, signal) => server.translateFile(file, { source: languages.source, target: languages.target }, signal),
  announceNow,
);
/** The extensions of files that the server translates as documents. */
let documentExtensions = [];

/** Return the fields of a request except the text. The source language is the detected language if it is known. */
function fields() {
  return { source: languages.knownSource ?? AUTO, target: languages.target, glossary: glossary.field };
}

/** Called when the text, the format or the glossary has changed. */
function onTextChange() {
  alternatives.close();
  alignment.close();
  target.isStale = true;
  if (source.value.trim() && !source.isTooLong && languages.target) {
    translation.schedule();
    return;
  }
  translation.stop();
  if (!source.value.trim()) {
    show("", []);
    languages.showDetected(null);
    updateSourceLanguage();
  } else if (source.isTooLong) {
    state.show("failed", say("textTooLong"));
    announcer.announce(source.problem.textContent);
  }
}

/** Called when a language has been selected. */
function onLanguageChange() {
  target.setLanguage(languages.target);
  glossary.open(languages.target, languages.name(languages.target));
  updateSourceLanguage();
  onTextChange();
}

function updateSourceLanguage() {
  source.setLanguage(languages.knownSource);
  const swap = element("swap");
  swap.disabled = !languages.canSwap;
  const known = languages.knownSource;
  const key = languages.canSwap ? "swapHint" : known === null ? "swapUnknown" : "swapImpossible";
  const hint = say(key, { source: languages.name(languages.target), target: languages.name(known) });
  swap.title = hint;
  element("swap-hint").textContent = hint;
  element("example-line").hidden = exampleLanguage() === null || Boolean(source.value);
  element("clear").hidden = !source.value;
}

/** Request the translation of the text. Returns null if there is nothing to translate. */
function request(signal) {
  if (!source.value.trim() || source.isTooLong || !languages.target) return null;
  return translate({ text: source.value, format: format.value, source: languages.source }, signal);
}

/** Translate, and select another target language if the text is in the selected one already. */
async function translate(sourceFields, signal) {
  const attempt = () => server.translate({ ...sourceFields, target: languages.target, glossary: glossary.field }, signal);
  const response = await attempt();
  const detected = sourceFields.source === AUTO && response.detected?.confidence ? response.detected.language : null;
  const targets = detected === languages.target ? languages.targets(detected) : [];
  if (!targets.length) return response;
  languages.select(AUTO, languages.defaultTarget(targets));
  target.setLanguage(languages.target);
  glossary.open(languages.target, languages.name(languages.target));
  return attempt();
}

/** Show a state of `RequestScheduler`. */
function showProgress(kind, { response, error, seconds }) {
  element("target-pane").setAttribute("aria-busy", String(kind === "translating"));
  element("clear").hidden = !source.value;
  element("example-line").hidden = Boolean(source.value) || exampleLanguage() === null;
  if (kind === "done") {
    showResult(response, seconds);
  } else if (kind === "waiting") {
    const message = say("retrying", { error: describe(error), time: formatDuration(seconds) });
    if (state.kind !== "waiting") announcer.announce(message);
    state.show(kind, message, say("tryNow"), "", detailOf(error));
  } else if (kind === "failed") {
    if (error.status === 401 || (error.status === 403 && server.hasKey())) {
      askForKey();
      state.show("idle");
      return;
    }
    if (!(error instanceof server.HttpError)) console.error(error);
    state.show(kind, describe(error), error.status === 400 ? "" : say("tryAgain"), "", detailOf(error));
    announcer.announce(describe(error));
  } else {
    state.show(kind, kind === "translating" ? say("translating") : "");
  }
}

function showResult(response, seconds) {
  const [result] = response.translations;
  languages.showDetected(languages.source === AUTO ? response.detected : null);
  updateSourceLanguage();
  show(result.text, locateSentences(source.value, result.text, result.sentences));
  const isUnfinished = result.sentences.some(({ finished }) => !finished);
  const time = formatNumber(Math.max(seconds, 0.1), 1);
  const message = isUnfinished ? say("unfinished") : say("translated", { seconds: time });
  const doubts = describeDoubts(result, response.unreliable);
  state.show("done", message, "", doubts);
  showDoubts(doubts);
  announcer.announceTranslation(doubts ? `${result.text} ${doubts}` : result.text);
}

/** The number of unknown words that are listed. */
const MOST_WORDS = 8;

/** Return what speaks against a translation, or "". */
function describeDoubts({ sentences, other_language: other }, isUnreliable) {
  const words = [...new Set(sentences.flatMap(({ unknown_words }) => unknown_words))];
  const shown = words.length > MOST_WORDS ? [...words.slice(0, MOST_WORDS), "…"] : words;
  const language = (code) => languages.name(code);
  return [
    isUnreliable && say("unreliable"),
    other && say("otherLanguage", { language: language(other.language), source: language(languages.knownSource) }),
    sentences.some(({ doubtful }) => doubtful) && say("doubtful"),
    words.length > 0 && say("unknownWords", { words: shown.join(", ") }),
  ]
    .filter(Boolean)
    .join(" ");
}

function showDoubts(text) {
  element("doubts").textContent = text;
  element("doubts").hidden = !text;
}

function show(text, sentences) {
  showDoubts("");
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
  onLanguageChange();
}

function exampleLanguage() {
  const candidates = [languages.source, navigator.language.split("-")[0], ...languages.sources.keys()];
  return candidates.find((code) => languages.sources.has(code) && code in EXAMPLES) ?? null;
}

async function openFile(file) {
  const result = await files.read(file, source.limit, documentExtensions);
  if (result.problem) {
    source.showProblem(result.problem);
    announceNow(result.problem);
    return;
  }
  if (result.isDocument) {
    if (!source.isTooLong) source.showProblem("");
    documents.translate(file);
    return;
  }
  format.value = result.format;
  setText(result.text);
}

function setText(text) {
  source.value = text;
  onTextChange();
  source.field.focus();
}

/** Ask for a key, because the server requires one, or has rejected the one that was sent. */
function askForKey() {
  const isRejected = server.hasKey();
  server.setKey("");
  element("key-box").hidden = false;
  element("key-message").textContent = isRejected ? say("keyInvalid") : "";
  element("key").select();
}

/** Requests the languages and limits of the server until the server responds. */
const startup = new RequestScheduler(
  (signal) => Promise.all([server.languages(signal), server.settings(signal)]),
  (kind, { response, error, seconds }) => {
    if (kind === "translating" || kind === "done") state.show("idle");
    if (kind === "waiting" || kind === "failed") showProgress(kind, { error, seconds });
    if (kind !== "done") return;
    const [available, { keyRequired, charLimit, filesTranslation, supportedFilesFormat }] = response;
    if (keyRequired && !server.hasKey()) askForKey();
    documentExtensions = filesTranslation ? supportedFilesFormat : [];
    source.limit = charLimit > 0 ? charLimit : Infinity;
    source.update();
    languages.open(available);
    onLanguageChange();
  },
);

format.addEventListener("change", onTextChange);
element("swap").addEventListener("click", swap);
element("clear").addEventListener("click", () => setText(""));
element("example").addEventListener("click", () => setText(EXAMPLES[exampleLanguage()]));
element("again").addEventListener("click", () => (languages.target ? translation : startup).runNow());
element("key-box").addEventListener("submit", (event) => {
  event.preventDefault();
  server.setKey(element("key").value);
  element("key-box").hidden = true;
  startup.runNow(); // checks the key
});
element("help-button").addEventListener("click", () => element("help").showModal());
element("help-close").addEventListener("click", () => element("help").close());
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || element("help").open) return;
  const action = { Enter: () => translation.runNow(), ".": swap, "/": () => element("help").showModal() }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
files.connect({ pane: element("source-pane"), chooser: element("file"), button: element("open") }, openFile);
copying.connect({ button: element("copy"), label: element("copy-text") }, () => target.text, announceNow);
startup.runNow();
