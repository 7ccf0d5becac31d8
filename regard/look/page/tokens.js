// What comes next, piece by piece: how probable each one was, and what else the model thought of.
import { element, percent, roving } from "./dom.js";
import { unitsOf } from "./words.js";

/* Draw the pieces of the target into `root`; the chosen one with its runners-up. */
export function drawTokens(root, data, { chosen, choose }) {
  const pieces = unitsOf(data, "target", false);
  const row = element(
    "div",
    { class: "words pieces", role: "group", "aria-label": "Pieces" },
    pieces.map((piece, i) => pieceButton(data, piece, i, chosen, choose)),
  );
  roving(row, "button");
  root.replaceChildren(row, runnersUp(data, pieces, chosen));
  root.querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
}

function pieceButton(data, piece, i, chosen, choose) {
  const sure = data.sides.target.confidence[i];
  const given = i < data.given ? " given" : "";
  const kind = `${piece.glued ? " glued" : ""}${piece.special ? " special" : ""}${given}`;
  return element(
    "button",
    {
      type: "button",
      class: `word${kind}`,
      "aria-pressed": String(i === chosen),
      title: percent(sure, 1),
      style: { "--sure": percent(sure) },
      onclick: () => choose(i),
    },
    element("bdi", {}, piece.text),
  );
}

function runnersUp(data, pieces, chosen) {
  if (chosen === null) {
    const given = data.given ? "Grey pieces were given, the others written. " : "";
    return element("p", { class: "hint" }, `${given}Choose one to see what else could have stood there.`);
  }
  const sure = data.sides.target.confidence[chosen];
  const rows = [[pieces[chosen].text, sure, true], ...data.sides.target.runners[chosen]];
  return element(
    "div",
    { class: "bars", "aria-live": "polite" },
    rows.map(([text, p, own]) =>
      element(
        "div",
        { class: `bar${own ? " own" : ""}` },
        element("bdi", {}, text),
        element(
          "span",
          { class: "track" },
          element("span", { class: "fill", style: { width: percent(Math.min(1, p)) } }),
        ),
        element("span", { class: "figure" }, percent(p, 1)),
      ),
    ),
  );
}
