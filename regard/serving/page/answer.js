// The translation: each word tinted by how unsure the model was, tied to the words it came from; and other
// ways to say it.
import { element, percent } from "./look/dom.js";
import { places } from "./source.js";

const SURE = 0.8; // from here on nothing is tinted
const KEPT = 8; // words around what differs
const MOST_PAIRS = 4_000_000; // of words that are compared; in longer texts all between the ends differs

export function answerSheet({ aimed, chosen }) {
  const node = element("div", {
    class: "answer text",
    role: "group",
    tabindex: "0",
    "aria-label": "Translation",
    dir: "auto",
  });
  const readout = element("p", { class: "told", "aria-live": "polite" });
  const sheet = { node, readout, aimed, words: [], text: "", source: "", at: null };
  const indexOf = (target) => {
    const word = target.closest?.(".said");
    return word ? Number(word.dataset.at) : null;
  };
  const aim = (at) => {
    if (at !== sheet.at) point(sheet, at);
  };
  node.addEventListener("pointerover", (event) => aim(indexOf(event.target)));
  node.addEventListener("pointerleave", () => aim(null));
  node.addEventListener("click", (event) => {
    const at = indexOf(event.target);
    if (at !== null) {
      aim(at);
      chosen(sheet.words[at]);
    }
  });
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !sheet.words.length) return;
    event.preventDefault();
    aim(
      Math.max(
        0,
        Math.min(sheet.words.length - 1, (sheet.at ?? (step > 0 ? -1 : sheet.words.length)) + step),
      ),
    );
  });
  return {
    node,
    readout,
    aim,
    /* Plain text: what has come so far, or a reading of which nothing more is known. */
    plain: (text, coming = false) => {
      draw(sheet, text, [], "");
      node.classList.toggle("coming", coming);
    },
    full: (text, words, source) => {
      draw(sheet, text, words, source);
      node.classList.remove("coming");
    },
    text: () => sheet.text,
    /* Whether what is shown is the translation of this text. */
    reads: (source) => sheet.source === source,
    /* The words that came from the place of the caret. */
    from: (place) => {
      const found = sheet.words.findIndex((word) =>
        word.from.some(([start, end]) => start <= place && place <= end),
      );
      aim(found < 0 ? null : found);
    },
  };
}

function draw(sheet, text, words, source) {
  point(sheet, null);
  const here = places(text),
    there = places(source);
  const parts = [];
  let at = 0;
  sheet.words = [];
  for (const word of words) {
    const [start, end] = [here[word.start], here[word.end]];
    if (!(start >= at) || !(end > start)) continue; // told twice, or of another text
    const from = word.from
      .map((each) => [there[each.start], there[each.end]])
      .filter(([first, last]) => last > first);
    parts.push(text.slice(at, start), wordOf(text.slice(start, end), word.confidence, sheet.words.length));
    sheet.words.push({ text: text.slice(start, end), sure: word.confidence, from });
    at = end;
  }
  Object.assign(sheet, { text, source });
  sheet.node.replaceChildren(...parts, text.slice(at));
}

function wordOf(text, sure, at) {
  const marked = typeof sure === "number" && /[\p{L}\p{N}]/u.test(text); // a full stop would only distract
  const doubt = marked ? Math.max(0, (SURE - sure) / SURE) : 0;
  const known = typeof sure === "number" ? percent(sure) : null;
  return element(
    "span",
    {
      class: `said${doubt ? " unsure" : ""}`,
      "data-at": at,
      "data-sure": known,
      style: { "--doubt": percent(doubt) },
    },
    text,
  );
}

function point(sheet, at) {
  sheet.node.querySelector(".said.aimed")?.classList.remove("aimed");
  sheet.at = at;
  const word = at === null ? null : sheet.words[at];
  const shown = word && sheet.node.querySelector(`.said[data-at="${at}"]`);
  shown?.classList.add("aimed");
  sheet.readout.replaceChildren(...(word ? tell(sheet, word) : []));
  sheet.aimed(word, shown);
}

