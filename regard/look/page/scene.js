// A picture and where each of its patches, its objects or the whole looked: point at one and see.
import { element, percent, segmented } from "./dom.js";
import { header } from "./theme.js";

/* The page of a file: its data lies beside the script. */
export function showScene(root) {
  mountScene(root, JSON.parse(document.getElementById("regard-data").textContent));
}

export function mountScene(root, data) {
  const { width, height } = data.picture;
  const canvas = element("canvas", {
    width,
    height,
    class: "scene",
    tabindex: "0",
    role: "img",
    "aria-label": `${data.text}: ${data.answer}`,
  });
  const pen = canvas.getContext("2d");
  const pixels = decoded(data.picture);
  const says = element("p", { class: "hint", "aria-live": "polite" });
  const tools = element("div", { class: "tools" });
  const state = { map: first(data.maps), head: -1, query: 0 };

  root.classList.add("regard");
  root.replaceChildren(
    header(element("bdi", { class: "model" }, data.model.name)),
    element("div", { class: "translation" }, element("p", { class: "target-text" }, data.answer)),
    tools,
    element("section", { class: "card", "aria-label": "Picture" }, canvas, says),
  );
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("keydown", step);
  paint();

  function paint() {
    drawTools();
    drawPicture();
  }

  function choose(change) {
    Object.assign(state, change);
    const map = data.maps[state.map];
    state.head = Math.min(state.head, map.weights.length - 1);
    state.query = Math.min(state.query, map.weights[0].length - 1);
    paint();
  }

  function drawTools() {
    const map = data.maps[state.map];
    const maps = element(
      "select",
      { "aria-label": "Which attention", onchange: (event) => choose({ map: Number(event.target.value) }) },
      data.maps.map((each, i) =>
        element(
          "option",
          { value: i, selected: i === state.map },
          `${each.name}: ${each.queries} look at ${each.keys}`,
        ),
      ),
    );
    const heads = map.weights.map((_, i) => [i, `head ${i}`]);
    const parts = [maps];
    if (heads.length > 1)
      parts.push(segmented("Head", [[-1, "mean"], ...heads], state.head, (head) => choose({ head })));
    if (map.queries === "objects")
      parts.push(
        segmented(
          "Object",
          data.objects.map((each, i) => [i, `${each.name} ${percent(each.score)}`]),
          state.query,
          (query) => choose({ query }),
        ),
      );
    tools.replaceChildren(...parts);
  }

  function drawPicture() {
    const map = data.maps[state.map];
    const row = rowOf(map, state);
    pen.putImageData(new ImageData(pixels, width, height), 0, 0);
    if (map.keys === "patches") shade(row);
    data.objects.forEach((each, i) => {
      const weight = map.keys === "objects" ? row[i] / Math.max(...row, 1e-9) : 0.3;
      outline(each.box, i === state.query && map.queries === "objects" ? "#ff3b6b" : "#ffd400", weight);
    });
    if (map.queries === "patches") outlinePatch(state.query);
    const best = row.indexOf(Math.max(...row));
    const who =
      map.queries === "patches"
        ? `patch ${place(state.query)}`
        : map.queries === "objects"
          ? data.objects[state.query].name
          : "the whole";
    const where = map.keys === "patches" ? `patch ${place(best)}` : data.objects[best].name;
    says.replaceChildren(`${who} looks mostly at ${where} (${percent(row[best], 1)})`);
  }

  function place(number) {
    return `${Math.floor(number / data.grid[1]) + 1}, ${(number % data.grid[1]) + 1}`;
  }

  /* What is not looked at grows dark. */
  function shade(row) {
    const [rows, columns] = data.grid;
    const most = Math.max(...row, 1e-9);
    row.forEach((weight, i) => {
      pen.fillStyle = `rgb(10 14 30 / ${0.8 * (1 - Math.sqrt(weight / most))})`;
      const [x, y] = [i % columns, Math.floor(i / columns)];
      const [left, top] = [(x * width) / columns, (y * height) / rows];
      pen.fillRect(left, top, width / columns + 0.5, height / rows + 0.5);
    });
  }

  function outline([x, y, w, h], colour, weight) {
    pen.strokeStyle = colour;
    pen.globalAlpha = 0.25 + 0.75 * weight;
    pen.lineWidth = 2;
    pen.strokeRect((x - w / 2) * width, (y - h / 2) * height, w * width, h * height);
    pen.globalAlpha = 1;
  }

  function outlinePatch(number) {
    const [rows, columns] = data.grid;
    const [x, y] = [(number % columns) + 0.5, Math.floor(number / columns) + 0.5];
    outline([x / columns, y / rows, 1 / columns, 1 / rows], "#ff3b6b", 1);
  }

  function point(event) {
    const [rows, columns] = data.grid;
    const box = canvas.getBoundingClientRect();
    const x = Math.max(0, Math.min(0.999, (event.clientX - box.left) / box.width));
    const y = Math.max(0, Math.min(0.999, (event.clientY - box.top) / box.height));
    const queries = data.maps[state.map].queries;
    if (queries === "patches") select(Math.floor(y * rows) * columns + Math.floor(x * columns));
    else if (queries === "objects" && event.type === "pointerdown") select(nearest(x, y));
  }

  function nearest(x, y) {
    const far = data.objects.map(({ box }) => Math.hypot(box[0] - x, box[1] - y));
    return far.indexOf(Math.min(...far));
  }

  function select(query) {
    if (query === state.query) return;
    state.query = query;
    paint();
  }

  function step(event) {
    const columns = data.maps[state.map].queries === "patches" ? data.grid[1] : 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const last = data.maps[state.map].weights[0].length - 1;
    select(Math.max(0, Math.min(last, state.query + steps[event.key])));
  }
}

/* What is shown first: where the whole, or an object, looked through all layers. */
function first(maps) {
  const found = maps.findIndex((map) => map.name === "rollout");
  return found < 0 ? 0 : found;
}

function rowOf(map, { head, query }) {
  if (head >= 0) return map.weights[head][query];
  const rows = map.weights.map((each) => each[query]);
  return rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}

function decoded({ width, height, rgb }) {
  const bytes = atob(rgb);
  const pixels = new Uint8ClampedArray(4 * width * height);
  for (let i = 0; i < width * height; i++) {
    for (let part = 0; part < 3; part++) pixels[4 * i + part] = bytes.charCodeAt(3 * i + part);
    pixels[4 * i + 3] = 255;
  }
  return pixels;
}
