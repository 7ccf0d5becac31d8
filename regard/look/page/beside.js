// The same sentence by several models side by side: what each wrote, and a whole look into each of them.
import { element } from "./dom.js";
import { mountLook } from "./look.js";
import { header } from "./theme.js";

/* The page of a file: its data lies beside the script. */
export function showBeside(root) {
  const data = JSON.parse(document.getElementById("regard-data").textContent);
  root.classList.add("regard");
  const columns = data.looks.map((look) => [look, element("div", { class: "side" })]);
  root.replaceChildren(
    header("side by side"),
    element("p", { class: "source-text", dir: "auto" }, data.text),
    element(
      "div",
      { class: "beside" },
      columns.map(([look, column]) =>
        element(
          "section",
          { "aria-label": look.model.name },
          element("h2", {}, element("bdi", {}, look.model.name), " ", howItWrote(look)),
          column,
        ),
      ),
    ),
  );
  for (const [look, column] of columns) mountLook(column, look, { chrome: false });
}

function howItWrote(look) {
  const steps = look.sides.target.tokens.length;
  const passes = look.passes?.length;
  const text = passes
    ? `all at once, ${passes === 1 ? "1 pass" : `${passes} passes`}`
    : `word by word, ${steps} steps`;
  return element("span", { class: "muted" }, text);
}
