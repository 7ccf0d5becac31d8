// A model card, which is Markdown of somebody else, as elements. It knows headings, lists, tables and
// code; whatever else a card holds, links and markup too, is shown as the text it is.
import { element } from "./look/dom.js";

export function cardOf(text) {
  const lines = text.split(/\r?\n/),
    blocks = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = blockAt(lines, at);
    if (block) blocks.push(block);
    at = next;
  }
  return element("div", { class: "card-text", dir: "auto" }, blocks);
}

const RULES = [
  [/^```/, code],
  [/^#{1,6} /, heading],
  [/^\s*[-*] /, list],
  [/^\|/, table],
  [/^\s*$/, (_, at) => [null, at + 1]],
];

function blockAt(lines, at) {
  const rule = RULES.find(([pattern]) => pattern.test(lines[at]));
  return rule ? rule[1](lines, at) : paragraph(lines, at);
}

/* The first line from `at` on that a pattern does not hold for. */
function endOf(lines, at, holds) {
  let end = at;
  while (end < lines.length && holds(lines[end])) end++;
  return end;
}

function code(lines, at) {
  const end = endOf(lines, at + 1, (line) => !line.startsWith("```"));
  return [element("pre", { tabindex: "0" }, lines.slice(at + 1, end).join("\n")), end + 1];
}

function heading(lines, at) {
  const depth = lines[at].match(/^#+/)[0].length;
  return [element(depth === 1 ? "h3" : "h4", {}, spans(lines[at].replace(/^#+ /, ""))), at + 1];
}

function list(lines, at) {
  const end = endOf(lines, at, (line) => /^\s*[-*] /.test(line));
  return [
    element(
      "ul",
      {},
      lines.slice(at, end).map((line) => element("li", {}, spans(line.replace(/^\s*[-*] /, "")))),
    ),
    end,
  ];
}

function table(lines, at) {
  const end = endOf(lines, at, (line) => line.startsWith("|"));
  const rows = lines
    .slice(at, end)
    .filter((line) => !/^[|\s:-]+$/.test(line))
    .map(cells);
  const row = (tag) => (each) =>
    element(
      "tr",
      {},
      each.map((cell) => element(tag, {}, spans(cell))),
    );
  const body = element(
    "table",
    {},
    element("thead", {}, rows.slice(0, 1).map(row("th"))),
    element("tbody", {}, rows.slice(1).map(row("td"))),
  );
  return [
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, body),
    end,
  ];
}

function cells(line) {
  return line
    .replace(/^\||\|\s*$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

function paragraph(lines, at) {
  const end = endOf(lines, at, (line) => !RULES.some(([pattern]) => pattern.test(line)));
  return [element("p", {}, spans(lines.slice(at, end).join(" "))), end];
}

/* `code` and **strong**; a backslash takes the meaning from what follows it. */
function spans(text) {
  return text.split(/((?<!\\)`[^`]+`|(?<!\\)\*\*[^*]+\*\*)/).map((part) => {
    if (/^`[^`]+`$/.test(part)) return element("code", {}, part.slice(1, -1));
    if (/^\*\*[^*]+\*\*$/.test(part)) return element("strong", {}, unescaped(part.slice(2, -2)));
    return unescaped(part);
  });
}

function unescaped(text) {
  return text.replace(/\\([!-/:-@[-`{-~])/g, "$1");
}
