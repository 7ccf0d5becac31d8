// What comes next, piece by piece: how probable each one was, and what else the model thought of, weighed
// anew at any temperature: p(τ) = softmax(log p / τ).
import { element, percent, roving } from "./dom.js";
import { sum, unitsOf } from "./words.js";

const TOLD = 8; // pieces of a distribution

/* Draw the pieces of the target into `root`; the chosen one with what else could have come. */
export function drawTokens(root, data, { chosen, choose, heat, warm }) {
  const pieces = unitsOf(data, "target", false);
  const row = element(
    "div",
    { class: "words pieces", role: "group", "aria-label": "Pieces" },
    pieces.map((piece, i) => pieceButton(data, piece, i, chosen, choose)),
  );
  roving(row, "button");
  const told = data.output && chosen !== null ? distribution(data, chosen, heat, warm) : null;
  root.replaceChildren(row, told ?? runnersUp(data, pieces, chosen));
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
  return element("div", { class: "bars", "aria-live": "polite" }, rows.map(bar));
}

function bar([text, p, own]) {
  return element(
    "div",
    { class: `bar${own ? " own" : ""}` },
    element("bdi", {}, text),
    element(
      "span",
      { class: "track" },
      element("span", { class: "fill", style: { width: percent(Math.min(1, p)) } }),
    ),
    element("span", { class: "figure" }, percent(p, 1)),
  );
}

/* The likeliest pieces at one place, and a slider that makes the choice sharper or flatter. */
function distribution(data, chosen, heat, warm) {
  const { temperatures } = data.output,
    bars = element("div", { class: "bars", "aria-live": "polite" }),
    shown = element("output", {}),
    slider = element("input", {
      type: "range",
      min: 0,
      max: temperatures.length - 1,
      step: 1,
      value: heat ?? temperatures.indexOf(1),
      "aria-label": "Sharper or flatter",
      oninput: () => {
        warm(Number(slider.value));
        paint();
      },
    });
  function paint() {
    const at = Number(slider.value),
      own = data.sides.target.tokens[chosen];
    shown.textContent = temperatures[at].toFixed(1);
    slider.setAttribute("aria-valuetext", `temperature ${shown.textContent}`);
    const { pieces, rest } = weigh(data.output, chosen, at);
    const rows = pieces.map(([piece, p]) => [piece, p, piece === own]);
    const kept = rows.filter(([, , mine], i) => i < TOLD || mine);
    const others = rest + sum(rows.filter((row) => !kept.includes(row)).map(([, p]) => p));
    bars.replaceChildren(...kept.map(bar), bar(["all others", others, false]));
  }
  paint();
  const label = element("span", { "aria-hidden": "true" }, "Temperature");
  return element("div", {}, element("div", { class: "threshold heat" }, label, slider, shown), bars);
}

/* The probabilities of the pieces that are told at one of the temperatures, and of all others together. */
function weigh({ temperatures, places }, place, at) {
  const { pieces, logp, rest } = places[place];
  const scaled = logp.map((each) => each / temperatures[at]);
  const highest = Math.max(...scaled, rest[at]);
  const powers = scaled.map((each) => Math.exp(each - highest));
  const others = Math.exp(rest[at] - highest);
  const whole = sum(powers) + others;
  return { pieces: pieces.map((piece, i) => [piece, powers[i] / whole]), rest: others / whole };
}
