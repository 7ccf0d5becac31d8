// The page for translators: type on the left, read on the right, look inside below. This file ties the parts
// together.
import { element, segmented } from "./look/dom.js";
import { answerSheet, drawAlternatives } from "./answer.js";
import { get, newest, post, translation } from "./api.js";
import { deskOf } from "./desk.js";
import { examplesOf } from "./examples.js";
import { foot, panelsOf, top } from "./frame.js";
import { glossaryEditor } from "./glossary.js";
import { Inside } from "./inside.js";
import { AUTO, languageBar, settle } from "./languages.js";
import { drawModel } from "./model.js";
import { notice } from "./notice.js";
import { sourceField } from "./source.js";
import { threads } from "./thread.js";

const PAUSE = 180; // ms without a key before a text is sent
const PAUSE_TERMS = 400;
const ALTERNATIVES = 3;
const SHORT = 2000; // characters of a text that the page's address can hold
const PANELS = [
  ["inside", "Look inside"],
  ["glossary", "Glossary"],
  ["model", "Model"],
];

class Page {
  constructor(root, languages, settings, models) {
    Object.assign(this, {
      root,
      languages,
      models,
      model: "",
      first: settings.language,
      detected: null,
      readings: [],
      words: [],
    });
    this.alarm = notice();
    this.name = element("bdi", { class: "model" });
    this.field = sourceField({
      typed: () => this.typed(),
      moved: (place) => {
        if (this.fits()) this.sheet.from(place);
      },
    });
    this.sheet = answerSheet({
      aimed: (word, node) => this.threads.draw(node, this.field.mark(word && this.fits() ? word.from : [])),
      chosen: (word) => {
        if (word.from.length) this.inside.choose(word.from[0][0]);
      },
    });
    this.desk = deskOf(this.field, this.sheet, settings.charLimit);
    this.threads = threads(this.desk.node);
    this.wish = newest((signal) => this.translate(signal), {
      delay: PAUSE,
      trouble: (error) => {
        this.desk.busy(false);
        this.alarm.show(error, () => this.again());
      },
    });
    this.about = newest((signal) => this.describe(signal), {
      trouble: (error) => {
        if (error) this.alarm.show(error, () => this.again());
      },
    });
    this.layOut();
    this.examples = element("div", { class: "examples", role: "group", "aria-label": "Examples" });
    this.inside = new Inside(
      this.panels.inside,
      (q, off, signal) => post("attention", { q, ...this.wanted(), heads_off: off }, signal),
      { examples: this.examples },
    );
    this.glossary = glossaryEditor(this.panels.glossary.firstChild, {
      changed: () => this.wish(PAUSE_TERMS),
    });
    this.begin(new URLSearchParams(location.hash.slice(1)));
  }

  layOut() {
    Object.assign(
      this,
      panelsOf(PANELS, "Below the translation", () => this.inside?.wake()),
    );
    this.panels.glossary.append(element("section", { class: "card", "aria-label": "Glossary" }));
    this.decoders = element("div", { class: "decoders" });
    this.root.replaceChildren(
      top(this.name),
      this.decoders,
      this.desk.node,
      this.alarm.node,
      this.tabs,
      ...Object.values(this.panels),
      foot(
        "A tinted word is one the model was unsure of. " +
          "The attention shown is that of the very decoding that wrote the sentence. ",
      ),
    );
    this.desk.clear.addEventListener("click", () => {
      this.field.set("");
      this.field.area.focus();
      this.typed(0);
    });
    addEventListener("resize", () => this.sheet.aim(null));
    for (const scrolled of [this.field.area, this.sheet.node])
      scrolled.addEventListener("scroll", () => this.sheet.aim(null), { passive: true });
  }

  /* With the text and the languages that the address holds, so that a page can be passed on. */
  begin(wanted) {
    this.open("inside");
    this.model = wanted.get("model") ?? "";
    this.choose(
      settle(
        this.languages,
        wanted.get("source") ?? this.first.source.code,
        wanted.get("target") ?? this.first.target.code,
      ),
    );
    this.field.set(wanted.get("q") ?? "");
    this.typed(0);
    if (matchMedia("(hover: hover)").matches) this.field.area.focus({ preventScroll: true });
  }

  choose(pair, swapped = false) {
    const answer = this.sheet.text();
    Object.assign(this, { pair, detected: null });
    if (swapped && answer) this.field.set(answer);
    this.desk.languages(languageBar(this.languages, pair, (...chosen) => this.choose(...chosen)));
    this.glossary.open(`${pair.source}-${pair.target}`);
    this.decide(this.model);
  }

