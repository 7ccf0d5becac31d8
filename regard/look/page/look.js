// The whole page about one answer of a model. `mountLook` draws it from a document (docs/look.md); with
// `switchHeads`, a function that asks a server for the document without some heads, heads can be switched
// off.
import { element, segmented } from "./dom.js";
import { drawLinks } from "./links.js";
import { drawFacts, drawGrid, drawLarge } from "./maps.js";
import { drawPasses } from "./passes.js";
import { header, onTheme } from "./theme.js";
import { drawTokens } from "./tokens.js";
import { drawWalk } from "./walk.js";
import { joinWeights, meanWeights, unitsOf } from "./words.js";

const MEAN = -1;
const PARTS = ["tools", "links", "tokens", "passes", "grid", "habits", "large", "walk"];

/* The page of a file: its data lies beside the script. */
export function showLook(root) {
  mountLook(root, JSON.parse(document.getElementById("regard-data").textContent));
}

export function mountLook(root, data, { switchHeads = null, chrome = true } = {}) {
  const kinds = kindsOf(data);
  const view = {
    data,
    kind: kinds[0],
    layer: null,
    head: MEAN,
    joined: fitsWords(data),
    threshold: 0.05,
    picked: null,
    piece: null,
    token: null,
    pass: null,
    step: 6,
    before: null,
  };
  const slots = Object.fromEntries(
    ["translation", ...PARTS].map((name) => [name, element("div", { class: name })]),
  );
  root.classList.add("regard");
  root.replaceChildren(...layout(slots, data, chrome));
  let links = null;

  function set(change, parts = PARTS) {
    Object.assign(view, change);
    if ("kind" in change)
      Object.assign(view, { layer: null, head: MEAN, picked: null, piece: null, ...change });
    if (view.layer === null) view.layer = firstLayer(view);
    for (const part of parts) painters[part]();
  }
  const painters = {
    tools: () => slots.tools.replaceChildren(...tools(view, kinds, set, slots.tools)),
    links: () => {
      if (links) links.stop();
      links = drawLinks(slots.links, linksView(view), { pick: (at) => choose(at) });
    },
    tokens: () =>
      view.data.sides.target && drawTokens(slots.tokens, view.data, { chosen: view.token, choose: follow }),
    passes: () =>
      view.data.passes &&
      drawPasses(slots.passes, view.data, {
        chosen: view.pass ?? view.data.passes.length - 1,
        choose: (pass) => set({ pass }, ["passes"]),
      }),
    grid: () =>
      drawGrid(slots.grid, gridViews(view), {
        chosen: view,
        threshold: view.threshold,
        open: (layer, head) => {
          set({ layer, head });
          focusOn(slots.grid, layer, head);
        },
        off: view.data.off,
        toggle: switchHeads && toggle,
      }),
    habits: () =>
      slots.habits.replaceChildren(
        view.head === MEAN
          ? element(
              "p",
              { class: "hint" },
              "The mean of all heads of this layer. Open a head to see what it does.",
            )
          : drawFacts(mapOf(view).heads[view.head]),
      ),
    large: () =>
      drawLarge(slots.large, tableView(view), {
        threshold: view.threshold,
        title: titleOf(view),
        pick: (at) => choose(at),
      }),
    walk: () => {
      root.querySelector(".opened").textContent = titleOf(view);
      paintWalk(slots.walk, view, set);
    },
  };
  function choose(at) {
    const unit = at === null ? null : tableView(view).queries[at];
    set({ picked: at, piece: unit ? unit.first : view.piece }, ["links", "walk"]);
    const pressed = slots.links.querySelector(".queries [aria-pressed=true]");
    if (
      pressed &&
      slots.links.contains(document.activeElement) === false &&
      document.activeElement === document.body
    )
      pressed.focus({ preventScroll: true });
  }
  /* A piece of what comes next: the row that foresaw it is the one of the same number. */
  function follow(piece) {
    const row = mapOf(view).queries === "source" ? null : piece;
    const at = tableView(view).queries.findIndex(
      (unit) => row !== null && unit.first <= row && row < unit.end,
    );
    set({ token: piece, picked: at < 0 ? null : at, piece: row ?? view.piece }, ["links", "tokens", "walk"]);
  }
  async function toggle(name, head) {
    const now = new Set(view.data.off[name] || []);
    if (!now.delete(head)) now.add(head);
    root.setAttribute("aria-busy", "true");
    try {
      const before = view.before ?? view.data.answer;
      update(await switchHeads({ ...view.data.off, [name]: [...now] }), before);
    } finally {
      root.removeAttribute("aria-busy");
    }
  }
  /* Show another document in the same view; `before` is the answer to compare with. */
  function update(fresh, before = null) {
    view.before = Object.values(fresh.off).some((heads) => heads.length) ? before : null;
    slots.translation.replaceChildren(...sentence(fresh, view.before));
    set({ data: fresh, picked: null, piece: null, token: null, pass: null });
  }
  slots.translation.replaceChildren(...sentence(data, null));
  set({});
  onTheme(() => set({}));
  return { update, follow, view };
}

