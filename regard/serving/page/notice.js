// One calm line where something is wrong, with a way to go on.
import { element } from "./look/dom.js";
import { setKey } from "./api.js";

const NO_KEY = [401, 403]; // as OpenAI and LibreTranslate say it

export function notice() {
  const node = element("div", { class: "notice", role: "status" });
  node.hidden = true;
  return { node, show: (error, retry) => show(node, error, retry) };
}

function show(node, error, retry) {
  node.hidden = !error;
  if (!error) return node.replaceChildren();
  if (NO_KEY.includes(error.status)) return node.replaceChildren(...keyForm(retry));
  const helps = error.wait !== null;
  node.replaceChildren(
    element("span", {}, helps ? `${error.message} Trying again by itself.` : error.message),
    helps ? element("button", { type: "button", class: "quiet", onclick: retry }, "Try now") : "",
  );
}

function keyForm(retry) {
  const field = element("input", { type: "password", autocomplete: "off", "aria-label": "API key" });
  const take = (event) => {
    event.preventDefault();
    setKey(field.value.trim());
    retry();
  };
  return [
    element("span", {}, "This server asks for a key."),
    element("form", { onsubmit: take }, field, element("button", { class: "quiet" }, "Use it")),
  ];
}
