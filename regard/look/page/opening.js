// How the page of a file opens that shows one look on its own thing: who looked, what came of it, a board.
import { element } from "./dom.js";
import { header } from "./theme.js";

/* `mount(board, data)` fills the board, whose class is `name`, with the data that lies beside the script. */
export function openPage(root, name, mount) {
  const data = JSON.parse(document.getElementById("regard-data").textContent);
  const board = element("div", { class: name });
  root.classList.add("regard");
  root.replaceChildren(
    header(element("bdi", { class: "model" }, data.model.name)),
    element(
      "div",
      { class: "translation" },
      element("p", { class: "target-text", dir: "auto" }, data.answer),
      element("p", { class: "source-text", dir: "auto" }, data.text),
    ),
    board,
  );
  mount(board, data);
}
