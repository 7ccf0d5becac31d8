// How the pages of files open: who looked and what came of it, then what the page is about.
import { element } from "./dom.js";
import { header } from "./theme.js";

/* The data that lies beside the script. */
export const dataBeside = () => JSON.parse(document.getElementById("regard-data").textContent);

/* What stands above everything: the model's name, and two lines of text. */
export const opening = (model, large, small) => [
  header(element("bdi", { class: "model" }, model.name)),
  element(
    "div",
    { class: "translation" },
    element("p", { class: "target-text", dir: "auto" }, large),
    element("p", { class: "source-text", dir: "auto" }, small),
  ),
];

/* `mount(board, data)` fills the board, whose class is `name`, with the data of a look on one thing. */
export function openPage(root, name, mount) {
  const data = dataBeside();
  const board = element("div", { class: name });
  root.classList.add("regard");
  root.replaceChildren(...opening(data.model, data.answer, data.text), board);
  mount(board, data);
}
