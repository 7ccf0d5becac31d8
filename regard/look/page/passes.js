// A model that writes all at once, pass by pass: what stood at each place, what of it was written anew, and
// where each place looked. Of CTC also which places say which token.
import { element, percent } from "./dom.js";
import { drawLarge } from "./maps.js";
import { shownPiece, unitsOf } from "./words.js";

const SILENT = "\u2205"; // a place that says nothing

export function drawPasses(root, data, { chosen, choose }) {
  const rows = data.passes.map((pass, i) => passRow(pass, i, i === chosen, choose));
  const looked = element("div"),
    lattice = element("div");
  root.replaceChildren(
    element(
      "p",
      { class: "hint" },
      "Framed tokens were written in that pass; a paler line under one says that it was less sure. " +
        "Choose a pass to see where its places looked.",
    ),
    element("ol", { class: "passes-list" }, rows),
    looked,
    lattice,
  );
  const pass = data.passes[chosen];
  const places = pass.tokens.map((token, i) => ({ text: shownPiece(token), first: i, end: i + 1 }));
  if (pass.looked) {
    const view = { queries: places, keys: unitsOf(data, "source", false), weights: pass.looked };
    drawLarge(looked, view, { threshold: 0, title: `Pass ${chosen + 1}`, pick: () => {} });
  }
  if (data.sides.places) drawLattice(lattice, data, pass);
}

function passRow(pass, i, on, choose) {
  const words = pass.tokens.map((token, j) =>
    element(
      "span",
      {
        class: `word${pass.written[j] ? " fresh" : ""}${token === SILENT ? " special" : ""}`,
        title: percent(pass.confidence[j], 1),
        style: { "--sure": percent(pass.confidence[j]) },
      },
      element("bdi", {}, shownPiece(token)),
    ),
  );
  const button = element(
    "button",
    { type: "button", class: "quiet", "aria-pressed": String(on), onclick: () => choose(i) },
    `Pass ${i + 1}`,
  );
  return element("li", {}, button, element("span", { class: "words" }, words));
}

/* Places across, tokens down: a cell is dark where the place says the token and is sure of it. */
function drawLattice(root, data, pass) {
  const source = unitsOf(data, "source", false),
    count = pass.tokens.length;
  const keys = pass.tokens.map((_, j) => source[Math.floor((j * source.length) / count)]);
  const queries = [],
    weights = [];
  pass.tokens.forEach((token, j) => {
    if (token === SILENT) return;
    if (!j || pass.tokens[j - 1] !== token) {
      queries.push({ text: shownPiece(token), first: j, end: j + 1 });
      weights.push(keys.map(() => 0));
    }
    weights[weights.length - 1][j] = pass.confidence[j];
  });
  if (!queries.length) return;
  const board = element("div");
  root.replaceChildren(element("h3", {}, "Which places say which token"), board);
  drawLarge(board, { queries, keys, weights }, { threshold: 0, title: "Alignment", pick: () => {} });
}
