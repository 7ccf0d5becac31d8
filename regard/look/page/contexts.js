// One word in several sentences: how alike the vectors are that the encoder gives it.
import { element, number } from "./dom.js";
import { dataBeside, opening } from "./opening.js";
import { colour, heat, onTheme, rgb } from "./theme.js";

/* The page of a file: its data lies beside the script. */
export function showContexts(root) {
  mountContexts(root, dataBeside());
}

export function mountContexts(root, data) {
  const board = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Cosines" });
  const places = `in ${data.occurrences.length} places: the cosine of the vectors that the encoder gives it`;
  root.classList.add("regard");
  root.replaceChildren(
    ...opening(data.model, data.word, places),
    element(
      "section",
      { class: "card", "aria-label": "Sentences" },
      element("ol", { class: "sentences" }, data.occurrences.map(sentenceOf)),
    ),
    element("section", { class: "card", "aria-label": "How alike the vectors are" }, board),
  );
  const paint = () => board.replaceChildren(matrix(data.cosine));
  paint();
  onTheme(paint);
}

function sentenceOf(occurrence) {
  return element(
    "li",
    { dir: "auto" },
    occurrence.words.flatMap((word, i) => [
      i ? " " : "",
      i === occurrence.place ? element("mark", {}, word) : word,
    ]),
  );
}

function matrix(cosine) {
  const shades = heat(),
    [light, dark] = [colour("--ink"), colour("--card")];
  // The lowest cosine of a word with itself is far above 0: shades span what is there.
  const low = Math.min(...cosine.flat());
  const share = (value) => (low < 1 ? (value - low) / (1 - low) : 1);
  const rows = cosine.map((row, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, String(i + 1)),
      row.map((value) => {
        const back = shades(share(value) * 0.9);
        return element(
          "td",
          {
            style: {
              background: rgb(back),
              color: rgb(contrast(back, light) > contrast(back, dark) ? light : dark),
            },
          },
          number(value),
        );
      }),
    ),
  );
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, element("span", { class: "hidden" }, "sentence")),
    cosine.map((_, i) => element("th", { scope: "col" }, String(i + 1))),
  );
  return element("table", { class: "cosines" }, element("thead", {}, head), element("tbody", {}, rows));
}

/* The contrast of two colours as WCAG counts it. */
function contrast(one, other) {
  const luminance = (parts) => {
    const [r, g, b] = parts.map((part) =>
      part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}
