// What of a document is shown: the maps of one kind, the layer and the head that are open, and the tables of
// weights that are drawn of them, in words or in pieces.
import { joinWeights, meanWeights, unitsOf } from "./words.js";

export const MEAN = -1; // in the place of a head: the mean of all of its layer

/* Languages without spaces have no words to join to. */
export function fitsWords(data) {
  return Object.values(data.sides).every((side) => side.tokens.length <= 4 * side.words.length);
}

/* The kinds of attention there are, what looks from one side to another first. */
export function kindsOf(data) {
  const kinds = [...new Set(data.maps.map((map) => map.kind))];
  return kinds.sort((a, b) => (b === "cross") - (a === "cross"));
}

/* Who looks at whom, in a sentence. */
export function kindText(view) {
  const { queries, keys, causal } = mapsOf(view)[0];
  const [looking, seen] = [view.data.sides[queries].title, view.data.sides[keys].title];
  if (queries !== keys) return `${looking} looks at ${seen.toLowerCase()}.`;
  return causal ? `${looking}: each place looks back.` : `${looking}: all places look at each other.`;
}

function mapsOf(view) {
  return view.data.maps.filter((map) => map.kind === view.kind);
}

export function mapOf(view) {
  return mapsOf(view).find((map) => map.layer === view.layer);
}

export function firstLayer(view) {
  const layers = mapsOf(view).map((map) => map.layer);
  return view.kind === "cross" && view.data.alignment && layers.includes(view.data.alignment.layer)
    ? view.data.alignment.layer
    : layers[layers.length - 1];
}

/* The edges of a map; keys that are no places of the sentence get numbers. */
export function edges(view, map, joined) {
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

export function tableView(view) {
  const map = mapOf(view);
  return { ...edges(view, map, view.joined), weights: tableOf(view, map, view.head) };
}

export function gridViews(view) {
  return mapsOf(view).map((map) => ({
    map,
    tables: [MEAN, ...map.heads.keys()].map((head) => tableOf(view, map, head)),
  }));
}

export function linksView(view) {
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

export function titleOf(view) {
  const map = mapOf(view);
  return view.head === MEAN
    ? `${map.name}, mean of ${map.heads.length} heads`
    : `${map.name}, head ${view.head}`;
}
