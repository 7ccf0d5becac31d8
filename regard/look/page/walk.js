// The walk through one head for one query: its vector, every key, the scores, scaling, softmax, the
// weighted sum of the values, and the concatenation with the other heads. In numbers and in colour, of the
// decoding that really ran.
import { element, number, percent, roving } from "./dom.js";
import { heat, rgb, signed } from "./theme.js";
import { sum } from "./words.js";

const STEPS = [
  ["Query", "The word asks a question: its vector, multiplied by this head's matrix W_Q, is the query q."],
  ["Keys", "Every word it may look at offers a key k, made with W_K. A key says what there is to be found."],
  ["Scores", "Query and key are multiplied number by number and added up: q·k is large where the two fit."],
  [
    "Scaling",
    "Long vectors give large sums; dividing by √K keeps the scores where softmax is not saturated.",
  ],
  [
    "Softmax",
    "e to the power of each score, divided by the sum of all: weights that are positive and sum to 1.",
  ],
  [
    "Values",
    "Every word also has a value v, made with W_V. The head sums the values, each times its weight.",
  ],
  [
    "Concatenate",
    "The sums of all heads are laid side by side and multiplied by W_O: what the layer adds to the word.",
  ],
];

export const LAST_STEP = STEPS.length - 1;

/* walk = {map, head, query, queries, keys} in pieces. */
export function drawWalk(root, walk, { step, playing, play, go, pick }) {
  const { map, head, query, queries, keys } = walk;
  const parts = compute(map, head, query);
  const chips = element(
    "div",
    { class: "words queries", role: "group", "aria-label": "The word that looks" },
    queries.map((unit, i) =>
      element(
        "button",
        {
          type: "button",
          class: `word${unit.glued ? " glued" : ""}${unit.special ? " special" : ""}`,
          "aria-pressed": String(i === query),
          onclick: () => pick(i),
        },
        element("bdi", {}, unit.text),
      ),
    ),
  );
  roving(chips, "button");
  const board = element("div", { class: "walk-board", "data-step": step });
  const strips = { key: parts.best };
  function paint() {
    board.replaceChildren(
      queryRow(parts, queries[query].text),
      keyTable(parts, keys, strips.key, step, (key) => {
        strips.key = key;
        paint();
      }),
      concatenation(parts, head),
    );
  }
  paint();
  root.replaceChildren(
    chips,
    stepper(step, go),
    controls(step, playing, play, go),
    element("p", { class: "explain", "aria-live": "polite" }, STEPS[step][1]),
    board,
  );
}

function stepper(step, go) {
  const list = element(
    "ol",
    { class: "steps" },
    STEPS.map(([name], i) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            "aria-current": i === step ? "step" : null,
            class: i <= step ? "done" : "",
            onclick: () => go(i),
          },
          element("span", { class: "count", "aria-hidden": "true" }, String(i + 1)),
          name,
        ),
      ),
    ),
  );
  roving(list, "button");
  return list;
}

/* One step back, one on, or all of them by themselves. */
function controls(step, playing, play, go) {
  const button = (does, text, onclick, more = {}) =>
    element("button", { type: "button", "data-does": does, onclick, ...more }, text);
  const to = step === LAST_STEP ? 0 : step + 1;
  return element(
    "div",
    { class: "step-buttons", role: "group", "aria-label": "Go through the steps" },
    button("back", "Back", () => go(step - 1, step > 1 ? "[data-does=back]" : "[data-does=next]"), {
      disabled: step === 0,
    }),
    button("next", step === LAST_STEP ? "Again" : "Next", () => go(to, "[data-does=next]")),
    button("play", playing ? "Pause" : "Play", () => play(!playing)),
  );
}

/* Every number of the walk; what was taped is taken, the rest is computed from it. */
export function compute(map, head, query) {
  const { q, k, v, weights, scores, bias } = map.heads[head];
  const width = q[0].length,
    seen = weights[query];
  const products = k.map((key) => key.map((part, d) => part * q[query][d]));
  const raw = products.map(sum);
  const scaled = scores
    ? scores[query]
    : raw.map((score) => (map.score === "dot" ? score : score / Math.sqrt(width)));
  const added = bias ? bias[query] : null;
  const gathered = map.heads.map((each) =>
    each.v[0].map((_, d) => sum(each.v.map((value, j) => (each.weights[query][j] || 0) * value[d]))),
  );
  return {
    query,
    causal: map.causal,
    width,
    q: q[query],
    k,
    v,
    products,
    raw,
    scaled,
    added,
    weights: seen,
    score: map.score,
    z: gathered[head],
    gathered,
    out: map.out[query],
    best: seen.indexOf(Math.max(...seen)),
  };
}

/* A vector as a strip of coloured cells; its numbers are read by pointing at them. */
export function strip(vector, most, label, low = 16) {
  const cells = vector.length,
    shades = signed(most);
  const canvas = element("canvas", {
    class: "strip",
    width: cells,
    height: 1,
    role: "img",
    "aria-label": `${label}: ${vector
      .slice(0, 8)
      .map((each) => number(each))
      .join(" ")}${cells > 8 ? " …" : ""}`,
    style: { height: `${low}px` },
  });
  const context = canvas.getContext("2d");
  const image = context.createImageData(cells, 1);
  vector.forEach((value, i) => image.data.set([...shades(value), 255], 4 * i));
  context.putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const i = Math.min(cells - 1, Math.floor((event.offsetX / canvas.clientWidth) * cells));
    canvas.title = `${label}[${i}] = ${number(vector[i], 3)}`;
  });
  return canvas;
}

