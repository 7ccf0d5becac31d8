// A picture and where it was looked at: point at a place, choose a thing, or move there with the arrow keys.
import { element, percent, power, segmented } from "./dom.js";
import { openPage } from "./opening.js";

const SIDE = 420; // pixels of the picture on the page, about
const SMALL = 96; // of a head's

/* The page of a file: its data lies beside the script. */
export function showPicture(root) {
  openPage(root, "picture-look", (board, data) => mountPicture(board, data));
}

/* The picture with its maps; who looks, the map and the head can be chosen. `switchHeads(off)` brings the
   data of the same picture without some heads, where that can be asked for. */
export function mountPicture(root, data, { switchHeads = null } = {}) {
  const view = { data, picture: painted(data.picture), map: first(data.maps), head: -1, place: null };
  const canvas = element("canvas", {
    class: "picture",
    tabindex: "0",
    role: "img",
    width: String(SIDE),
    height: String(Math.max(1, Math.round((SIDE * data.picture.height) / data.picture.width))),
  });
  const tools = element("div", { class: "tools" }),
    told = element("p", { class: "hint", "aria-live": "polite" }),
    heads = element("div", { class: "picture-heads" }),
    silenced = element("div");
  const now = () => view.data.maps[view.map];
  const go = (change) => {
    Object.assign(view, change);
    paint();
  };

  canvas.addEventListener("pointermove", pointed);
  canvas.addEventListener("pointerdown", pointed);
  canvas.addEventListener("keydown", (event) => {
    const place = moved(event.key, view.place, now());
    if (place === null) return;
    event.preventDefault();
    go({ place });
  });
  root.replaceChildren(
    element(
      "section",
      { class: "card", "aria-label": "The picture and what was looked at" },
      tools,
      element("div", { class: "picture-row" }, canvas, heads),
      told,
      silenced,
    ),
  );
  paint();

  function pointed(event) {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width,
      y = (event.clientY - box.top) / box.height;
    const place = placeAt(x, y, now(), view.data.objects, event.type === "pointerdown");
    if (place !== null && place !== view.place) go({ place });
  }

  async function toggle(head) {
    const { name } = now();
    const off = new Set(view.data.off[name] ?? []);
    if (!off.delete(head)) off.add(head);
    await ask({ ...view.data.off, [name]: [...off] });
  }

  async function ask(off) {
    const kept = Object.fromEntries(Object.entries(off).filter(([, each]) => each.length));
    const fresh = await switchHeads(kept);
    if (fresh) go({ data: fresh, picture: painted(fresh.picture) });
  }

  function paint() {
    view.map = Math.min(view.map, view.data.maps.length - 1);
    const map = now();
    if (view.head >= map.heads.length) view.head = -1;
    if (view.place === null || view.place >= map.heads[0].length) view.place = middle(map);
    paintTools(map);
    const rows = [meanOf(map.heads.map((head) => head[view.place])), ...map.heads.map((h) => h[view.place])];
    const row = rows[view.head + 1];
    overlay(canvas, view, row, map);
    const shown = map.heads.length > 1 ? rows : [];
    heads.replaceChildren(...shown.map((each, i) => button(i - 1, each, map)));
    told.textContent = saying(row, map, view.place, view.data.objects);
    canvas.setAttribute("aria-label", `The picture. ${told.textContent} Arrow keys move.`);
    silenced.replaceChildren(...offNote(view.data, switchHeads && (() => ask({}))));
  }

  function paintTools(map) {
    const maps = element(
      "select",
      {
        "aria-label": "Which attention",
        onchange: (event) => go({ map: Number(event.target.value), head: -1, place: null }),
      },
      view.data.maps.map((each, i) =>
        element("option", { value: i, selected: i === view.map }, titled(each)),
      ),
    );
    const things =
      map.queries === "objects" &&
      segmented(
        "Object",
        view.data.objects.map((each, i) => [i, `${each.name} ${percent(each.score)}`]),
        view.place,
        (place) => go({ place }),
      );
    tools.replaceChildren(...[maps, things].filter(Boolean));
  }

  function button(head, row, map) {
    const silent = head >= 0 && (view.data.off[map.name] ?? []).includes(head);
    const name = head < 0 ? "All heads" : `Head ${head}`;
    const shown = thumbnail(view, row, map, name, silent, head === view.head, () => go({ head }));
    if (!switchHeads || head < 0) return shown;
    return element(
      "div",
      { class: "switchable" },
      shown,
      power(name, silent, () => toggle(head)),
    );
  }
}

