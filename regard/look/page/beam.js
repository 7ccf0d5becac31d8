// The beam as a tree: what the search wrote side by side, where it forked, what ended, and what was dropped.
// The best goes straight down; what forked off it stands further in.
import { element, number, percent } from "./dom.js";
import { shownPiece } from "./words.js";

const ENDS = { ended: "ended", cut: "cut at the longest output allowed", dropped: "dropped" };

export function drawBeam(root, data, { all, turn }) {
  const tree = plant(data.tree, all);
  const outputs = data.tree.filter((branch) => branch.score !== undefined).length;
  const box = element("input", { type: "checkbox", checked: all, onchange: () => turn(box.checked) });
  root.replaceChildren(
    element(
      "p",
      { class: "hint" },
      `Beam ${data.beam}: ${data.tree.length} tokens were considered, ${outputs} outputs ended. ` +
        "The line under a token is its probability; a score is log p over the length.",
    ),
    element("label", { class: "beam-all" }, box, "Also what was dropped at once"),
    element(
      "div",
      { class: "beam-tree", role: "group", "aria-label": "Tree of the search" },
      (tree.children.get(-1) ?? []).map((start) => limb(tree, start)),
    ),
  );
}

/* Branches by their parents, the one that leads to the best output first. */
function plant(branches, all) {
  const reach = branches.map((branch) => branch.score ?? -Infinity),
    last = branches.map((_, i) => i),
    children = new Map();
  for (let i = branches.length - 1; i >= 0; i--) {
    const { parent, fate } = branches[i];
    if (fate !== "dropped" || all) children.set(parent, [i, ...(children.get(parent) ?? [])]);
    if (parent < 0) continue;
    reach[parent] = Math.max(reach[parent], reach[i]);
    last[parent] = Math.max(last[parent], last[i]); // it lived the longer
  }
  const first = (a, b) => reach[b] - reach[a] || last[b] - last[a] || branches[b].total - branches[a].total;
  for (const each of children.values()) each.sort((a, b) => first(a, b) || 0);
  const scores = branches.flatMap(({ score }) => (score === undefined ? [] : [score])).sort((a, b) => b - a);
  return { branches, children, scores };
}

/* One branch to its end: runs of tokens, and between them what forked off. */
function limb(tree, start) {
  const rows = [];
  let run = [start];
  for (let at = start; ;) {
    const next = tree.children.get(at) ?? [];
    if (next.length !== 1) rows.push(tokensOf(tree, run, next.length ? null : at));
    if (!next.length) break;
    const [main, ...others] = next;
    if (others.length) {
      rows.push(
        element(
          "ul",
          { class: "forks" },
          others.map((other) => element("li", {}, limb(tree, other))),
        ),
      );
      run = [];
    }
    run.push(main);
    at = main;
  }
  return element("div", { class: "limb" }, rows);
}

/* Tokens without a fork between them; `leaf` is the last one of a branch. */
function tokensOf(tree, run, leaf) {
  const { branches, scores } = tree;
  const end = leaf === null ? null : branches[leaf];
  const won = end?.score !== undefined && end.score === scores[0];
  return element(
    "div",
    { class: `run${won ? " won" : ""}${end?.score === undefined && end ? " lost" : ""}` },
    run.map((at) => {
      const { piece, parent, total } = branches[at];
      const sure = Math.min(1, Math.exp(total - (parent < 0 ? 0 : branches[parent].total)));
      const text = shownPiece(piece);
      return element(
        "span",
        {
          class: `word${text === "end" ? " special" : ""}`,
          title: `${percent(sure, 1)}, log p ${number(total)}`,
          style: { "--sure": percent(sure) },
        },
        element("bdi", {}, text),
      );
    }),
    end && element("span", { class: "hint fate" }, fateOf(end, scores)),
  );
}

function fateOf({ fate, score, total }, scores) {
  if (score === undefined)
    return fate === "on" ? "others were better" : `${ENDS[fate]}, log p ${number(total)}`;
  const rank = scores.indexOf(score);
  return `${ENDS[fate]}, score ${number(score, 3)}${rank ? `, number ${rank + 1}` : ": the answer"}`;
}
