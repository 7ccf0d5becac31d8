// A recording and where it was listened to: point at a token and see which moments each head took.
import { element, percent, roving, segmented } from "./dom.js";
import { openPage } from "./opening.js";
import { heat, onTheme, rgb } from "./theme.js";

/* The page of a file: its data lies beside the script. */
export function showSound(root) {
  openPage(root, "sound-look", (board, data) => mountSound(board, data));
}

/* The sound with its tokens and maps; `toggle(map, head)`, where it is given, switches a head off or on. */
export function mountSound(root, data, toggle = null) {
  const view = { map: data.maps.length - 1, head: -1, token: 0, layer: 0, across: -1 };
  const canvas = element("canvas", { class: "spectrogram", role: "img", width: "1200", height: "220" });
  const tools = element("div", { class: "tools" });
  const told = element("p", { class: "hint", "aria-live": "polite" });
  const line = element("div", { class: "sound-tokens", role: "group", "aria-label": "What was written" });
  const both = element("div", { class: "sound-pair" });
  const below = element("div", { class: "tools" });
  const go = (change) => {
    Object.assign(view, change);
    paint();
  };

  data.tokens.forEach((token, i) => {
    const show = () => view.token !== i && go({ token: i });
    line.append(
      element(
        "button",
        { type: "button", class: "piece", onpointerenter: show, onfocus: show },
        named(token),
      ),
    );
  });
  roving(line, "button");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * data.seconds;
    const map = data.maps[view.map];
    const moment = Math.min(map.heads[0][0].length - 1, Math.max(0, Math.floor(at / map.moment)));
    const taken = data.tokens.map((_, token) => rowOf(map, view.head, token)[moment]);
    const token = taken.indexOf(Math.max(...taken));
    if (token !== view.token) go({ token });
  });

  function paint() {
    const map = data.maps[view.map],
      row = rowOf(map, view.head, view.token);
    [...line.children].forEach((node, i) => node.setAttribute("aria-pressed", String(i === view.token)));
    drawTools(map);
    drawSpectrogram(canvas, data.spectrogram);
    shade(canvas, row, map.moment, data.seconds);
    const most = row.indexOf(Math.max(...row));
    told.textContent =
      `${named(data.tokens[view.token])} (${percent(data.confidence[view.token])} sure) listened most at ` +
      `${(most * map.moment).toFixed(2)} s (${percent(row[most])}).`;
    canvas.setAttribute("aria-label", `The sound, ${data.seconds.toFixed(2)} s. ${told.textContent}`);
    drawEncoders();
  }

  function drawTools(map) {
    const maps = data.maps.map((each, i) => [i, each.name]);
    const heads = map.heads.map((_, i) => [i, isOff(map, i) ? `head ${i} (off)` : `head ${i}`]);
    tools.replaceChildren(
      segmented("Attention", maps, view.map, (value) => go({ map: value, head: -1 })),
      segmented("Head", [[-1, "all heads"], ...heads], view.head, (head) => go({ head })),
    );
    if (toggle && view.head >= 0) {
      const text = isOff(map, view.head) ? "Switch it on" : "Switch it off";
      const onclick = () => toggle(map.name, view.head);
      tools.append(element("button", { type: "button", class: "quiet", onclick }, text));
    }
  }

  function isOff(map, head) {
    return (data.off[map.name] ?? []).includes(head);
  }

  /* What the encoder heard: truncated beside full attention, or full attention alone. */
  function drawEncoders() {
    const [first] = data.encoders;
    if (!first?.maps.length) return;
    const layers = first.maps.map((each, i) => [i, each.name]);
    const heads = first.maps[view.layer].heads.map((_, i) => [i, `head ${i}`]);
    below.replaceChildren(
      segmented("Layer of the encoder", layers, view.layer, (layer) => go({ layer })),
      segmented("Its head", [[-1, "all heads"], ...heads], view.across, (across) => go({ across })),
    );
    both.replaceChildren(
      ...data.encoders.map((each) => {
        const square = element("canvas", { class: "square", role: "img" });
        drawSquare(square, meanOf(each.maps[view.layer].heads, view.across));
        square.setAttribute("aria-label", `Which moment looks at which: ${each.name} attention`);
        return element(
          "figure",
          {},
          square,
          element(
            "figcaption",
            {},
            element("strong", {}, `${each.name} attention`),
            ` ${each.answer || "—"}`,
          ),
        );
      }),
    );
  }

  root.replaceChildren(
    element(
      "section",
      { class: "card", "aria-label": "The sound and where it was listened to" },
      tools,
      canvas,
      line,
      told,
    ),
    data.encoders[0]?.maps.length > 0 &&
      element("section", { class: "card", "aria-label": "What the encoder looked at" }, below, both),
  );
  onTheme(paint);
  paint();
}

/* Bytes of a picture, low bands first, in the colours of the theme. */
export function drawSpectrogram(canvas, { width, height, bytes }) {
  const held = typeof bytes === "string" ? Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)) : bytes;
  const small = element("canvas", { width: String(width), height: String(height) });
  const shades = Array.from({ length: 256 }, (_, i) => heat()(i / 255));
  fillPixels(small, (x, y) => shades[held[(height - 1 - y) * width + x]]);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
}

function fillPixels(canvas, colourOf) {
  const pen = canvas.getContext("2d"),
    image = pen.createImageData(canvas.width, canvas.height);
  for (let y = 0, at = 0; y < canvas.height; y++)
    for (let x = 0; x < canvas.width; x++, at += 4) {
      image.data.set(colourOf(x, y), at);
      image.data[at + 3] = 255;
    }
  pen.putImageData(image, 0, 0);
}

/* A curve of weights over the sound: the moments that were taken stand out. */
function shade(canvas, row, moment, seconds) {
  const pen = canvas.getContext("2d"),
    most = Math.max(...row, 1e-9);
  const wide = (moment / seconds) * canvas.width;
  row.forEach((weight, i) => {
    pen.fillStyle = `rgb(255 122 24 / ${0.7 * (weight / most)})`;
    pen.fillRect(i * wide, 0, wide + 0.5, canvas.height);
  });
  pen.strokeStyle = "#ff7a18";
  pen.lineWidth = 3;
  pen.beginPath();
  row.forEach((weight, i) => pen.lineTo((i + 0.5) * wide, canvas.height * (0.98 - 0.9 * (weight / most))));
  pen.stroke();
}

function drawSquare(canvas, rows) {
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const colour = heat(),
    most = Math.max(...rows.map((row) => Math.max(...row)), 1e-9);
  fillPixels(canvas, (x, y) => colour(rows[y][x] / most));
  canvas.style.setProperty("border", `1px solid ${rgb(colour(0.5))}`);
}

function rowOf(map, head, token) {
  return meanOf(
    map.heads.map((each) => [each[token]]),
    head,
  )[0];
}

/* One head's rows, or the mean of all. */
function meanOf(heads, head) {
  if (head >= 0) return heads[head];
  return heads[0].map((row, y) =>
    row.map((_, x) => heads.reduce((sum, each) => sum + each[y][x], 0) / heads.length),
  );
}

function named(token) {
  if (token === "") return "end";
  return token.trim() === "" ? "␣" : token;
}
