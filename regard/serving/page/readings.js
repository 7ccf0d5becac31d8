// What encoders make of a text, drawn: gaps with what may stand in them, labels with their probabilities, and
// words with their tags. A reading knows its address, what it asks for, and when a text can be read.
import { element, percent } from "./look/dom.js";

export const MASK = "[MASK]";
const GUESSES = 8;
const LABELS = 12; // of a text that are shown

export const READINGS = { masked: gaps, classify: label, tag: tags, embed: vectors };

const something = (text) => text.trim().length > 0;
const bar = (value) =>
  element(
    "span",
    { class: "track" },
    element("span", { class: "fill", style: { width: percent(Math.min(1, value)) } }),
  );

/* Gaps filled by what is likeliest; each can be opened, and another guess taken. */
function gaps({ take }) {
  const node = element("div", { class: "read" });
  let chosen = 0;
  function show(found, text) {
    if (!found) return node.replaceChildren();
    chosen = Math.min(chosen, found.gaps.length - 1);
    const parts = text.split(MASK);
    const line = element("p", { class: "text filled", dir: "auto" });
    parts.forEach((part, i) => {
      line.append(part);
      if (i < found.gaps.length) line.append(opener(found, text, i));
    });
    node.replaceChildren(line, guesses(found.gaps[chosen]));
  }
  function opener(found, text, i) {
    const open = () => {
      chosen = i;
      show(found, text);
      node.querySelectorAll(".gap")[i].focus();
    };
    const [best] = found.gaps[i];
    return element(
      "button",
      { type: "button", class: "gap", "aria-pressed": String(i === chosen), onclick: open },
      named(best.text),
    );
  }
  function guesses(gap) {
    const row = ({ text, probability }) =>
      element(
        "li",
        {},
        element(
          "button",
          { type: "button", class: "runner", onclick: () => take(chosen, text) },
          element("bdi", {}, named(text)),
          bar(probability),
          element("span", { class: "figure" }, percent(probability, 1)),
        ),
      );
    return element(
      "div",
      { class: "others" },
      element("p", { class: "eyebrow" }, "What may stand there; take one"),
      element("ul", {}, gap.map(row)),
    );
  }
  return {
    node,
    show,
    path: "fill",
    fields: { top: GUESSES },
    reads: (text) => text.includes(MASK),
    hint: `Write a text with a ${MASK} in it`,
  };
}

/* What kind a text is: every label, the likeliest first. */
function label() {
  const node = element("div", { class: "read", "aria-live": "polite" });
  function show(found) {
    if (!found) return node.replaceChildren();
    const all = Object.entries(found.labels).sort(([, a], [, b]) => b - a);
    const row = ([name, chance]) =>
      element(
        "li",
        { class: name === found.label ? "first" : "" },
        element("bdi", {}, name),
        bar(chance),
        element("span", { class: "figure" }, percent(chance, 1)),
      );
    const more = all.length - LABELS;
    node.replaceChildren(
      element("ul", { class: "labels" }, all.slice(0, LABELS).map(row)),
      more > 0 ? element("p", { class: "hint" }, `and ${more} more`) : "",
    );
  }
  return { node, show, path: "classify", fields: {}, reads: something, hint: "Type or paste a text" };
}

/* Words with what each of them is; unsure ones are tinted. */
function tags() {
  const node = element("div", { class: "read tagged", role: "group", "aria-label": "Words and their tags" });
  function show(found) {
    if (!found) return node.replaceChildren();
    const word = (text, i) =>
      element(
        "span",
        { class: "tagged-word", style: { "--doubt": `${(100 * (1 - found.probabilities[i])).toFixed(0)}%` } },
        element("bdi", { class: "text" }, text),
        element("span", { class: "tag" }, found.tags[i]),
        element("span", { class: "figure" }, percent(found.probabilities[i])),
      );
    node.replaceChildren(...found.words.map(word));
  }
  return { node, show, path: "tag", fields: {}, reads: something, hint: "Type or paste a sentence" };
}

/* A vector says nothing by itself: its neighbours do. */
function vectors() {
  return {
    node: element("div", { class: "read" }),
    show: () => {},
    path: null,
    panel: "neighbours",
    reads: something,
    hint: "Type a sentence, and lines to compare it with below",
  };
}

const named = (text) => (text.trim() ? text : JSON.stringify(text));
