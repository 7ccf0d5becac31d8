// How to write on: temperature, top-p, how many tokens, the seed. What is not set is as the server has it.
import { element } from "./look/dom.js";

export function dialsOf() {
  const temperature = slider("Temperature", { max: 2, step: 0.05, value: 0.8 });
  const nucleus = slider("Top-p", { max: 1, step: 0.01, value: 1 });
  const tokens = figure("Tokens", { min: 1, max: 4096, value: 40 });
  const seed = figure("Seed", { min: 0, max: 2 ** 31, value: "", placeholder: "any" });
  return {
    node: element("div", { class: "dials" }, temperature.node, nucleus.node, tokens.node, seed.node),
    /* The fields of a request; without a seed each text is another one. */
    fields: () => ({
      temperature: Number(temperature.input.value),
      top_p: Number(nucleus.input.value),
      max_tokens: Math.min(4096, Math.max(1, Math.round(Number(tokens.input.value)) || 1)),
      ...(seed.input.value === "" ? {} : { seed: Math.abs(Math.round(Number(seed.input.value))) || 0 }),
    }),
  };
}

function slider(name, { max, step, value }) {
  const shown = element("output", {}, value.toFixed(2));
  const input = element("input", {
    type: "range",
    min: 0,
    max,
    step,
    value,
    oninput: () => {
      shown.textContent = Number(input.value).toFixed(2);
    },
  });
  return { input, node: element("label", { class: "threshold" }, name, input, shown) };
}

function figure(name, properties) {
  const input = element("input", { type: "number", inputmode: "numeric", ...properties });
  return { input, node: element("label", { class: "threshold" }, name, input) };
}
