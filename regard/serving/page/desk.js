// The desk: two halves, each with its language above and its tools below, and other readings under the
// translation.
import { element } from "./look/dom.js";

export function deskOf(field, sheet, limit) {
  const bars = {
    source: element("div", { class: "bar-line" }),
    target: element("div", { class: "bar-line" }),
    swap: element("div", { class: "between" }),
  };
  const number = element("span", { class: "hint" });
  const clear = element("button", { type: "button", class: "quiet" }, "Clear");
  const copy = element(
    "button",
    { type: "button", class: "quiet", onclick: () => copyText(copy, sheet.text()) },
    "Copy",
  );
  const alternatives = element("div", { class: "alternatives" });
  field.area.setAttribute("maxlength", limit);
  const node = element(
    "section",
    { class: "card desk", "aria-label": "Translator" },
    element(
      "div",
      { class: "half" },
      bars.source,
      field.node,
      element("div", { class: "tail" }, number, clear),
    ),
    bars.swap,
    element(
      "div",
      { class: "half" },
      bars.target,
      element("div", {}, sheet.node, alternatives),
      element("div", { class: "tail" }, sheet.readout, copy),
    ),
  );
  return {
    node,
    alternatives,
    clear,
    copy,
    languages: (bar) => {
      for (const [side, holder] of Object.entries(bars)) keepFocus(holder, bar[side]);
    },
    busy: (on) => node.toggleAttribute("data-busy", on),
    count: (length) => {
      clear.hidden = !length;
      number.textContent =
        length > limit * 0.8
          ? `${length.toLocaleString("en")} of ${limit.toLocaleString("en")} characters`
          : "";
    },
  };
}

function keepFocus(holder, fresh) {
  const focused = holder.contains(document.activeElement);
  holder.replaceChildren(fresh);
  if (focused) fresh.focus();
}

async function copyText(button, text) {
  const done = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  button.textContent = done ? "Copied" : "Select the text to copy it";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 1600);
}
