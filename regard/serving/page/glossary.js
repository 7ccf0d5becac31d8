// Words and what they must become. Kept by the browser, for each pair of languages.
import { element } from "./look/dom.js";
import { recall, remember } from "./memory.js";

const MOST = 200,
  LONGEST = 200; // the server's bounds

export function glossaryEditor(root, { changed }) {
  let pair = "",
    rows = [];
  const list = element("div", { class: "terms" });
  const add = element(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        rows.push({ term: "", wanted: "", keep: false });
        paint();
        focusLast();
      },
    },
    "Add a term",
  );
  root.replaceChildren(
    element("h2", {}, "Glossary"),
    element(
      "p",
      { class: "hint" },
      "Words that must be translated as you say, or not at all. Everything around them is still the model’s.",
    ),
    list,
    add,
  );
  function paint() {
    list.replaceChildren(...rows.map(row));
    add.hidden = rows.length >= MOST;
  }
  function focusLast() {
    list.lastElementChild?.querySelector("input").focus();
  }
  function save() {
    remember(`regard-glossary-${pair}`, JSON.stringify(rows));
    changed();
  }
  function row(entry, i) {
    const term = element("input", {
      type: "text",
      class: "term",
      value: entry.term,
      maxlength: LONGEST,
      placeholder: "term",
      dir: "auto",
      "aria-label": `Term ${i + 1}`,
      oninput: () => {
        entry.term = term.value;
        mirror();
        save();
      },
    });
    const wanted = element("input", {
      type: "text",
      class: "wanted",
      value: entry.wanted,
      maxlength: LONGEST,
      placeholder: "translation",
      dir: "auto",
      "aria-label": `Translation of term ${i + 1}`,
      oninput: () => {
        entry.wanted = wanted.value;
        save();
      },
    });
    const keep = element("input", {
      type: "checkbox",
      checked: entry.keep,
      onchange: () => {
        entry.keep = keep.checked;
        mirror();
        save();
      },
    });
    function mirror() {
      wanted.disabled = entry.keep;
      wanted.value = entry.keep ? entry.term : entry.wanted;
    }
    mirror();
    return element(
      "div",
      { class: "entry" },
      term,
      element("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      wanted,
      element("label", {}, keep, "keep as it is"),
      element(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": `Remove term ${i + 1}`,
          onclick: () => {
            rows.splice(i, 1);
            paint();
            save();
            add.focus();
          },
        },
        "×",
      ),
    );
  }
  return {
    /* {term: translation} of the rows that are whole. */
    terms: () =>
      Object.fromEntries(
        rows
          .map((each) => [each.term.trim(), (each.keep ? each.term : each.wanted).trim()])
          .filter(([term, wanted]) => term && wanted),
      ),
    open: (name) => {
      pair = name;
      rows = kept(name);
      paint();
    },
  };
}

function kept(pair) {
  try {
    const rows = JSON.parse(recall(`regard-glossary-${pair}`) ?? "[]");
    return rows
      .map(({ term, wanted, keep }) => ({ term: String(term), wanted: String(wanted), keep: keep === true }))
      .slice(0, MOST);
  } catch {
    return [];
  }
}
