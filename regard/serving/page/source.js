// Where one types. Behind the text lies the same text again, unseen, in which words can be marked; it also
// makes the field as tall as its text.
import { element } from "./look/dom.js";

export function sourceField({ typed, moved }, label = "Text to translate", hint = "Type or paste a text") {
  const mirror = element("div", { class: "mirror text", "aria-hidden": "true" });
  const area = element("textarea", {
    class: "text",
    id: "source-text",
    dir: "auto",
    rows: 1,
    spellcheck: "false",
    autocapitalize: "off",
    placeholder: hint,
    "aria-label": label,
    oninput: () => {
      mark([]);
      typed();
    },
  });
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === area) moved(area.selectionStart);
  });

  /* A long text is scrolled; what lies behind it goes along. */
  function follow() {
    mirror.scrollTop = area.scrollTop;
  }
  area.addEventListener("scroll", follow, { passive: true });

  /* Mark spans [[start, end], ...] of the text and hand back their elements. */
  function mark(spans) {
    const text = area.value,
      parts = [];
    let at = 0;
    for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
      if (start < at) continue;
      parts.push(text.slice(at, start), element("mark", {}, text.slice(start, end)));
      at = end;
    }
    mirror.replaceChildren(...parts, `${text.slice(at)}\u200b`);
    follow();
    return [...mirror.querySelectorAll("mark")];
  }
  mark([]);
  return {
    node: element("div", { class: "sheet" }, mirror, area),
    area,
    mark,
    set: (text) => {
      area.value = text;
      mark([]);
    },
  };
}

/* Where each character (code point) of a text begins in it, as browsers count. */
export function places(text) {
  const found = [];
  let at = 0;
  for (const character of text) {
    found.push(at);
    at += character.length;
  }
  found.push(at);
  return found;
}