  /* Whose translations are shown, where several models have these languages. */
  decide(model) {
    const able = this.able();
    this.model = able.length > 1 ? (able.find((each) => each.id === model) ?? able[0]).id : "";
    const ways = able.map((each) => each.writes);
    const names = able.map((each, i) =>
      ways.indexOf(ways[i]) === ways.lastIndexOf(ways[i]) ? capital(each.writes) : each.id,
    );
    const again = (chosen) => {
      this.decide(chosen);
      this.decoders.querySelector("[aria-pressed=true]").focus();
    };
    const choices = able.map((each, i) => [each.id, names[i]]);
    this.decoders.hidden = !this.model;
    this.decoders.replaceChildren(
      element("span", { class: "eyebrow" }, "Written"),
      segmented("How it is written", choices, this.model, again),
    );
    this.inside.forget();
    this.offerExamples();
    this.about();
    this.typed(0);
  }

  /* Sentences in the language that is translated from, to begin with. */
  offerExamples() {
    const code = this.known().source;
    this.examples.replaceChildren(
      ...examplesOf(code).map((text) =>
        element(
          "button",
          { type: "button", lang: code, dir: "auto", onclick: () => this.tryOut(text) },
          text,
        ),
      ),
    );
  }

  tryOut(text) {
    this.field.set(text);
    this.field.area.focus({ preventScroll: true });
    this.typed(0);
  }

  /* The models that translate what is chosen. */
  able() {
    const { source, target } = this.known();
    const pair = `${source}-${target}`;
    return this.models.filter((each) =>
      [...(each.pairs ?? [`${each.source}-${each.target}`]), ...(each.zero_shot ?? [])].includes(pair),
    );
  }

  /* The pair of languages, with the one that was found where that was asked. */
  known() {
    return this.pair.source === AUTO
      ? settle(this.languages, this.detected ?? this.first.source.code, this.pair.target)
      : this.pair;
  }

  /* What every request says. */
  wanted() {
    return this.model ? { ...this.pair, model: this.model } : this.pair;
  }

  /* Whether the translation that is shown is that of the text that is typed. */
  fits() {
    return this.sheet.reads(this.field.area.value);
  }

  /* What hangs on the old text does not fit the new one. */
  typed(wait = PAUSE) {
    this.sheet.aim(null);
    this.desk.count(this.field.area.value.length);
    this.wish(wait);
  }

  again() {
    this.about();
    this.wish(0);
  }

  async translate(signal) {
    const q = this.field.area.value;
    history.replaceState(
      null,
      "",
      `#${new URLSearchParams({ ...this.wanted(), ...(q.length < SHORT ? { q } : {}) })}`,
    );
    if (!q.trim()) return this.take(q, { translatedText: "" });
    this.desk.busy(true);
    let text = "";
    const asked = {
      q,
      ...this.wanted(),
      words: true,
      alternatives: ALTERNATIVES,
      glossary: this.glossary.terms(),
    };
    for await (const [event, tree] of translation(asked, signal)) {
      if (event === "done") this.take(q, tree);
      else this.sheet.plain((text += tree.text), true);
    }
  }

  take(q, { translatedText, alternatives = [], words = [], detectedLanguage }) {
    const readings = translatedText ? [translatedText, ...alternatives] : [];
    Object.assign(this, { words, readings });
    this.desk.copy.hidden = !readings.length;
    this.show(0, q);
    this.inside.follow(q, Object.keys(this.glossary.terms()).length ? null : translatedText);
    if (detectedLanguage && detectedLanguage.language !== this.detected) {
      this.detected = detectedLanguage.language;
      if (this.models.length > 1) this.decide(this.model);
      else this.about();
    }
  }

  /* One of the readings; of the best one it is known where each word came from. */
  show(at, q = this.field.area.value) {
    if (at) this.sheet.plain(this.readings[at]);
    else this.sheet.full(this.readings[0] ?? "", this.words, q);
    drawAlternatives(this.desk.alternatives, this.readings, at, (other) => {
      this.show(other);
      this.sheet.node.focus();
    });
  }

  async describe(signal) {
    const wanted = this.model ? { ...this.known(), model: this.model } : this.known();
    const [model] = await get(`model?${new URLSearchParams(wanted)}`, signal);
    this.name.textContent = model.name;
    drawModel(this.panels.model, model);
  }
}

/* The page of the translators that are served. */
export async function openTranslator(root, signal, models) {
  const [languages, settings] = await Promise.all([
    get("languages", signal),
    get("frontend/settings", signal),
  ]);
  new Page(root, languages, settings, models);
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}