function layout(slots, data, chrome) {
  const section = (name, title, ...content) =>
    element("section", { class: `card ${name}`, "aria-label": title }, content);
  return [
    chrome && header(element("bdi", { class: "model" }, data.model.name)),
    slots.translation,
    slots.tools,
    section("hero", "Links between words", slots.links),
    data.sides.target &&
      section("foreseen", "Piece by piece", element("h2", {}, "Piece by piece"), slots.tokens),
    data.passes && section("passed", "Pass by pass", element("h2", {}, "Pass by pass"), slots.passes),
    element(
      "div",
      { class: "pair" },
      section(
        "all",
        "All heads",
        element("h2", {}, "All heads"),
        element("p", { class: "hint" }, "A row a layer, a column a head, the mean first. Open one."),
        slots.grid,
        slots.habits,
      ),
      section("one", "One head", element("h2", { class: "opened" }), slots.large),
    ),
    section("path", "The walk through one head", slots.walk),
    chrome && footer(data),
  ].filter(Boolean);
}

function sentence(data, before) {
  return [
    element("p", { class: "source-text", dir: "auto" }, data.text),
    element("p", { class: "target-text", dir: "auto" }, data.answer),
    before !== null &&
      before !== data.answer &&
      element("p", { class: "before" }, "before: ", element("bdi", {}, before)),
  ].filter(Boolean);
}

function footer(data) {
  const search = data.beam > 1 ? `beam ${data.beam}` : "one output";
  const cut = data.truncated ? ", cut at the longest output allowed" : "";
  const whose = data.sides.source ? "the very decoding that wrote this" : "the text and what was written on";
  const how = data.sides.target
    ? `The weights are those of ${whose}: ${search}, score ${data.score.toFixed(3)}${cut}.`
    : "The weights are those of one reading of the text.";
  return element(
    "footer",
    {},
    element("p", {}, `${how} Nothing in this file needs the network.`),
    data.model.card
      ? element(
          "details",
          {},
          element("summary", {}, "Model card"),
          element("pre", { tabindex: "0" }, data.model.card),
        )
      : "",
  );
}

/* What is chosen: kind of attention, words or pieces, threshold. */
function tools(view, kinds, set, slot) {
  const shown = element("output", {}, `${Math.round(view.threshold * 100)}%`);
  const slider = element("input", {
    type: "range",
    min: 0,
    max: 0.6,
    step: 0.01,
    value: view.threshold,
    "aria-label": "Hide weights below",
    oninput: () => {
      shown.textContent = `${Math.round(slider.value * 100)}%`;
      set({ threshold: Number(slider.value) }, ["links", "grid", "large"]);
    },
  });
  const again = (name, change) => {
    set(change);
    slot.querySelector(`[data-value="${name}"]`)?.focus();
  };
  return [
    segmented(
      "Kind of attention",
      kinds.map((kind) => [kind, kind[0].toUpperCase() + kind.slice(1)]),
      view.kind,
      (kind) => again(kind, { kind }),
    ),
    element("span", { class: "hint" }, kindText(view)),
    element("span", { class: "push" }),
    element("label", { class: "threshold" }, "Threshold", slider, shown),
    segmented(
      "Unit",
      [
        ["words", "Words"],
        ["pieces", "Pieces"],
      ],
      view.joined ? "words" : "pieces",
      (unit) => again(unit, { joined: unit === "words", picked: null }),
    ),
  ];
}

/* Languages without spaces have no words to join to. */
function fitsWords(data) {
  return Object.values(data.sides).every((side) => side.tokens.length <= 4 * side.words.length);
}

/* The kinds of attention there are, what looks from one side to another first. */
function kindsOf(data) {
  const kinds = [...new Set(data.maps.map((map) => map.kind))];
  return kinds.sort((a, b) => (b === "cross") - (a === "cross"));
}

