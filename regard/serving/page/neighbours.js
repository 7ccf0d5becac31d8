// Which lines are nearest to the text: one pastes them, their vectors are compared with that of the text, and
// the nearest comes first. The cosine of two vectors is 1 where they point the same way.
import { element } from "./look/dom.js";
import { newest } from "./api.js";
import { notice } from "./notice.js";

const SETTLED = 400; // ms after the last letter
const LINES = 999; // that are compared at once: with the text they are what one request may hold

export class Neighbours {
  /* `ask(texts, signal)` brings their vectors as OpenAI has them. */
  constructor(root, ask) {
    Object.assign(this, { root, ask, text: "", stale: true });
    this.alarm = notice();
    this.area = element("textarea", {
      class: "lines",
      rows: 6,
      dir: "auto",
      spellcheck: "false",
      placeholder: "Paste lines, one sentence each",
      "aria-label": "Lines to compare with",
      oninput: () => this.changed(),
    });
    this.list = element("ol", { class: "nearest", "aria-live": "polite" });
    this.hint = element("p", { class: "hint" });
    root.replaceChildren(
      element(
        "section",
        { class: "card", "aria-label": "Neighbours" },
        element("h2", {}, "Neighbours"),
        element("p", { class: "hint" }, "Which of these lines are nearest to the text above?"),
        this.area,
        this.hint,
        this.list,
      ),
      this.alarm.node,
    );
    this.draw = newest((signal) => this.bring(signal), { delay: SETTLED, trouble: this.alarm.show });
  }

  /* Another text is compared with. */
  follow(text) {
    this.text = text;
    this.changed();
  }

  changed() {
    this.stale = true;
    this.list.replaceChildren();
    this.hint.textContent = "";
    this.wake();
  }

  /* Ask, if it can be seen. */
  wake() {
    if (this.root.hidden || !this.stale) return;
    if (this.text.trim() && this.lines().length) this.draw();
    else this.draw.stop();
  }

  lines() {
    return this.area.value.split("\n").filter((line) => line.trim());
  }

  async bring(signal) {
    const lines = this.lines(),
      taken = lines.slice(0, LINES);
    const { data } = await this.ask([this.text, ...taken], signal);
    const [own, ...others] = data.map((each) => each.embedding);
    const ranked = taken.map((text, i) => [cosine(own, others[i]), text]).sort(([a], [b]) => b - a);
    this.list.replaceChildren(...ranked.map(row));
    this.hint.textContent = lines.length > LINES ? `The first ${LINES} of ${lines.length} lines.` : "";
    this.stale = false;
  }
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);
}

function row([near, text]) {
  const width = `${(100 * Math.max(0, near)).toFixed(1)}%`;
  return element(
    "li",
    {},
    element("span", { class: "figure" }, near.toFixed(3).replace("-", "−")),
    element("span", { class: "track" }, element("span", { class: "fill", style: { width } })),
    element("bdi", {}, text),
  );
}
