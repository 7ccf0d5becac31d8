// What is known of the model that translates: its parts, how it learned, its card.
import { element } from "./look/dom.js";
import { cardOf } from "./card.js";
import { chart } from "./curve.js";

export function drawModel(root, model) {
  const fixed = (digits) => (value) => value.toFixed(digits);
  const metrics = Array.isArray(model.metrics) ? model.metrics : [];
  const charts = [
    chart(
      "Loss",
      metrics,
      [
        { name: "training", key: "loss", class: "faint" },
        { name: "validation", key: "valid_loss", class: "firm", dots: true },
      ],
      fixed(2),
    ),
    ...scoresOf(metrics).map(([key, name]) =>
      chart(`Validation ${name}`, metrics, [{ name, key, class: "firm", dots: true }], fixed(1)),
    ),
  ].filter(Boolean);
  const section = (title, ...content) =>
    element("section", { class: "card", "aria-label": title }, element("h2", {}, title), content);
  root.replaceChildren(
    ...[
      section(
        "The model",
        element(
          "dl",
          { class: "parts" },
          partsOf(model).map(([name, value]) =>
            element("div", {}, element("dt", {}, name), element("dd", {}, element("bdi", {}, String(value)))),
          ),
        ),
      ),
      charts.length > 0 && section("How it learned", element("div", { class: "charts" }, charts)),
      section(
        "Model card",
        model.card ? cardOf(String(model.card)) : element("p", { class: "hint" }, "This model has no card."),
      ),
    ].filter(Boolean),
  );
}

// Every score that was measured beside the loss, by its key, as people call it.
function scoresOf(metrics) {
  const named = metrics.flatMap((point) => Object.keys(point));
  const keys = new Set(named.filter((key) => /^valid_(?!loss$)/.test(key)));
  const known = { bleu: "BLEU", chrf: "chrF" };
  return [...keys].map((key) => [key, known[key.slice(6)] || key.slice(6)]);
}

function partsOf({ name, config = {} }) {
  const { model = {}, attention = {}, positions = {} } = config;
  return [
    ["Name", name],
    ["Kind", model.kind],
    ["Layers", [model.encoder_layers, model.decoder_layers].filter(Boolean).join(" + ")],
    ["Heads", model.n_heads],
    ["Width", model.d_model],
    ["Vocabulary", model.vocab_size && Number(model.vocab_size).toLocaleString("en")],
    ["Attention", attention.kind && `${attention.kind}, ${attention.score}`],
    ["Positions", positions.kind],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== 0);
}
