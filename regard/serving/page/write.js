// The page for language models: a text, written on token by token; what else each token could have been; the
// heads that wrote it, and what comes without some. This file ties the parts together.
import { element } from "./look/dom.js";
import { completion, get, newest, post } from "./api.js";
import { dialsOf } from "./dials.js";
import { chooserOf, foot, panelsOf, top } from "./frame.js";
import { Inside } from "./inside.js";
import { drawModel } from "./model.js";
import { notice } from "./notice.js";
import { sourceField } from "./source.js";
import { writtenSheet } from "./written.js";

const RUNNERS = 5;
const SHORT = 2000; // characters of a text that the page's address can hold
const PANELS = [
  ["inside", "Look inside"],
  ["model", "Model"],
];

class Page {
  constructor(root, models) {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const model = models.find((each) => each.id === wanted.get("model")) ?? models[0];
    Object.assign(this, { root, models, model, tokens: [], start: null, going: false });
    this.alarm = notice();
    this.name = element("bdi", { class: "model" }, model.id);
    this.field = sourceField(
      { typed: () => this.typed(), moved: () => {} },
      "Text to write on",
      "Begin a text",
    );
    this.sheet = writtenSheet({ take: (at, token) => this.take(at, token), chosen: (at) => this.follow(at) });
    this.ghost = element("span", { class: "ghost", "aria-hidden": "true" }); // what is written follows it
    this.dials = dialsOf();
    this.about = newest((signal) => this.describe(signal), {
      trouble: (error) => {
        if (error) this.alarm.show(error, () => this.about(0));
      },
    });
    this.writing = newest((signal) => this.compose(signal), {
      trouble: (error) => {
        this.alarm.show(error, () => this.go());
        if (!error?.wait) this.rest();
      },
    });
    this.layOut();
    this.inside = new Inside(
      this.panels.inside,
      (text, off, signal) =>
        post("attention", { model: this.model.id, prompt: text, heads_off: off, slide: true }, signal),
      { single: true, switched: () => this.rewrite() },
    );
    this.open("inside");
    this.about();
    this.field.set(wanted.get("q") ?? "");
    this.typed();
    if (matchMedia("(hover: hover)").matches) this.field.area.focus({ preventScroll: true });
  }

  layOut() {
    Object.assign(
      this,
      panelsOf(PANELS, "Below the text", () => this.inside?.wake()),
    );
    const button = (text, kind, onclick) => element("button", { type: "button", class: kind, onclick }, text);
    this.write = button("Write on", "primary", () => (this.going ? this.stop() : this.go()));
    this.again = button("Write anew", "quiet", () => this.rewrite());
    this.clear = button("Clear", "quiet", () => {
      this.field.set("");
      this.field.area.focus();
      this.typed();
    });
    this.field.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.rewrite();
    });
    const desk = element(
      "section",
      { class: "card paper", "aria-label": "Writing" },
      this.models.length > 1 && this.chooser(),
      element(
        "div",
        { class: "page-text" },
        this.field.node,
        element("div", { class: "flow text", dir: "auto" }, this.ghost, this.sheet.node),
      ),
      element("div", { class: "tail" }, this.sheet.told, this.clear, this.again, this.write),
      this.sheet.others,
      this.dials.node,
    );
    this.root.replaceChildren(
      top(this.name),
      desk,
      this.alarm.node,
      this.tabs,
      ...Object.values(this.panels),
      foot("A tinted token is one the model found improbable. Point at one to see what else it thought of. "),
    );
  }

  chooser() {
    const list = chooserOf(this, () => {
      this.inside.forget();
      this.about();
      this.typed();
    });
    return element("div", { class: "bar-line" }, list);
  }

  /* Another text: what was written does not fit it. */
  typed() {
    this.stop();
    Object.assign(this, { tokens: [], start: null });
    this.sheet.show([]);
    this.paint();
  }

  paint() {
    const q = this.field.area.value;
    this.ghost.textContent = q;
    this.write.textContent = this.going ? "Stop" : "Write on";
    this.again.hidden = this.going || !this.tokens.length;
    this.clear.hidden = !q;
    const kept = { task: "language", model: this.model.id, ...(q.length < SHORT ? { q } : {}) };
    history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
    if (!this.going) this.inside?.follow(q + this.sheet.text(), null);
  }

  stop() {
    this.writing.stop();
    if (!this.going) return;
    this.alarm.show(null);
    this.rest();
  }

  rest() {
    this.going = false;
    this.paint();
  }

  /* From the given text once more: with other dials, or without some heads. */
  rewrite() {
    const some = this.tokens.length > 0;
    this.stop();
    this.tokens = [];
    this.sheet.show([]);
    if (some || this.field.area.value) this.go();
  }

  /* Another token in the place of one that was written; what stood after it goes. */
  take(at, token) {
    this.stop();
    this.tokens = [...this.tokens.slice(0, at), token];
    this.sheet.show(this.tokens);
    this.sheet.node.focus();
    this.go();
  }

  /* What the heads did where a token was written; bytes that are no text are read as others. */
  follow(at) {
    if (!this.sheet.text().includes("\ufffd")) this.inside.point(this.tokens.length - at);
  }

  go() {
    this.going = true;
    this.paint();
    this.writing(0);
  }

  async compose(signal) {
    for await (const [choice] of completion(this.asked(), signal)) this.grow(choice);
  }

  /* What is asked: from the text, or from the ids of it and of all that is written. */
  asked() {
    const ids = this.start && [...this.start, ...this.tokens.map((token) => token.id)];
    const fields = this.dials.fields();
    const room = this.model.context && ids ? this.model.context - ids.length + 1 : Infinity;
    return {
      ...fields,
      max_tokens: Math.max(1, Math.min(fields.max_tokens, room)),
      model: this.model.id,
      prompt: ids ?? this.field.area.value,
      logprobs: RUNNERS,
      return_token_ids: true,
      heads_off: this.inside.off,
    };
  }

  grow(choice) {
    this.start ??= choice.prompt_token_ids ?? null;
    (choice.token_ids ?? []).forEach((id, i) => {
      const { tokens, token_logprobs, runners } = choice.logprobs;
      const token = { id, text: tokens[i], logp: token_logprobs[i], runners: runners[i] };
      this.tokens.push(token);
      this.sheet.add(token);
    });
  }

  async describe(signal) {
    const [model] = await get(`model?${new URLSearchParams({ model: this.model.id })}`, signal);
    this.model.context ??= model.context;
    drawModel(this.panels.model, model);
  }
}

/* The page of the language models that are served. */
export async function openWriter(root, signal, models) {
  new Page(root, models);
}
