// Beside attention: how pieces come in (embeddings and positions), and what the feed-forward part of a layer
// does at each place.
import { element, number, percent, segmented } from "./dom.js";
import { largest, strip } from "./walk.js";
import { shownPiece } from "./words.js";

/* The vector of each piece of a side, what its place adds, and which pieces have vectors like it. */
export function drawEntered(root, data, { chosen, choose }) {
  const names = Object.keys(data.entered);
  const name = names.includes(chosen) ? chosen : names[0];
  const { width, dimensions, tokens, positions, alike } = data.entered[name];
  const pieces = data.sides[name].tokens;
  const top = largest(tokens),
    highest = positions && largest(positions);
  const told = dimensions.length < width ? `${dimensions.length} of ${width} numbers` : `${width} numbers`;
  root.replaceChildren(
    element(
      "p",
      { class: "hint" },
      `A piece comes in as a vector, of which ${told} are shown. `,
      positions
        ? "What its place adds stands beside it: the same piece elsewhere begins elsewhere."
        : "Nothing is added for its place: the order comes in with attention.",
    ),
    ...(names.length > 1
      ? [
          segmented(
            "Whose pieces",
            names.map((each) => [each, data.sides[each].title]),
            name,
            choose,
          ),
        ]
      : []),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Vectors of the pieces" },
      element(
        "table",
        { class: "vectors" },
        head("Piece", "Its vector", positions && "Its place", "Pieces with vectors like it"),
        element(
          "tbody",
          {},
          tokens.map((row, at) =>
            element(
              "tr",
              {},
              element("th", { scope: "row" }, piece(pieces[at])),
              element("td", {}, strip(row, top, "vector")),
              positions && element("td", {}, strip(positions[at], highest, "place")),
              element("td", {}, near(alike[at])),
            ),
          ),
        ),
      ),
    ),
  );
}

/* The hidden units of one layer: how many speak at each place, how far they move it, and which say most. */
export function drawFed(root, data, { chosen, choose }) {
  const part = data.fed[Math.min(chosen, data.fed.length - 1)];
  const pieces = data.sides[part.side].tokens;
  const writes = part.strongest.some((place) => place.some((unit) => unit.writes.length));
  const most = Math.max(...part.strongest.flat().map((unit) => Math.abs(unit.value)), 1e-9);
  root.replaceChildren(
    element(
      "p",
      { class: "hint" },
      `After attention each place goes by itself through ${part.units} hidden units. `,
      writes
        ? "The strongest are shown with the pieces that they make likelier."
        : "The strongest are shown by their numbers.",
    ),
    segmented(
      "Which layer",
      data.fed.map((each, at) => [at, `${data.sides[each.side].title} ${each.layer + 1}`]),
      data.fed.indexOf(part),
      (at) => choose(at),
    ),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Hidden units at each place" },
      element(
        "table",
        { class: "vectors" },
        head("Piece", "Units that speak", "Moved by", "The strongest"),
        element(
          "tbody",
          {},
          part.strongest.map((place, at) =>
            element(
              "tr",
              {},
              element("th", { scope: "row" }, piece(pieces[at])),
              element("td", { class: "figure", "data-title": "units that speak" }, percent(part.active[at])),
              element(
                "td",
                {
                  class: "figure",
                  "data-title": "moved by",
                  title: "of the length of what it is added to",
                },
                percent(part.moved[at]),
              ),
              element(
                "td",
                {},
                place.map((unit) => chip(unit, most)),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

function head(...titles) {
  const cells = titles.filter(Boolean).map((title) => element("th", { scope: "col" }, title));
  return element("thead", {}, element("tr", {}, cells));
}

function piece(text) {
  return element("bdi", {}, shownPiece(text));
}

function near(found) {
  return found.map(([text, cosine]) =>
    element("span", { class: "unit", title: `cosine ${number(cosine)}` }, piece(text)),
  );
}

function chip({ unit, value, writes }, most) {
  return element(
    "span",
    {
      class: "unit",
      title: `unit ${unit}: ${number(value)}`,
      style: { "--sure": percent(Math.abs(value) / most) },
    },
    element("span", { class: "hint" }, `${unit} `),
    writes.length ? writes.flatMap((text, at) => [at ? ", " : "", piece(text)]) : number(value, 1),
  );
}
