// Elements as values. Text enters the page as text only: nothing here, and nothing that uses it, parses
// markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, part] of Object.entries(value)) node.style.setProperty(key, part);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/* A row of buttons of which one is on. `choices` is [[value, text], ...]. */
export function segmented(label, choices, chosen, choose) {
  const buttons = choices.map(([value, text]) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        "data-value": value,
        onclick: () => choose(value),
      },
      text,
    ),
  );
  return element("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}

/* The switch of a head. */
export function power(name, silent, onclick) {
  return element(
    "button",
    { type: "button", class: "power", "aria-pressed": String(!silent), "aria-label": `${name}: on`, onclick },
    shape(
      "svg",
      { viewBox: "0 0 16 16", "aria-hidden": "true" },
      shape("path", { d: "M8 2V8M4.8 4.2A5 5 0 1 0 11.2 4.2" }),
    ),
  );
}

/* Arrow keys move along a row (or grid, with `columns`) of buttons. */
export function roving(container, selector, columns = () => 1) {
  container.addEventListener("keydown", (event) => {
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns(),
      ArrowDown: columns(),
      Home: -Infinity,
      End: Infinity,
    };
    if (!(event.key in steps)) return;
    const items = [...container.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, at + steps[event.key]))].focus();
  });
}

export function percent(value, digits = 0) {
  return `${(value * 100).toFixed(digits)}%`;
}

/* A number with its sign in a column: a true minus, two decimals. */
export function number(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