/* What is shown first: where the whole, or an object, looked through all layers. */
function first(maps) {
  return Math.max(
    0,
    maps.findIndex((map) => map.name === "rollout"),
  );
}

function titled(map) {
  const side = (each) => (typeof each === "string" ? each : `${each[0]} × ${each[1]} places`);
  return `${map.name}: ${side(map.queries)} → ${side(map.keys)}`;
}

function middle({ queries }) {
  if (typeof queries === "string") return 0;
  return Math.floor(queries[0] / 2) * queries[1] + Math.floor(queries[1] / 2);
}

/* Who is meant by a point of the picture, in shares of its sides; null: nobody. */
function placeAt(x, y, { queries }, objects, pressed) {
  if (typeof queries !== "string") {
    const share = (value, count) => within(Math.floor(value * count), count);
    return share(y, queries[0]) * queries[1] + share(x, queries[1]);
  }
  if (queries !== "objects" || !pressed) return null;
  const far = objects.map(({ box }) => Math.hypot(box[0] - x, box[1] - y));
  return far.indexOf(Math.min(...far));
}

function moved(key, place, { queries, heads }) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  if (!step) return null;
  if (typeof queries === "string") return within(place + step[0] + step[1], heads[0].length);
  const row = within(Math.floor(place / queries[1]) + step[0], queries[0]),
    column = within((place % queries[1]) + step[1], queries[1]);
  return row * queries[1] + column;
}

function within(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

function saying(row, map, place, objects) {
  const named = (side, i) => {
    if (side === "objects") return `${objects[i].name} (${percent(objects[i].score)})`;
    if (typeof side === "string") return side;
    return `row ${Math.floor(i / side[1]) + 1}, column ${(i % side[1]) + 1}`;
  };
  const most = row.indexOf(Math.max(...row));
  const [who, where] = [named(map.queries, place), named(map.keys, most)];
  const text = `${who} looks most at ${where}: ${percent(row[most], 1)}.`;
  return text[0].toUpperCase() + text.slice(1);
}

/* How many heads are off, what became of it, and a way back. */
function offNote({ off, answer }, restore) {
  const count = Object.values(off).reduce((sum, each) => sum + each.length, 0);
  if (!count) return [];
  const said = `${count === 1 ? "1 head is" : `${count} heads are`} switched off: ${answer}`;
  return [
    element(
      "p",
      { class: "silenced" },
      element("span", { role: "status" }, said),
      restore && element("button", { type: "button", class: "quiet", onclick: restore }, "Switch all on"),
    ),
  ];
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

/* The picture, dark where it was not looked at, a frame around who looks, boxes around things. */
function overlay(canvas, { picture, place, data }, row, map) {
  const context = canvas.getContext("2d"),
    { width, height } = canvas;
  const most = Math.max(...row, 1e-9);
  context.imageSmoothingEnabled = picture.width > width;
  context.globalAlpha = 1;
  context.drawImage(picture, 0, 0, width, height);
  if (typeof map.keys !== "string") {
    const [rows, columns] = map.keys;
    const [down, across] = [height / rows, width / columns];
    row.forEach((weight, i) => {
      context.fillStyle = `rgb(10 14 30 / ${0.8 * (1 - Math.sqrt(weight / most))})`;
      context.fillRect((i % columns) * across, Math.floor(i / columns) * down, across + 0.5, down + 0.5);
    });
  }
  const outline = ([x, y, w, h], colour, strength) => {
    context.globalAlpha = 0.25 + 0.75 * strength;
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1.5, width / 180);
    context.strokeRect((x - w / 2) * width, (y - h / 2) * height, w * width, h * height);
    context.globalAlpha = 1;
  };
  data.objects.forEach(({ box }, i) => {
    const looks = map.queries === "objects" && i === place;
    outline(box, looks ? "#ff3b6b" : "#ffd400", map.keys === "objects" ? row[i] / most : looks ? 1 : 0.3);
  });
  if (typeof map.queries === "string") return;
  const [rows, columns] = map.queries;
  const at = [(place % columns) + 0.5, Math.floor(place / columns) + 0.5];
  outline([at[0] / columns, at[1] / rows, 1 / columns, 1 / rows], "#ff3b6b", 1);
}

function thumbnail(view, row, map, name, silent, chosen, choose) {
  const canvas = element("canvas", { width: String(SMALL), height: String(SMALL), "aria-hidden": "true" });
  overlay(canvas, view, row, map);
  return element(
    "button",
    {
      type: "button",
      class: `picture-head${silent ? " silent" : ""}`,
      "aria-pressed": String(chosen),
      onclick: choose,
    },
    canvas,
    element("span", {}, name),
  );
}
