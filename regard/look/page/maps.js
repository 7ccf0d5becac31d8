// All heads of one kind as small maps, layer by layer, and one of them opened large.
import { element, percent, power, roving } from "./dom.js";
import { colour, heat, rgb } from "./theme.js";

const HABITS = {
  previous: "Looks mostly at the place before.",
  next: "Looks mostly at the place after.",
  same: "Looks mostly at the same place.",
  first: "Rests mostly on the first place.",
  last: "Rests mostly on the last place.",
  spread: "Spreads its weight almost evenly.",
  twin: "Looks mostly at the same word elsewhere.",
  marks: "Rests mostly on punctuation.",
  content: "Looks by content: no fixed place explains it.",
};
const NAMES = { twin: "same word", marks: "punctuation", same: "same place" };

/* What stands under a head: its habit, or where it has none of its own its strongest example. */
function habitOf({ behaviour, examples = [] }) {
  if (behaviour !== "content" || !examples.length) return NAMES[behaviour] ?? behaviour;
  return `${examples[0][0]} → ${examples[0][1]}`;
}

function examplesText(examples = []) {
  const told = examples.map(([query, key, weight]) => `“${query}” at “${key}” ${percent(weight)}`);
  return told.length ? ` Most sharply ${told.join(", ")}.` : "";
}

/* views = [{map, tables}] a layer; the first table of a layer is the mean of its heads. */
export function drawGrid(root, views, { chosen, open, off = null, toggle = null, threshold = 0 }) {
  const shades = heat();
  const columns = Math.max(...views.map((view) => view.tables.length));
  const grid = element("div", {
    class: "grid",
    role: "group",
    "aria-label": "All heads",
    style: { "--heads": columns },
  });
  for (const { map, tables } of views) {
    grid.append(element("span", { class: "layer" }, `layer ${map.layer}`));
    tables.forEach((table, i) => grid.append(smallMap(map, table, i - 1)));
    for (let i = tables.length; i < columns; i++) grid.append(element("span"));
  }
  roving(grid, "button.small", () => columns);
  root.replaceChildren(grid);

  function smallMap(map, table, head) {
    const facts = head < 0 ? null : map.heads[head];
    const silent = off && head >= 0 && (off[map.name] || []).includes(head);
    const name = `${map.kind} layer ${map.layer}, ${head < 0 ? "mean of heads" : `head ${head}`}`;
    const button = element(
      "button",
      {
        type: "button",
        class: `small${silent ? " silent" : ""}`,
        "aria-pressed": String(chosen.layer === map.layer && chosen.head === head),
        "aria-label": facts ? `${name}: ${habitOf(facts)}, entropy ${facts.entropy.toFixed(1)} bits` : name,
        "data-head": head,
        "data-layer": map.layer,
        onclick: () => open(map.layer, head),
      },
      thumbnail(table, shades, threshold),
      element("span", { class: "tag" }, head < 0 ? "mean" : `head ${head}`),
      element("span", { class: "habit", title: facts && habitOf(facts) }, facts ? habitOf(facts) : "of all"),
    );
    if (!toggle || head < 0) return button;
    return element(
      "div",
      { class: "switchable" },
      button,
      power(name, silent, () => toggle(map.name, head)),
    );
  }
}

/* A table of weights as a picture with a pixel a weight. */
function thumbnail(table, shades, threshold) {
  const canvas = element("canvas", { width: table[0].length, height: table.length, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(table[0].length, table.length);
  table.forEach((row, i) =>
    row.forEach((weight, j) => {
      image.data.set([...shades(weight < threshold ? 0 : weight), 255], 4 * (i * row.length + j));
    }),
  );
  context.putImageData(image, 0, 0);
  return canvas;
}

/* One head large: words at the edges, a cell a weight; pointer and arrow keys read it. */
export function drawLarge(root, view, { threshold, title, pick }) {
  const { queries, keys, weights } = view;
  const canvas = element("canvas", {
    class: "large",
    tabindex: "0",
    role: "application",
    "aria-label":
      `${title}: ${queries.length} rows that look at ${keys.length} columns; ` + "arrow keys read the cells",
  });
  const told = element(
    "p",
    { class: "readout", "aria-live": "polite" },
    "Point at a cell, or move with the arrow keys.",
  );
  const plan = layOutMap(queries, keys, root.clientWidth);
  let at = null;
  const paint = () => paintMap(canvas, plan, view, threshold, at);
  const read = (cell) => {
    at = cell;
    paint();
    if (!cell) return;
    const [i, j] = cell;
    told.textContent = `“${queries[i].text}” looks at “${keys[j].text}”: ${percent(weights[i][j], 1)}`;
  };
  canvas.addEventListener("pointermove", (event) => read(plan.cellAt(event.offsetX, event.offsetY)));
  canvas.addEventListener("pointerleave", () => read(null));
  canvas.addEventListener("click", (event) => {
    const cell = plan.cellAt(event.offsetX, event.offsetY);
    if (cell) pick(cell[0]);
  });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [i, j] = at || [0, -move[1]];
    read([clamp(i + move[0], queries.length), clamp(j + move[1], keys.length)]);
  });
  root.replaceChildren(element("div", { class: "scroll" }, canvas), told);
  paint();
}

