// A picture and what its places looked at: point at one, or move there with the arrow keys.
import { element, percent, segmented } from "./dom.js";
import { header } from "./theme.js";

const SIDE = 420; // pixels of the picture on the page, about
const FULL = 5; // times an even share: the deepest shade

/* The page of a file: its data lies beside the script. */
export function showPicture(root) {
  const data = JSON.parse(document.getElementById("regard-data").textContent);
  root.classList.add("regard");
  const board = element("div", { class: "picture-look" });
  root.replaceChildren(
    header(element("bdi", { class: "model" }, data.model.name)),
    element(
      "div",
      { class: "translation" },
      element("p", { class: "target-text", dir: "auto" }, data.text),
      element("p", { class: "source-text", dir: "auto" }, data.answer),
    ),
    board,
  );
  mountPicture(board, data);
}

/* The picture with its maps; the place that looks, the map and the head can be chosen. */
export function mountPicture(root, data) {
  const view = { map: 0, head: -1, place: null };
  const picture = painted(data.picture);
  const canvas = element("canvas", {
    class: "picture",
    tabindex: "0",
    role: "img",
    width: String(SIDE),
    height: String(Math.round((SIDE * data.picture.height) / data.picture.width)),
  });
  const tools = element("div", { class: "tools" }),
    told = element("p", { class: "hint", "aria-live": "polite" }),
    heads = element("div", { class: "picture-heads" });
  const go = (change) => {
    Object.assign(view, change);
    paint();
  };
  const grid = () => data.maps[view.map].queries;
  const start = () => Math.floor(grid()[0] / 2) * grid()[1] + Math.floor(grid()[1] / 2);

  function pointed(event) {
    const box = canvas.getBoundingClientRect(),
      [rows, columns] = grid();
    const share = (value, size, count) => within(Math.floor((value / size) * count), count);
    const row = share(event.clientY - box.top, box.height, rows),
      column = share(event.clientX - box.left, box.width, columns);
    go({ place: row * columns + column });
  }
  canvas.addEventListener("pointermove", pointed);
  canvas.addEventListener("pointerdown", pointed);
  canvas.addEventListener("keydown", (event) => {
    const [rows, columns] = grid();
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const row = within(Math.floor(view.place / columns) + step[0], rows),
      column = within((view.place % columns) + step[1], columns);
    go({ place: row * columns + column });
  });

  function paint() {
    const map = data.maps[view.map];
    view.place ??= start();
    if (view.place >= map.queries[0] * map.queries[1]) view.place = start();
    tools.replaceChildren(
      segmented(
        "Attention",
        data.maps.map((each, i) => [i, each.name]),
        view.map,
        (value) => go({ map: value, head: -1, place: null }),
      ),
    );
    const rows = [meanOf(map.heads.map((head) => head[view.place])), ...map.heads.map((h) => h[view.place])];
    overlay(canvas, picture, rows[view.head + 1], map, view.place);
    heads.replaceChildren(
      ...rows.map((row, i) => thumbnail(i - 1, row, map, picture, view, () => go({ head: i - 1 }))),
    );
    const [r, c] = [Math.floor(view.place / map.queries[1]), view.place % map.queries[1]];
    const row = rows[view.head + 1],
      most = row.indexOf(Math.max(...row));
    const [kr, kc] = [Math.floor(most / map.keys[1]), most % map.keys[1]];
    told.textContent =
      `Row ${r + 1}, column ${c + 1} of ${map.queries[0]} × ${map.queries[1]} places looks most at ` +
      `row ${kr + 1}, column ${kc + 1} of ${map.keys[0]} × ${map.keys[1]} (${percent(row[most])}).`;
    canvas.setAttribute("aria-label", `The picture. ${told.textContent} Arrow keys move.`);
  }
  root.replaceChildren(
    element(
      "section",
      { class: "card", "aria-label": "The picture and what it looked at" },
      tools,
      element("div", { class: "picture-row" }, canvas, heads),
      told,
    ),
  );
  paint();
}

function within(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

/* The picture as a canvas of its own size. */
function painted({ height, width, channels, bytes }) {
  const held = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  const canvas = element("canvas", { width: String(width), height: String(height) });
  const context = canvas.getContext("2d"),
    image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = held[channels * i + (channels === 3 ? c : 0)];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function meanOf(rows) {
  return rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}

/* The picture, tinted where it was looked at, and a frame around the place that looked. */
function overlay(canvas, picture, row, map, place) {
  const context = canvas.getContext("2d"),
    { width, height } = canvas;
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, width, height);
  const [rows, columns] = map.keys,
    even = 1 / row.length; // what a place would get that looks everywhere alike
  row.forEach((weight, i) => {
    context.fillStyle = `rgb(255 122 24 / ${0.75 * Math.min(1, weight / even / FULL)})`;
    const [down, across] = [height / rows, width / columns];
    context.fillRect((i % columns) * across, Math.floor(i / columns) * down, across, down);
  });
  const [down, across] = [height / map.queries[0], width / map.queries[1]];
  context.strokeStyle = "#27d3ff";
  context.lineWidth = Math.max(1.5, width / 140);
  const [line, column] = [Math.floor(place / map.queries[1]), place % map.queries[1]];
  context.strokeRect(column * across, line * down, across, down);
}

function thumbnail(head, row, map, picture, view, choose) {
  const side = 96;
  const canvas = element("canvas", { width: String(side), height: String(side), "aria-hidden": "true" });
  overlay(canvas, picture, row, map, view.place);
  const name = head < 0 ? "All heads" : `Head ${head}`;
  return element(
    "button",
    { type: "button", class: "picture-head", "aria-pressed": String(head === view.head), onclick: choose },
    canvas,
    element("span", {}, name),
  );
}
