// Two lines of words with links between them that follow the pointer. The links of a word are drawn when
// it is pointed at or focused; a click keeps it. Where the lines do not fit side by side they stand as two
// columns.
import { element, percent, roving, shape } from "./dom.js";
import { confidenceOf } from "./words.js";

const SPAN = 132; // between the two lines
const ROW = 30;

/* Draw into `root`; view = {data, queries, keys, weights, threshold, picked, sides, mute}. */
export function drawLinks(root, view, { pick }) {
  const state = { hover: null, ...view };
  const keys = line(state, "keys"),
    queries = line(state, "queries");
  const canvas = shape("svg", { class: "links-lines", "aria-hidden": "true" });
  const board = element(
    "div",
    { class: "links-board" },
    titled(view.sides.keys, keys),
    canvas,
    titled(view.sides.queries, queries),
  );
  const told = element("p", { class: "readout", "aria-live": "polite" });
  root.replaceChildren(board, told);

  for (const [name, row] of [
    ["keys", keys],
    ["queries", queries],
  ]) {
    roving(row, "button");
    row.addEventListener("pointerover", (event) => aim(name, indexOf(event.target)));
    row.addEventListener("focusin", (event) => aim(name, indexOf(event.target)));
    row.addEventListener("pointerleave", () => aim(name, null));
    row.addEventListener("focusout", () => aim(name, null));
    row.addEventListener("click", (event) => {
      const at = indexOf(event.target);
      if (at !== null && name === "queries") pick(state.picked === at ? null : at);
    });
  }
  function aim(name, at) {
    state.hover = at === null ? null : { name, at };
    paint();
  }
  const place = () => {
    layOut(board, keys, queries, canvas);
    paint();
  };
  const paint = () => {
    drawCurves(canvas, keys, queries, state);
    tint(keys, queries, state);
    told.textContent = describe(state);
  };
  place();
  const watcher = new ResizeObserver(place);
  watcher.observe(root);
  return { stop: () => watcher.disconnect() };
}

function titled(title, row) {
  return element("div", { class: "links-side" }, element("span", { class: "eyebrow" }, title), row);
}

function line(state, name) {
  const row = element("div", { class: `words ${name}`, role: "group", "aria-label": state.sides[name] });
  state[name].forEach((unit, i) => {
    const sure = name === "queries" && state.sides.confident ? confidenceOf(state.data, unit) : null;
    row.append(
      element(
        "button",
        {
          type: "button",
          class: `word${unit.glued ? " glued" : ""}${unit.special ? " special" : ""}`,
          "data-at": i,
          "aria-pressed": name === "queries" ? String(state.picked === i) : null,
          title: sure === null ? null : `written with ${percent(sure)} confidence`,
          style: sure === null ? {} : { "--sure": percent(sure) },
        },
        element("bdi", {}, unit.text),
      ),
    );
  });
  return row;
}

function indexOf(target) {
  const button = target.closest("button");
  return button ? Number(button.dataset.at) : null;
}

/* Beside each other if both lines fit, else one below the other as columns. */
function layOut(board, keys, queries, canvas) {
  board.classList.remove("columns");
  const width = board.clientWidth;
  board.classList.toggle("columns", keys.scrollWidth > width + 1 || queries.scrollWidth > width + 1);
  const tall = board.classList.contains("columns");
  const height = tall ? Math.max(keys.children.length, queries.children.length) * ROW : SPAN;
  canvas.style.height = `${height}px`;
}

/* Of which words links are shown: the pointed, else the picked, else all. */
function focusOf(state) {
  return state.hover || (state.picked === null ? null : { name: "queries", at: state.picked });
}

function drawCurves(canvas, keys, queries, state) {
  const focus = focusOf(state);
  const box = canvas.getBoundingClientRect();
  const tall = canvas.parentElement.classList.contains("columns");
  const middle = (row, i) => {
    const r = row.children[i].getBoundingClientRect();
    return tall ? r.top + r.height / 2 - box.top : r.left + r.width / 2 - box.left;
  };
  const curves = [];
  state.weights.forEach((row, q) =>
    row.forEach((weight, k) => {
      if (weight < Math.max(state.threshold, 0.005)) return;
      const on = !focus || (focus.name === "queries" ? focus.at === q : focus.at === k);
      const from = middle(keys, k),
        to = middle(queries, q);
      curves.push([
        on,
        weight,
        tall
          ? `M0 ${from}C${box.width / 2} ${from} ${box.width / 2} ${to} ${box.width} ${to}`
          : `M${from} 0C${from} ${box.height * 0.55} ${to} ${box.height * 0.45} ${to} ${box.height}`,
      ]);
    }),
  );
  curves.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  canvas.replaceChildren(
    ...curves.map(([on, weight, d]) =>
      shape("path", {
        d,
        class: on ? "on" : "",
        "stroke-width": (0.75 + weight * 5).toFixed(2),
        "stroke-opacity": (on ? 0.12 + weight * (focus ? 0.88 : 0.7) : weight * 0.07).toFixed(3),
      }),
    ),
  );
}

/* Words get the weight that the focused word gives them, or gets from them. */
function tint(keys, queries, state) {
  const focus = focusOf(state);
  const weigh = (name, i) => {
    if (!focus || focus.name === name) return 0;
    return name === "keys" ? state.weights[focus.at][i] : state.weights[i][focus.at];
  };
  for (const [name, row] of [
    ["keys", keys],
    ["queries", queries],
  ]) {
    [...row.children].forEach((button, i) => {
      const weight = weigh(name, i) < state.threshold ? 0 : weigh(name, i);
      button.style.setProperty("--weight", percent(Math.min(1, weight)));
      button.classList.toggle("strong", weight > 0.45);
      button.classList.toggle("focused", Boolean(focus && focus.name === name && focus.at === i));
    });
  }
}

/* What is seen, in words: "Hund" looks at "dog" 92%, "a" 4%. */
function describe(state) {
  const focus = focusOf(state);
  if (!focus) return state.hint;
  const looking = focus.name === "queries";
  const others = state[looking ? "keys" : "queries"];
  const found = others
    .map((unit, i) => [looking ? state.weights[focus.at][i] : state.weights[i][focus.at], unit.text])
    .filter(([weight]) => weight >= Math.max(state.threshold, 0.01))
    .sort((a, b) => b[0] - a[0])
    .slice(0, 5)
    .map(([weight, text]) => `“${text}” ${percent(weight)}`);
  const sure = looking && state.sides.confident ? confidenceOf(state.data, state.queries[focus.at]) : null;
  const does = looking ? "looks at" : "is looked at by";
  return (
    `“${state[focus.name][focus.at].text}” ${does} ${found.join(", ") || "nothing above the threshold"}` +
    (sure === null ? "" : ` · written with ${percent(sure)} confidence`)
  );
}
