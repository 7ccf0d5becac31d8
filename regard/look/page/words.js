// Pieces joined to words and back. As a key a word gets the sum of its pieces, as a query it looks as they
// do on average.

const SPACE_MARK = "\u2581";
const SPECIAL_NAMES = { "<s>": "begin", "</s>": "end", "<pad>": "pad", "<mask>": "mask" };

/* What stands at one edge of a map: [{text, first, end, glued, special}]. */
export function unitsOf(data, name, joined) {
  const side = data.sides[name];
  if (joined) return side.words.map((word) => unit(side, word.text, word.first, word.end));
  return side.tokens.map((token, i) => unit(side, token.replaceAll(SPACE_MARK, "") || SPACE_MARK, i, i + 1));
}

function unit({ tokens, special }, text, first, end) {
  const marked = special.includes(first);
  const glued = first > 0 && !tokens[first].startsWith(SPACE_MARK) && !marked && !special.includes(first - 1);
  return { text: marked ? (SPECIAL_NAMES[text] ?? text) : text, first, end, glued, special: marked };
}

/* weights of pieces [T][S] as those of units. */
export function joinWeights(weights, queries, keys) {
  const columns = weights.map((row) => keys.map((key) => sum(row.slice(key.first, key.end))));
  return queries.map((query) => {
    const rows = columns.slice(query.first, query.end);
    return keys.map((_, j) => sum(rows.map((row) => row[j])) / rows.length);
  });
}

/* The mean of several tables [T][S] of one size. */
export function meanWeights(tables) {
  return tables[0].map((row, i) =>
    row.map((_, j) => sum(tables.map((table) => table[i][j])) / tables.length),
  );
}

/* The probability of a unit that was written: the product over its pieces. */
export function confidenceOf(data, unit) {
  const pieces = (data.sides.target.confidence || []).slice(unit.first, unit.end);
  return pieces.length ? pieces.reduce((product, p) => product * p, 1) : null;
}

export function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}

/* A piece for people: without the mark of a word's beginning, and what is no text by its name. */
export function shownPiece(token) {
  return SPECIAL_NAMES[token] ?? (token.replaceAll(SPACE_MARK, "") || token);
}