function tell(sheet, word) {
  const sources = word.from.map(([start, end]) => sheet.source.slice(start, end));
  const quoted = (text) => ["“", element("bdi", {}, text), "”"];
  const origin = sources.length ? [" from ", ...quoted(sources.join(" "))] : [];
  const sure = typeof word.sure === "number";
  return [
    element("span", {}, ...quoted(word.text), ...origin, sure ? "" : ", from your glossary"),
    sure
      ? element(
          "span",
          { class: "track" },
          element("span", { class: "fill", style: { width: percent(word.sure) } }),
        )
      : "",
    sure ? element("span", { class: "figure" }, `${percent(word.sure)} sure`) : "",
  ];
}

/* Other readings; what differs from the one that is shown stands out. */
export function drawAlternatives(root, readings, shown, choose) {
  const others = readings.map((text, i) => [text, i]).filter(([, i]) => i !== shown);
  root.hidden = !others.length;
  if (!others.length) return root.replaceChildren();
  root.replaceChildren(
    element("p", { class: "eyebrow" }, "Also possible"),
    element(
      "ul",
      {},
      others.map(([text, i]) =>
        element(
          "li",
          {},
          element(
            "button",
            { type: "button", class: "reading", dir: "auto", onclick: () => choose(i) },
            ...differing(text, readings[shown]),
          ),
        ),
      ),
    ),
  );
}

/* The words of a text, those that another one has not in bold; where it only lacks some, these struck out. */
function differing(text, other) {
  const [words, others] = [text, other].map((each) => each.split(/(?<=\s)|(?=[\p{P}]+(?:\s|$))/u));
  const both = shared(words, others);
  if (!both.every(Boolean)) return marked(words, both, (run) => element("strong", {}, run));
  const kept = shared(others, words),
    own = words.values(); // as they are spaced here
  const woven = others.map((word, i) => (kept[i] ? own.next().value : word));
  return marked(woven, kept, (run) => element("del", { "data-gone": run })); // which is no text of this one
}

/* Words, runs of those that are not in both drawn by themselves; of what both have long only the ends. */
function marked(words, both, alone) {
  const parts = [];
  for (let at = 0; at < words.length;) {
    let end = at + 1;
    while (end < words.length && both[end] === both[at]) end++;
    const run = words.slice(at, end);
    if (!both[at]) parts.push(alone(run.join("")));
    else parts.push(shortened(run, at > 0, end < words.length));
    at = end;
  }
  return parts;
}

/* A run of words that both have: what lies further than KEPT words from a difference is left out. */
function shortened(run, before, after) {
  if (run.length <= KEPT * (before + after) + 1 || !(before || after)) return run.join("");
  return `${run.slice(0, before * KEPT).join("")}… ${run.slice(run.length - after * KEPT).join("")}`;
}

/* Which words are in the longest sequence that both texts have, in order. */
function shared(one, two) {
  let head = 0,
    tail = 0;
  const room = Math.min(one.length, two.length),
    bare = (word) => word.trimEnd();
  while (head < room && bare(one[head]) === bare(two[head])) head++;
  while (tail < room - head && bare(one.at(-1 - tail)) === bare(two.at(-1 - tail))) tail++;
  const both = one.map((_, i) => i < head || i >= one.length - tail);
  const [rows, columns] = [one.length - head - tail, two.length - head - tail];
  if (rows * columns > MOST_PAIRS) return both;
  // longest[i][j]: how many words the rest of one from i and the rest of two from j have in common
  const longest = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  const same = (i, j) => bare(one[head + i]) === bare(two[head + j]);
  for (let i = rows - 1; i >= 0; i--)
    for (let j = columns - 1; j >= 0; j--)
      longest[i][j] = same(i, j) ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  for (let i = 0, j = 0; i < rows && j < columns;)
    if (same(i, j)) {
      both[head + i++] = true;
      j++;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  return both;
}