const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));

/* Cells as large as the room allows, within reason; what is still too wide is scrolled. */
function layOutMap(queries, keys, room) {
  const widest = (units) => Math.min(130, Math.max(...units.map((unit) => measure(unit.text)), 10));
  const left = widest(queries) + 14,
    slant = widest(keys) * 0.71 + 16,
    over = measure(keys[keys.length - 1].text) * 0.71;
  const cell = Math.max(8, Math.min(30, Math.floor((room - left - over - 8) / keys.length)));
  const width = left + cell * keys.length + Math.max(over - cell / 2 + 6, 2),
    height = slant + cell * queries.length + 2;
  return {
    cell,
    left,
    top: slant,
    width,
    height,
    cellAt(x, y) {
      const i = Math.floor((y - slant) / cell),
        j = Math.floor((x - left) / cell);
      return i >= 0 && j >= 0 && i < queries.length && j < keys.length ? [i, j] : null;
    },
  };
}

const ruler = document.createElement("canvas").getContext("2d");
const mapFont = (size) => `${size}px system-ui, sans-serif`;
const LARGEST = 13;

function measure(text) {
  ruler.font = mapFont(LARGEST);
  return ruler.measureText(text).width;
}

function paintMap(canvas, plan, { queries, keys, weights }, threshold, at) {
  const { cell, left, top, width, height } = plan;
  const scale = window.devicePixelRatio || 1,
    shades = heat();
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const gap = cell > 12 ? 1 : 0;
  weights.forEach((row, i) =>
    row.forEach((weight, j) => {
      context.fillStyle = rgb(shades(weight < threshold ? 0 : weight));
      context.beginPath();
      context.roundRect(left + j * cell, top + i * cell, cell - gap, cell - gap, gap * 3);
      context.fill();
    }),
  );
  const [ink, muted, accent] = ["--ink", "--muted", "--accent"].map((name) => rgb(colour(name)));
  // Slanted names stand cell / √2 apart, and are no taller than that.
  const font = (on, room) => `${on ? "600 " : ""}${mapFont(Math.min(LARGEST, Math.floor(room)))}`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  queries.forEach((unit, i) => {
    const on = at && at[0] === i;
    context.font = font(on, cell - 1);
    context.fillStyle = on ? accent : unit.special ? muted : ink;
    context.fillText(unit.text, left - 8, top + (i + 0.5) * cell, 130);
  });
  context.textAlign = "left";
  keys.forEach((unit, j) => {
    const on = at && at[1] === j;
    context.save();
    context.translate(left + (j + 0.5) * cell, top - 6);
    context.rotate(-Math.PI / 4);
    context.font = font(on, cell * Math.SQRT1_2);
    context.fillStyle = on ? accent : unit.special ? muted : ink;
    context.fillText(unit.text, 0, 0, 130);
    context.restore();
  });
  if (at) {
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.strokeRect(left + at[1] * cell, top + at[0] * cell, cell - gap, cell - gap);
  }
}

/* What a head does, in a sentence and in bars. */
export function drawFacts(facts) {
  const bars = Object.entries(facts.shares).map(([name, share]) =>
    element(
      "div",
      { class: "bar" },
      element("span", {}, NAMES[name] ?? name),
      element(
        "span",
        { class: "track" },
        element("span", { class: "fill", style: { width: percent(Math.min(1, share)) } }),
      ),
      element("span", { class: "figure" }, percent(share)),
    ),
  );
  return element(
    "div",
    { class: "facts" },
    element(
      "p",
      {},
      `${HABITS[facts.behaviour]}${examplesText(facts.examples)} Entropy ${facts.entropy.toFixed(2)} bits.`,
    ),
    element("div", { class: "bars" }, bars),
  );
}