function numbers(vector, count = 6) {
  return element(
    "span",
    { class: "numbers" },
    `[${vector
      .slice(0, count)
      .map((each) => number(each))
      .join("  ")}${vector.length > count ? "  …" : ""}]`,
  );
}

export const largest = (vectors) => Math.max(...vectors.map((vector) => Math.max(...vector.map(Math.abs))));

function queryRow(parts, word) {
  return element(
    "div",
    { class: "walk-query", "data-from": 0 },
    element("span", { class: "symbol" }, "q"),
    element("bdi", { class: "name" }, word),
    strip(parts.q, largest([parts.q, ...parts.k]), "q", 20),
    numbers(parts.q),
  );
}

/* A row a key: its vector, its score on the way to a weight, and its value. */
function keyTable(parts, keys, chosen, step, choose) {
  const dot = parts.score !== "other";
  const most = largest([parts.q, ...parts.k]),
    mostValue = largest(parts.v),
    mostProduct = largest(parts.products),
    shades = heat();
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "word"),
    cell("th", 1, "key k"),
    dot && cell("th", 2, "q·k"),
    cell("th", 3, dot ? (parts.score === "dot" ? "score" : `÷ √${parts.width}`) : "score"),
    parts.added && cell("th", 3, "+ position"),
    cell("th", 4, "softmax"),
    cell("th", 5, "value v"),
  );
  const rows = keys.map((unit, j) => {
    const weight = parts.weights[j],
      blind = parts.causal && j > parts.query;
    const row = element(
      "tr",
      {
        class: `${j === chosen ? "chosen" : ""}${blind ? " blind" : ""}`,
        style: { "--weight": percent(weight) },
      },
      element(
        "th",
        { scope: "row" },
        element(
          "button",
          { type: "button", class: "plain", "aria-pressed": String(j === chosen), onclick: () => choose(j) },
          element("bdi", {}, unit.text),
        ),
      ),
      cell("td", 1, strip(parts.k[j] || [0], most, "k")),
      dot && cell("td", 2, number(parts.raw[j]), "figure"),
      cell("td", 3, number(parts.scaled[j]), "figure"),
      parts.added && cell("td", 3, number(parts.added[j]), "figure"),
      cell(
        "td",
        4,
        [
          element("span", {
            class: "weight",
            style: { background: rgb(shades(weight)), width: `${Math.max(2, weight * 96)}px` },
          }),
          element("span", { class: "figure" }, percent(weight, 1)),
        ],
        "softmax",
      ),
      cell("td", 5, strip(parts.v[j] || [0], mostValue, "v")),
    );
    row.lastChild.style.opacity = step >= 5 ? 0.18 + 0.82 * weight : 1;
    return row;
  });
  const gathered = element(
    "tr",
    { class: "gathered" },
    element(
      "th",
      { scope: "row", colspan: 3 + (dot ? 1 : 0) + (parts.added ? 1 : 0) },
      element("span", { class: "symbol" }, "z"),
      " = Σ weight · v",
    ),
    cell("td", 4, element("span", { class: "figure" }, percent(sum(parts.weights)))),
    cell("td", 5, [strip(parts.z, largest([parts.z]), "z", 20), numbers(parts.z, 4)]),
  );
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, rows, gathered));
  return element(
    "div",
    { "data-from": 1 },
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Keys, scores and values" },
      table,
    ),
    dot ? product(parts, keys, chosen, most, mostProduct) : "",
  );
}

function cell(tag, from, content, name = "") {
  return element(tag, { class: name, "data-from": from, scope: tag === "th" ? "col" : null }, content);
}

/* How the score of the chosen key adds up. */
function product(parts, keys, chosen, most, mostProduct) {
  const terms = parts.products[chosen]
    .slice(0, 3)
    .map((each, d) => `${number(parts.q[d])} · ${number(parts.k[chosen][d])}`)
    .join(" + ");
  return element(
    "div",
    { class: "product", "data-from": 2 },
    element("span", { class: "symbol" }, "q"),
    strip(parts.q, most, "q", 12),
    element("span", { class: "symbol" }, "k"),
    strip(parts.k[chosen], most, `k of ${keys[chosen].text}`, 12),
    element("span", { class: "symbol" }, "q∘k"),
    strip(parts.products[chosen], mostProduct, "q∘k", 12),
    element(
      "p",
      { class: "numbers" },
      "“",
      element("bdi", {}, keys[chosen].text),
      `”: ${terms} + … = ${number(parts.raw[chosen])}`,
    ),
  );
}

/* The sums of all heads side by side, and what W_O makes of them. */
function concatenation(parts, head) {
  const most = largest(parts.gathered);
  const blocks = parts.gathered.map((vector, i) =>
    element(
      "div",
      { class: `block${i === head ? " own" : ""}` },
      strip(vector, most, `head ${i}`, 20),
      element("span", {}, i === head ? `head ${i} (this one)` : `head ${i}`),
    ),
  );
  return element(
    "div",
    { class: "concatenation", "data-from": 6 },
    element("p", { class: "eyebrow" }, `all ${parts.gathered.length} heads, side by side`),
    element("div", { class: "blocks" }, blocks),
    element("p", { class: "eyebrow" }, "× W_O = what the layer adds to the word"),
    strip(parts.out, largest([parts.out]), "out", 20),
    numbers(parts.out, 8),
  );
}
