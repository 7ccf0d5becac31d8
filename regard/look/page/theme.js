// Light and dark, and the colours that canvases draw with. They follow the system until a person chooses.
import { element } from "./dom.js";

const THEME_CHANGED = "regard-theme";

function themeSwitch() {
  const button = element("button", {
    type: "button",
    class: "icon",
    "aria-label": "Dark theme",
    onclick: toggle,
  });
  function toggle() {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    show();
    document.dispatchEvent(new Event(THEME_CHANGED));
  }
  function show() {
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "☀" : "☾";
  }
  show();
  return button;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/* Call `redraw` whenever the colours have changed. */
export function onTheme(redraw) {
  document.addEventListener(THEME_CHANGED, redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

/* The value of a colour variable of theme.css as [r, g, b]. */
export function colour(name) {
  const probe = element("span", { style: { color: `var(${name})` } });
  document.documentElement.append(probe);
  const found = getComputedStyle(probe)
    .color.match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
  probe.remove();
  return found;
}

/* The shade of a weight from 0 to 1, as a function to [r, g, b]. */
export function heat() {
  const stops = ["--heat-0", "--heat-1", "--heat-2", "--heat-3", "--heat-4"].map(colour);
  return (weight) => {
    const place = Math.min(Math.max(weight, 0), 1) ** 0.8 * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return mix(stops[low], stops[low + 1], place - low);
  };
}

/* The colour of a signed number, full at ±most. */
export function signed(most) {
  const [none, plus, minus] = ["--heat-0", "--plus", "--minus"].map(colour);
  return (value) => mix(none, value < 0 ? minus : plus, Math.min(1, Math.abs(value) / (most || 1)) ** 0.8);
}

export function rgb([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

function mix(from, to, share) {
  return from.map((part, i) => Math.round(part + (to[i] - part) * share));
}

/* The head of a page: the mark, whatever it tells, and the switch of its theme. */
export function header(...told) {
  return element(
    "header",
    { class: "top" },
    element("h1", {}, element("span", { class: "mark", "aria-hidden": "true" }), "Regard"),
    told,
    themeSwitch(),
  );
}
