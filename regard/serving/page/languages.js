// Which language to which: two lists that know what can be translated to what, and a way to swap them.
import { element } from "./look/dom.js";

export const AUTO = "auto"; // the server finds out

export function sourcesOf(languages) {
  const codes = languages.filter((each) => each.targets.length).map((each) => each.code);
  return codes.length > 1 ? [AUTO, ...codes] : codes;
}

export function targetsOf(languages, source) {
  const found = languages
    .filter((each) => source === AUTO || each.code === source)
    .flatMap((each) => each.targets);
  return [...new Set(found)].sort();
}

/* The wanted pair if there is one like it, else the nearest. */
export function settle(languages, source, target) {
  const sources = sourcesOf(languages);
  const from = sources.includes(source) ? source : sources.find((code) => code !== AUTO);
  const targets = targetsOf(languages, from);
  return { source: from, target: targets.includes(target) ? target : targets[0] };
}

export function languageBar(languages, state, change) {
  const names = new Map(languages.map((each) => [each.code, each.name]));
  const list = (label, codes, chosen, choose) =>
    element(
      "select",
      { "aria-label": label, onchange: (event) => choose(event.target.value) },
      codes.map((code) =>
        element(
          "option",
          { value: code, selected: code === chosen },
          code === AUTO ? "Detect language" : (names.get(code) ?? code),
        ),
      ),
    );
  const reverse = state.source !== AUTO && targetsOf(languages, state.target).includes(state.source);
  return {
    source: list("From", sourcesOf(languages), state.source, (source) =>
      change(settle(languages, source, state.target)),
    ),
    target: list("To", targetsOf(languages, state.source), state.target, (target) =>
      change({ ...state, target }),
    ),
    swap: element(
      "button",
      {
        type: "button",
        class: "icon swap",
        "aria-label": "Swap the languages",
        disabled: !reverse,
        onclick: () => change({ source: state.target, target: state.source }, true),
      },
      "⇄",
    ),
  };
}
