// Word alignments, requested for several sentences at a time when the user points at a word.

const SENTENCES_PER_REQUEST = 16;

export class Alignment {
  /**
   * ask: returns a promise of the server's answer for a list of sentences. announce: called with a description of the
   * word that a key has selected.
   */
  constructor(source, target, ask, announce) {
    this.source = source;
    this.target = target;
    this.ask = ask;
    this.announce = announce;
    this.sentences = [];
  }

  /** Start with sentences as `locateSentences` returns them, whose links are not known yet. */
  open(sentences) {
    this.close();
    this.sentences = sentences.map(({ source, target }) => ({ source, target, links: [] }));
    this.asking = new AbortController();
  }

  /** Stop: the sentences are about to change. */
  close() {
    this.asking?.abort();
    this.point(null);
    this.sentences = [];
  }

  /** Forget the links of a sentence whose translation was replaced. */
  forget(number) {
    this.sentences[number].links = [];
    this.sentences[number].finding = Promise.resolve();
  }

  /** Highlight a word, {sentence, word} or null, and its links. side: source or target. */
  async point(place, side, byKey = false) {
    if (this.place?.sentence === place?.sentence && this.place?.word === place?.word && this.side === side) return;
    this.place = place;
    this.side = side;
    if (place === null) {
      this.light(0, [], []);
      return;
    }
    const sentence = this.sentences[place.sentence];
    if (sentence === undefined) return;
    this.show(place, side, sentence.links);
    if (sentence.finding === undefined) this.find(place.sentence);
    await sentence.finding;
    if (this.place !== place || this.side !== side) return;
    this.show(place, side, sentence.links);
    if (byKey) this.announceLinks(place, side, sentence.links);
  }

  show(place, side, links) {
    const [from, to] = side === "source" ? [0, 1] : [1, 0];
    const others = [...new Set(links.filter((link) => link[from] === place.word).map((link) => link[to]))];
    if (side === "source") this.light(place.sentence, [place.word], others);
    else this.light(place.sentence, others, [place.word]);
  }

  light(sentence, ofSource, ofTarget) {
    this.source.light(sentence, ofSource);
    this.target.light(sentence, ofTarget);
  }

  announceLinks({ sentence, word }, side, links) {
    if (side !== "target") return;
    const [own] = this.target.texts(sentence, [word]);
    const from = this.source.texts(sentence, links.filter((link) => link[1] === word).map((link) => link[0]));
    this.announce(from.length ? `${own}: from ${from.join(", ")}` : `${own}`);
  }

  /** Request the links of a sentence and its neighbours, unless they were requested already. */
  find(number) {
    const first = number - (number % SENTENCES_PER_REQUEST);
    const group = this.sentences.slice(first, first + SENTENCES_PER_REQUEST);
    const some = group.filter(({ finding }) => finding === undefined);
    const work = this.read(some, this.asking.signal);
    for (const each of some) each.finding = work;
  }

  /** Request links. If the request fails, it is not repeated, and no links are shown. */
  async read(some, signal) {
    let answer;
    try {
      answer = await this.ask(some.map(({ source }) => source), signal);
    } catch {
      return;
    }
    some.forEach((each, place) => {
      const [found, more] = answer.translations[place]?.sentences ?? [];
      const isSame = found && !more && found.source === each.source && found.hypotheses[0].text === each.target;
      if (isSame && found.alignment) each.links = found.alignment;
    });
  }
}
