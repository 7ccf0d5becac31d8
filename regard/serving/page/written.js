// What was written, token by token: each tinted by how improbable it was; pointed at, it tells what else the
// model thought of, and another one can be taken in its place.
import { element, percent } from "./look/dom.js";

const SURE = 0.8; // from here on nothing is tinted
const BYTES = /^bytes:((?:\\x[0-9a-f]{2})+)$/;

export function writtenSheet({ take, chosen }) {
  const node = element("span", {
    class: "answer",
    role: "group",
    tabindex: "0",
    "aria-label": "What was written",
  });
  const told = element("p", { class: "told", "aria-live": "polite" });
  const others = element("div", { class: "others" });
  const sheet = { tokens: [], at: null, kept: null };
  const shown = () => sheet.at ?? sheet.kept;

  function aim(at, keep = false) {
    if (keep) sheet.kept = at;
    sheet.at = at;
    for (const other of node.querySelectorAll(".aimed")) other.classList.remove("aimed");
    node.children[shown()]?.classList.add("aimed");
    const token = sheet.tokens[shown()];
    told.replaceChildren(...(token ? tell(token) : []));
    others.replaceChildren(...(token ? runnersUp(token, (runner) => take(shown(), runner)) : []));
  }
  const indexOf = (target) => {
    const word = target.closest?.(".said");
    return word ? Number(word.dataset.at) : null;
  };
  node.addEventListener("pointerover", (event) => aim(indexOf(event.target)));
  node.addEventListener("pointerleave", () => aim(null));
  node.addEventListener("click", (event) => {
    const at = indexOf(event.target);
    if (at === null) return;
    aim(at, true);
    chosen(at);
  });
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && sheet.kept !== null) chosen(sheet.kept);
    if (!step || !sheet.tokens.length) return;
    event.preventDefault();
    const from = sheet.kept ?? (step > 0 ? -1 : sheet.tokens.length);
    aim(Math.max(0, Math.min(sheet.tokens.length - 1, from + step)), true);
  });

  /* Show these tokens: [{id, text, logp, runners}]. */
  function show(tokens) {
    const texts = textsOf(tokens);
    Object.assign(sheet, { tokens: tokens.map((token, i) => ({ ...token, shown: texts[i] })) });
    node.replaceChildren(...sheet.tokens.map(tokenNode));
    aim(null, true);
  }
  return {
    node,
    told,
    others,
    show,
    /* One more, while they come. */
    add: (token) => {
      const before = sheet.tokens.length;
      sheet.tokens.push({ ...token, shown: textsOf([...sheet.tokens, token])[before] });
      node.append(tokenNode(sheet.tokens[before], before));
    },
    text: () => sheet.tokens.map((token) => token.shown).join(""),
  };
}

/* The text of each token; a character that takes several is shown where it is whole. */
function textsOf(tokens) {
  const decoder = new TextDecoder();
  return tokens.map(({ text }) => decoder.decode(bytesOf(text), { stream: true }));
}

function bytesOf(text) {
  const found = BYTES.exec(text);
  if (!found) return new TextEncoder().encode(text);
  return Uint8Array.from(found[1].slice(2).split("\\x"), (two) => parseInt(two, 16));
}

function tokenNode(token, at) {
  const lacking = Math.max(0, (SURE - Math.exp(token.logp)) / SURE);
  return element(
    "span",
    {
      class: `said${lacking ? " unsure" : ""}`,
      "data-at": at,
      style: { "--doubt": `${(100 * lacking).toFixed(0)}%` },
    },
    token.shown,
  );
}

const named = (text) => (text.trim() ? text : JSON.stringify(text));

function tell(token) {
  const sure = Math.exp(token.logp);
  return [
    element("span", {}, "“", element("bdi", {}, named(token.text)), "”"),
    element(
      "span",
      { class: "track" },
      element("span", { class: "fill", style: { width: percent(Math.min(1, sure)) } }),
    ),
    element("span", { class: "figure" }, percent(sure, 1)),
  ];
}

/* What else could have stood there; a click goes on from it. */
function runnersUp(token, take) {
  const runners = token.runners.filter(([id]) => id !== token.id);
  if (!runners.length) return [];
  return [
    element("p", { class: "eyebrow" }, "Go on with another"),
    element(
      "ul",
      {},
      runners.map(([id, text, logp]) =>
        element(
          "li",
          {},
          element(
            "button",
            {
              type: "button",
              class: "runner",
              onclick: () => take({ id, text, logp, runners: token.runners }),
            },
            element("bdi", {}, named(text)),
            element(
              "span",
              { class: "track", "aria-hidden": "true" },
              element("span", { class: "fill", style: { width: percent(Math.min(1, Math.exp(logp))) } }),
            ),
            element("span", { class: "figure" }, percent(Math.exp(logp), 1)),
          ),
        ),
      ),
    ),
  ];
}
