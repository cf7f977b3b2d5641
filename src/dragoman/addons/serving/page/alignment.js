// Word alignments, requested for several sentences at a time when the user points at a word.

import { say } from "./texts.js";

const SENTENCES_PER_REQUEST = 16;

export class Alignment {
  /**
   * request: returns a promise of the server's response for a list of sentences. announce: called with a description of
   * the word that was selected with the keyboard.
   */
  constructor(source, target, request, announce) {
    this.source = source;
    this.target = target;
    this.request = request;
    this.announce = announce;
    this.sentences = [];
  }

  /** Set the sentences, in the format of `locateSentences`. Their links are requested later. */
  open(sentences) {
    this.close();
    this.sentences = sentences.map(({ source, target }) => ({ source, target, links: [] }));
    this.controller = new AbortController();
  }

  /** Cancel the requests and remove the sentences, because the text is about to change. */
  close() {
    this.controller?.abort();
    this.selectWord(null);
    this.sentences = [];
  }

  /** Remove the links of a sentence whose translation was replaced. */
  clearLinks(number) {
    this.sentences[number].links = [];
    this.sentences[number].loading = Promise.resolve();
  }

  /** Highlight a word and the words aligned with it. position: {sentence, word}, or null for none. side: source or target. */
  async selectWord(position, side, isKeyboard = false) {
    if (this.position?.sentence === position?.sentence && this.position?.word === position?.word && this.side === side) return;
    this.position = position;
    this.side = side;
    if (position === null) {
      this.highlight(0, [], []);
      return;
    }
    const sentence = this.sentences[position.sentence];
    if (sentence === undefined) return;
    this.highlightLinks(position, side, sentence.links);
    if (sentence.loading === undefined) this.loadLinks(position.sentence);
    await sentence.loading;
    if (this.position !== position || this.side !== side) return;
    this.highlightLinks(position, side, sentence.links);
    if (isKeyboard) this.announceLinks(position, side, sentence.links);
  }

  highlightLinks(position, side, links) {
    const [from, to] = side === "source" ? [0, 1] : [1, 0];
    const aligned = [...new Set(links.filter((link) => link[from] === position.word).map((link) => link[to]))];
    if (side === "source") this.highlight(position.sentence, [position.word], aligned);
    else this.highlight(position.sentence, aligned, [position.word]);
  }

  highlight(sentence, sourceWords, targetWords) {
    this.source.highlight(sentence, sourceWords);
    this.target.highlight(sentence, targetWords);
  }

  announceLinks({ sentence, word }, side, links) {
    if (side !== "target") return;
    const [text] = this.target.wordTexts(sentence, [word]);
    const sources = this.source.wordTexts(sentence, links.filter((link) => link[1] === word).map((link) => link[0]));
    this.announce(sources.length ? say("aligned", { word: text, words: sources.join(", ") }) : text);
  }

  /** Request the links of a sentence and its neighbours, except those that have already been requested. */
  loadLinks(number) {
    const first = number - (number % SENTENCES_PER_REQUEST);
    const group = this.sentences.slice(first, first + SENTENCES_PER_REQUEST);
    const pending = group.filter(({ loading }) => loading === undefined);
    const loading = this.fetchLinks(pending, this.controller.signal);
    for (const sentence of pending) sentence.loading = loading;
  }

  /** Request the links of sentences. A failed request is not repeated, and its sentences have no links. */
  async fetchLinks(pending, signal) {
    let response;
    try {
      response = await this.request(pending.map(({ source }) => source), signal);
    } catch {
      return;
    }
    pending.forEach((sentence, index) => {
      const [result, next] = response.translations[index]?.sentences ?? [];
      const isSame =
        result && !next && result.source === sentence.source && result.hypotheses[0].text === sentence.target;
      if (isSame && result.alignment) sentence.links = result.alignment;
    });
  }
}
