// The page for encoders: a text is read as a whole. What the task makes of it comes while one types: gaps
// filled, a label, tags; beside that, the heads, and which of some lines are nearest. It ties these together.
import { element } from "./look/dom.js";
import { get, newest, post } from "./api.js";
import { chooserOf, foot, panelsOf, top } from "./frame.js";
import { Inside } from "./inside.js";
import { drawModel } from "./model.js";
import { Neighbours } from "./neighbours.js";
import { notice } from "./notice.js";
import { MASK, READINGS } from "./readings.js";
import { sourceField } from "./source.js";

const SETTLED = 250; // ms after the last letter
const SHORT = 2000; // characters of a text that the page's address can hold
const PANELS = [
  ["inside", "Look inside"],
  ["neighbours", "Neighbours"],
  ["model", "Model"],
];

class Page {
  constructor(root, models) {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const model = models.find((each) => each.id === wanted.get("model")) ?? models[0];
    Object.assign(this, { root, models, model, task: model.task });
    this.reading = READINGS[this.task]({ take: (gap, word) => this.take(gap, word) });
    this.alarm = notice();
    this.name = element("bdi", { class: "model" }, model.id);
    this.field = sourceField(
      { typed: () => this.typed(), moved: () => {} },
      "Text to read",
      this.reading.hint,
    );
    this.about = newest((signal) => this.describe(signal), {
      trouble: (error) => {
        if (error) this.alarm.show(error, () => this.about(0));
      },
    });
    this.answer = newest((signal) => this.read(signal), {
      delay: SETTLED,
      trouble: (error) => this.alarm.show(error, () => this.answer(0)),
    });
    this.layOut();
    this.inside = new Inside(
      this.panels.inside,
      (text, off, signal) => post("attention", { model: this.model.id, text, heads_off: off }, signal),
      { single: true, doing: " while it reads", switched: () => this.without() },
    );
    this.neighbours = new Neighbours(this.panels.neighbours, (input, signal) =>
      post("v1/embeddings", { model: this.model.id, input, heads_off: this.inside.off }, signal),
    );
    this.open(this.reading.panel ?? "inside");
    this.about();
    this.field.set(wanted.get("q") ?? "");
    this.typed(0);
    if (matchMedia("(hover: hover)").matches) this.field.area.focus({ preventScroll: true });
  }

  layOut() {
    const woken = () => {
      this.inside?.wake();
      this.neighbours?.wake();
    };
    Object.assign(this, panelsOf(PANELS, "Below the text", woken));
    this.clear = element(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          this.field.set("");
          this.field.area.focus();
          this.typed(0);
        },
      },
      "Clear",
    );
    this.gap = element(
      "button",
      { type: "button", class: "quiet", onclick: () => this.hide() },
      "Put a gap here",
    );
    this.gap.hidden = this.task !== "masked";
    const desk = element(
      "section",
      { class: "card paper reads", "aria-label": "Reading" },
      this.models.length > 1 && this.chooser(),
      element("div", { class: "page-text" }, this.field.node),
      element("div", { class: "tail" }, this.gap, this.clear),
      this.reading.node,
    );
    this.root.replaceChildren(
      top(this.name),
      desk,
      this.alarm.node,
      this.tabs,
      ...Object.values(this.panels),
      foot("Every place sees every place: that is an encoder. "),
    );
  }

  chooser() {
    const list = chooserOf(this, () => {
      this.inside.forget();
      this.about();
      this.typed(0);
    });
    return element("div", { class: "bar-line" }, list);
  }

  /* Another text: what was said of the old one does not hold. */
  typed(wait) {
    const q = this.field.area.value;
    this.clear.hidden = !q;
    const kept = { task: this.task, model: this.model.id, ...(q.length < SHORT ? { q } : {}) };
    history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
    this.reading.show(null);
    this.alarm.show(null);
    this.inside?.follow(q, null);
    this.neighbours?.follow(q);
    if (this.reading.path && this.reading.reads(q)) this.answer(wait);
    else this.answer.stop();
  }

  async read(signal) {
    const text = this.field.area.value;
    const asked = { model: this.model.id, text, heads_off: this.inside.off, ...this.reading.fields };
    this.reading.show(await post(this.reading.path, asked, signal), text);
  }

  /* Heads were switched: what is said of the text is another. */
  without() {
    this.neighbours.follow(this.field.area.value);
    if (this.reading.path && this.reading.reads(this.field.area.value)) this.answer(0);
  }

  /* A gap in the place of what is selected, or of the word at the caret. */
  hide() {
    const { area } = this.field;
    let [start, end] = [area.selectionStart, area.selectionEnd];
    const word = /[\p{L}\p{N}]/u;
    if (start === end) {
      while (start > 0 && word.test(area.value[start - 1])) start -= 1;
      while (end < area.value.length && word.test(area.value[end])) end += 1;
    }
    this.field.set(area.value.slice(0, start) + MASK + area.value.slice(end));
    area.focus();
    area.setSelectionRange(start + MASK.length, start + MASK.length);
    this.typed(0);
  }

  /* A guess in the place of its gap. */
  take(gap, word) {
    const parts = this.field.area.value.split(MASK);
    const before = parts.slice(0, gap + 1).join(MASK);
    this.field.set(before + word + parts.slice(gap + 1).join(MASK));
    this.typed(0);
  }

  async describe(signal) {
    const [model] = await get(`model?${new URLSearchParams({ model: this.model.id })}`, signal);
    drawModel(this.panels.model, model);
  }
}

/* The page of the encoders of one task that are served. */
export async function openReader(root, signal, models) {
  new Page(root, models);
}
