// Which words belong together: asked for when somebody points at a word, some sentences at a time.

const TOGETHER = 16;

export class Alignment {
  /**
   * ask: promises the server's answer for a list of sentences. announce: is called with what a key led to, in words.
   */
  constructor(source, target, ask, announce) {
    this.source = source;
    this.target = target;
    this.ask = ask;
    this.announce = announce;
    this.sentences = [];
  }

  /** sentences: as `located` gives them. Their links are not known yet. */
  open(sentences) {
    this.close();
    this.sentences = sentences.map(({ source, target }) => ({ source, target, links: [] }));
    this.asking = new AbortController();
  }

  /** They are about to change. */
  close() {
    this.asking?.abort();
    this.point(null);
    this.sentences = [];
  }

  /** Of a sentence that reads otherwise now, nothing is known. */
  forget(number) {
    this.sentences[number].links = [];
    this.sentences[number].finding = Promise.resolve();
  }

  /** place: a word's {sentence, word}, or null; side: source or target. */
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
    if (byKey) this.tell(place, side, sentence.links);
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

  tell({ sentence, word }, side, links) {
    if (side !== "target") return;
    const [own] = this.target.texts(sentence, [word]);
    const from = this.source.texts(sentence, links.filter((link) => link[1] === word).map((link) => link[0]));
    this.announce(from.length ? `${own}: from ${from.join(", ")}` : `${own}`);
  }

  /** Ask for the links of a sentence and its neighbours, as far as nobody has. */
  find(number) {
    const first = number - (number % TOGETHER);
    const some = this.sentences.slice(first, first + TOGETHER).filter(({ finding }) => finding === undefined);
    const work = this.read(some, this.asking.signal);
    for (const each of some) each.finding = work;
  }

  /** What fails is not asked for again by itself, and is shown as no link. */
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
