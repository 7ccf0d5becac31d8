// The whole page about one answer of a model. `mountLook` draws it from a document (docs/look.md); with
// `switchHeads`, a function that asks a server for the document without some heads, heads can be switched
// off.
import { drawBeam } from "./beam.js";
import { element, segmented } from "./dom.js";
import { drawEntered, drawFed } from "./inside.js";
import { drawLinks } from "./links.js";
import { drawFacts, drawGrid, drawLarge } from "./maps.js";
import { drawPasses } from "./passes.js";
import { header, onTheme } from "./theme.js";
import { drawTokens } from "./tokens.js";
import {
  edges,
  firstLayer,
  fitsWords,
  gridViews,
  kindsOf,
  kindText,
  linksView,
  mapOf,
  MEAN,
  tableView,
  titleOf,
} from "./view.js";
import { drawWalk, LAST_STEP } from "./walk.js";

const PACE = 2600; // ms that a step of the walk stands while it plays
const PARTS = "tools links tokens beam passes grid habits large walk entered fed".split(" ");

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
    held: false, // a person chose the layer, and
    united: false, // words or pieces: another text does not change them
    threshold: 0.05,
    picked: null,
    piece: null,
    token: null,
    pass: null,
    heat: null, // which of the temperatures; 1 unless chosen
    side: null, // whose pieces come in
    part: 0, // which of the feed-forward parts
    all: false, // of the beam also what was dropped at once
    step: 0,
    playing: null, // the timer of a walk that goes on by itself
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
      Object.assign(view, { layer: null, head: MEAN, held: false, picked: null, piece: null, ...change });
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
      view.data.sides.target &&
      drawTokens(slots.tokens, view.data, {
        chosen: view.token,
        choose: follow,
        heat: view.heat,
        warm: (heat) => Object.assign(view, { heat }),
      }),
    beam: () =>
      where("beam", view.data.tree, drawBeam, {
        all: view.all,
        turn: (all) => press("beam", { all }, "input"),
      }),
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
          set({ layer, head, held: true });
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
      paintWalk(slots.walk, view, set, play);
    },
    entered: () =>
      where("entered", view.data.entered, drawEntered, {
        chosen: view.side,
        choose: (side) => press("entered", { side }, `[data-value="${side}"]`),
      }),
    fed: () =>
      where("fed", view.data.fed, drawFed, {
        chosen: view.part,
        choose: (part) => press("fed", { part }, `[data-value="${part}"]`),
      }),
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
  /* A section that is there where the document has something for it. */
  function where(part, found, draw, options) {
    slots[part].parentElement.hidden = !found;
    if (found) draw(slots[part], view.data, options);
  }
  /* Choose something in one part of the page; what was pressed, `selector` there, keeps the focus. */
  function press(part, change, selector) {
    set(change, [part]);
    slots[part].querySelector(selector).focus({ preventScroll: true });
  }
  /* Let the walk go on by itself, or stop it. */
  function play(on) {
    clearInterval(view.playing);
    view.playing = on ? setInterval(() => (root.isConnected ? stride() : play(false)), PACE) : null;
    set(on && view.step === LAST_STEP ? { step: 0 } : {}, ["walk"]);
  }
  function stride() {
    view.step += 1;
    if (view.step >= LAST_STEP) play(false);
    else set({}, ["walk"]);
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
    if (!view.held) view.layer = null; // what was sharpest in a fragment need not be in the whole
    if (!view.united) view.joined = fitsWords(fresh);
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
    section("searched", "The beam", element("h2", {}, "The beam"), slots.beam),
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
    section("entering", "What goes in", element("h2", {}, "What goes in"), slots.entered),
    section("feeding", "Between attentions", element("h2", {}, "Between attentions"), slots.fed),
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
      (unit) => again(unit, { joined: unit === "words", united: true, picked: null }),
    ),
  ];
}

function paintWalk(slot, view, set, play) {
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
  const held = slot.contains(document.activeElement) ? document.activeElement.dataset.does : undefined;
  slot.replaceChildren(heading, body);
  const stay = (selector) => slot.querySelector(selector)?.focus({ preventScroll: true });
  drawWalk(
    body,
    { map, head, query, queries, keys },
    {
      step: view.step,
      playing: view.playing !== null,
      play,
      go: (step, from = "[aria-current=step]") => {
        view.step = step;
        play(false);
        stay(from);
      },
      pick: (piece) => {
        set({ piece }, ["walk"]);
        stay(".queries [aria-pressed=true]");
      },
    },
  );
  if (held) stay(`[data-does=${held}]`);
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
