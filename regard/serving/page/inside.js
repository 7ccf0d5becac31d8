// Inside the model: what every head looked at while a sentence was translated, and what becomes of it
// without some.
import { element } from "./look/dom.js";
import { mountLook } from "./look/look.js";
import { newest, Trouble } from "./api.js";
import { notice } from "./notice.js";

const SETTLED = 350; // ms after the last translation

export class Inside {
  /* `ask(text, off, signal)` brings the document of one sentence (docs/look.md), or of the text as it is with
     `single`; `doing` says when heads are off, `switched` is told when they were switched. */
  constructor(
    root,
    ask,
    { single = false, doing = " while it writes", switched = () => {}, examples = "" } = {},
  ) {
    Object.assign(this, { root, ask, single, doing, switched, sentences: [], at: 0, off: {} });
    Object.assign(this, { view: null, stale: true, whole: null, wanted: null });
    this.chooser = element("div", { class: "chooser" });
    this.alarm = notice();
    this.hint = element(
      "div",
      { class: "card hint empty" },
      element("p", {}, "Write a sentence above: what every head looks at is drawn here."),
      examples,
    );
    this.body = element("div", { class: "inside" });
    this.body.hidden = true;
    root.replaceChildren(this.chooser, this.alarm.node, this.hint, this.body);
    this.draw = newest((signal) => this.bring(signal), { delay: SETTLED, trouble: this.alarm.show });
  }

  /* Another text was translated, as `whole`. */
  follow(text, whole) {
    const sentences = this.single ? [{ text, start: 0 }].filter(() => text.length > 1) : sentencesOf(text),
      something = sentences.length > 0;
    Object.assign(this, {
      whole,
      sentences,
      stale: true,
      at: Math.min(this.at, Math.max(0, sentences.length - 1)),
    });
    this.paintChooser();
    this.hint.hidden = something;
    this.body.hidden = !something || !this.view;
    this.wake();
  }

  /* Draw what has changed, if it can be seen. */
  wake() {
    if (this.root.hidden) return;
    if (this.stale) this.draw();
    else if (this.view) this.show(this.view.view.data); // the width or the theme may be another
  }

  /* The sentence that a place of the text is in. */
  choose(place) {
    const found = this.sentences.findLastIndex((sentence) => sentence.start <= place);
    if (found < 0 || found === this.at) return;
    this.at = found;
    this.paintChooser();
    this.draw(0);
  }

  /* Another model: nothing of the old one holds. */
  forget() {
    Object.assign(this, { off: {}, view: null, at: 0 });
    this.body.replaceChildren();
  }

  async bring(signal) {
    const sentence = this.sentences[this.at];
    if (sentence) this.show(await this.ask(sentence.text, this.off, signal));
  }

  show(fresh) {
    this.stale = this.root.hidden; // what cannot be seen cannot be measured
    if (this.stale) return;
    this.body.hidden = false;
    if (this.view) this.view.update(fresh, this.sentences.length === 1 ? this.whole : null);
    else
      this.view = mountLook(this.body, fresh, { switchHeads: (off) => this.switchHeads(off), chrome: false });
    this.paintOff();
    this.point(this.wanted);
  }

  /* The place that wrote a piece, counted from the end of the text: 1 wrote the last one. */
  point(back) {
    this.wanted = back;
    if (back === null || !this.view || this.stale) return;
    const { data } = this.view.view;
    const at = data.sides.target.tokens.length - back;
    if (at >= 0) this.view.follow(at);
    this.wanted = null;
  }

  async switchHeads(off) {
    const pressed = document.activeElement?.getAttribute("aria-label");
    try {
      const fresh = await this.ask(this.sentences[this.at].text, off);
      this.off = Object.fromEntries(Object.entries(off).filter(([, heads]) => heads.length));
      this.alarm.show(null);
      setTimeout(() => {
        // when the look has drawn it
        this.paintOff();
        this.switched();
        [...this.body.querySelectorAll(".power")]
          .find((button) => button.getAttribute("aria-label") === pressed)
          ?.focus({ preventScroll: true });
      });
      return fresh;
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      this.alarm.show(error, () => this.draw(0));
      return this.view.view.data;
    }
  }

  /* How many heads are off, and a way back; under the translation without them. */
  paintOff() {
    const count = Object.values(this.off).reduce((sum, heads) => sum + heads.length, 0);
    this.body.classList.toggle("without", count > 0);
    this.body.querySelector(".silenced")?.remove();
    if (!count) return;
    const on = () => {
      this.off = {};
      this.draw(0);
      this.switched();
    };
    const slot = this.body.querySelector(".translation");
    const same = this.single ? this.doing : "; the translation is the same";
    const effect = slot.querySelector(".before") ? "" : same;
    slot.append(
      element(
        "p",
        { class: "silenced" },
        element(
          "span",
          { role: "status" },
          `${count === 1 ? "1 head is" : `${count} heads are`} switched off${effect}`,
        ),
        element("button", { type: "button", class: "quiet", onclick: on }, "Switch all on"),
      ),
    );
  }

  paintChooser() {
    if (this.sentences.length < 2) return this.chooser.replaceChildren();
    const list = element(
      "select",
      {
        id: "which",
        onchange: () => {
          this.at = list.selectedIndex;
          this.draw(0);
        },
      },
      this.sentences.map(({ text }, i) =>
        element("option", { selected: i === this.at }, `${i + 1}. ${text}`),
      ),
    );
    this.chooser.replaceChildren(element("label", { class: "eyebrow", for: "which" }, "Sentence"), list);
  }
}

/* One can look into one sentence at a time: [{text, start}, ...]. */
function sentencesOf(text) {
  const cut = new Intl.Segmenter(undefined, { granularity: "sentence" });
  const found = [];
  let at = 0;
  for (const piece of text
    .split("\n")
    .flatMap((line) => [...cut.segment(line)].map((each) => each.segment.trim()))) {
    at = text.indexOf(piece, at);
    if (/[\p{L}\p{N}]/u.test(piece)) found.push({ text: piece, start: at });
    at += piece.length;
  }
  return found;
}