/* Who looks at whom, in a sentence. */
function kindText(view) {
  const { queries, keys, causal } = mapsOf(view)[0];
  const [looking, seen] = [view.data.sides[queries].title, view.data.sides[keys].title];
  if (queries !== keys) return `${looking} looks at ${seen.toLowerCase()}.`;
  return causal ? `${looking}: each place looks back.` : `${looking}: all places look at each other.`;
}

function mapsOf(view) {
  return view.data.maps.filter((map) => map.kind === view.kind);
}

function mapOf(view) {
  return mapsOf(view).find((map) => map.layer === view.layer);
}

function firstLayer(view) {
  const layers = mapsOf(view).map((map) => map.layer);
  return view.kind === "cross" && view.data.alignment && layers.includes(view.data.alignment.layer)
    ? view.data.alignment.layer
    : layers[layers.length - 1];
}

/* The edges of a map; keys that are no places of the sentence get numbers. */
function edges(view, map, joined) {
  const queries = unitsOf(view.data, map.queries, joined);
  let keys = unitsOf(view.data, map.keys, joined);
  const columns = map.heads[0].weights[0].length;
  if (columns !== view.data.sides[map.keys].tokens.length)
    keys = Array.from({ length: columns }, (_, j) => ({ text: `row ${j}`, first: j, end: j + 1 }));
  return { queries, keys };
}

function tableOf(view, map, head) {
  const { queries, keys } = edges(view, map, view.joined);
  return joinWeights(
    head === MEAN ? meanWeights(map.heads.map((each) => each.weights)) : map.heads[head].weights,
    queries,
    keys,
  );
}

function tableView(view) {
  const map = mapOf(view);
  return { ...edges(view, map, view.joined), weights: tableOf(view, map, view.head) };
}

function gridViews(view) {
  return mapsOf(view).map((map) => ({
    map,
    tables: [MEAN, ...map.heads.keys()].map((head) => tableOf(view, map, head)),
  }));
}

function linksView(view) {
  const map = mapOf(view),
    same = map.queries === map.keys;
  return {
    ...tableView(view),
    data: view.data,
    threshold: view.threshold,
    picked: view.picked,
    hint: "Point at a word to follow it; click to keep it.",
    sides: {
      keys: view.data.sides[map.keys].title + (same ? ", looked at" : ""),
      queries: view.data.sides[map.queries].title + (same ? ", looking" : ""),
      confident: map.queries === "target",
    },
  };
}

function titleOf(view) {
  const map = mapOf(view);
  return view.head === MEAN
    ? `${map.name}, mean of ${map.heads.length} heads`
    : `${map.name}, head ${view.head}`;
}

function paintWalk(slot, view, set) {
  const map = mapOf(view),
    head = view.head === MEAN ? sharpestHead(map) : view.head;
  const heading = element(
    "h2",
    {},
    "The walk through one head ",
    element("span", { class: "muted" }, `${map.name}, head ${head}`),
  );
  if (!map.heads[head].q) {
    slot.replaceChildren(
      heading,
      element(
        "p",
        { class: "hint" },
        "Queries, keys and values of this attention were not kept, so that there is nothing to walk through.",
      ),
    );
    return;
  }
  const { queries, keys } = edges(view, map, false);
  const query = Math.min(view.piece ?? longest(queries), queries.length - 1);
  const body = element("div");
  slot.replaceChildren(heading, body);
  const stay = (selector) => slot.querySelector(selector)?.focus({ preventScroll: true });
  drawWalk(
    body,
    { map, head, query, queries, keys },
    {
      step: view.step,
      go: (step) => {
        set({ step }, ["walk"]);
        stay("[aria-current=step]");
      },
      pick: (piece) => {
        set({ piece }, ["walk"]);
        stay(".queries [aria-pressed=true]");
      },
    },
  );
}

function sharpestHead(map) {
  const entropies = map.heads.map((head) => head.entropy);
  return entropies.indexOf(Math.min(...entropies));
}

function longest(units) {
  const lengths = units.map((unit) => (unit.special ? 0 : unit.text.length));
  return lengths.indexOf(Math.max(...lengths));
}

function focusOn(grid, layer, head) {
  grid.querySelector(`[data-layer="${layer}"][data-head="${head}"]`)?.focus({ preventScroll: true });
}
