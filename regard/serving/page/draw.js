// The page for generators: a class and a seed, the pictures they give, and where the first one looked.
import { element } from "./look/dom.js";
import { mountPicture } from "./look/picture.js";
import { get, newest, post } from "./api.js";
import { chooserOf, foot, panelsOf, top } from "./frame.js";
import { drawModel } from "./model.js";
import { notice } from "./notice.js";

const PANELS = [
  ["inside", "Look inside"],
  ["model", "Model"],
];
const COUNT = 24;
const LARGEST = 2 ** 32 - 1;

class Page {
  constructor(root, models) {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const model = models.find((each) => each.id === wanted.get("model")) ?? models[0];
    Object.assign(this, { root, models, model });
    this.alarm = notice();
    this.name = element("bdi", { class: "model" }, model.id);
    this.sheet = element("div", { class: "drawings", "aria-live": "polite" });
    this.kinds = element("select", { "aria-label": "Class", onchange: () => this.go() });
    this.seed = element("input", {
      type: "number",
      min: "0",
      max: String(LARGEST),
      step: "1",
      value: wanted.get("seed") ?? "1",
      "aria-label": "Seed",
      onchange: () => this.go(),
    });
    const trouble = (error) => this.alarm.show(error, () => this.go());
    this.drawing = newest((signal) => this.draw(signal), { trouble });
    this.about = newest((signal) => this.describe(signal), { trouble });
    this.layOut();
    this.offer(wanted.get("class"));
    this.open("inside");
    this.about();
    this.go();
  }

  layOut() {
    Object.assign(
      this,
      panelsOf(PANELS, "Below the drawings", () => {}),
    );
    const onclick = () => this.other();
    const again = element("button", { type: "button", class: "primary", onclick }, "Draw others");
    const desk = element(
      "section",
      { class: "card paper", "aria-label": "Drawing" },
      element(
        "div",
        { class: "tools" },
        this.models.length > 1 && this.chooser(),
        this.kinds,
        element("label", { class: "seed" }, "Seed ", this.seed),
        element("span", { class: "push" }),
        again,
      ),
      this.sheet,
    );
    this.root.replaceChildren(
      top(this.name),
      desk,
      this.alarm.node,
      this.tabs,
      ...Object.values(this.panels),
      foot("The same class and seed give the same drawings. "),
    );
  }

  chooser() {
    const list = chooserOf(this, () => {
      this.offer(null);
      this.about();
      this.go();
    });
    return list;
  }

  offer(chosen) {
    const names = this.model.classes ?? [];
    this.kinds.hidden = !names.length;
    this.kinds.replaceChildren(
      element("option", { value: "" }, "Every class"),
      ...names.map((name) => element("option", { value: name, selected: name === chosen }, name)),
    );
  }

  other() {
    this.seed.value = String(Math.floor(Math.random() * 1e6));
    this.go();
  }

  asked() {
    const seed = Math.max(0, Math.min(LARGEST, Math.floor(Number(this.seed.value)) || 0));
    return { model: this.model.id, prompt: this.kinds.value, seed };
  }

  go() {
    const { model, prompt, seed } = this.asked();
    history.replaceState(null, "", `#${new URLSearchParams({ task: "gan", model, class: prompt, seed })}`);
    this.drawing(0);
  }

  async draw(signal) {
    const ask = this.asked();
    const drawn = await post("v1/images/generations", { ...ask, n: COUNT }, signal);
    const names = this.model.classes ?? [];
    this.sheet.replaceChildren(
      ...drawn.data.map(({ b64_json: bytes }, i) =>
        element("img", {
          src: `data:image/png;base64,${bytes}`,
          alt: `Drawing ${i + 1}${names.length ? ` of ${ask.prompt || names[i % names.length]}` : ""}`,
        }),
      ),
    );
    const drawing = ask.prompt || (names[0] ?? "");
    const asked = { model: ask.model, drawing, seed: ask.seed };
    const seen = await post("attention", asked, signal);
    mountPicture(this.panels.inside, seen, { switchHeads: (off) => this.without(asked, off) });
  }

  /* The same drawing without some heads. */
  async without(asked, off) {
    try {
      return await post("attention", { ...asked, heads_off: off });
    } catch (error) {
      this.alarm.show(error, () => this.go());
      return null;
    }
  }

  async describe(signal) {
    const [model] = await get(`model?${new URLSearchParams({ model: this.model.id })}`, signal);
    drawModel(this.panels.model, model);
  }
}

/* The page of the generators that are served. */
export async function openDrawer(root, signal, models) {
  new Page(root, models);
}
