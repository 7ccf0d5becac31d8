// The page for models of pictures: drop one, and see what it shows, or boxes around what is in it, and where
// the model looked; heads can be switched off.
import { element, percent } from "./look/dom.js";
import { mountPicture } from "./look/picture.js";
import { newest, post, Trouble } from "./api.js";
import { foot, top } from "./frame.js";
import { notice } from "./notice.js";

const LARGEST = 1024; // pixels of the longer side that are sent
const SMALL = 256 * 256; // pixels
const COLOURS = ["#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000"];
const ASKS = {
  image: { path: "v1/images/classifications", fields: { top: 8 }, show: labels },
  detection: { path: "v1/images/detections", fields: { threshold: 0.5 }, show: objects },
};

export async function openSeer(root, signal, models) {
  const ask = ASKS[models[0].task];
  const alarm = notice();
  const canvas = element("canvas", { class: "scene", width: 1, height: 1, hidden: true });
  const found = element("div", { class: "read", "aria-live": "polite" });
  const file = element("input", { type: "file", accept: "image/*", "aria-label": "Picture" });
  const choice = element(
    "select",
    { "aria-label": "Model", onchange: () => look(0) },
    models.map((model) => element("option", { value: model.id }, model.id)),
  );
  const inside = element("div", { class: "panel inside-panel" });
  let picture = null;
  const look = newest(
    async (stop) => {
      if (!picture) return;
      const fields = { ...ask.fields, model: choice.value, image: sent(picture) };
      const answer = await post(ask.path, fields, stop);
      alarm.show(null);
      draw(canvas, picture);
      found.replaceChildren(ask.show(answer, canvas));
      await explain({ model: choice.value, image: fields.image }, stop);
    },
    { trouble: (error) => alarm.show(error, () => look(0)) },
  );
  /* Where it looked; a model without attention says so in its place. */
  async function explain(asked, stop) {
    try {
      const seen = await post("attention", asked, stop);
      mountPicture(inside, seen, { switchHeads: (off) => silenced(asked, off) });
    } catch (error) {
      if (!(error instanceof Trouble) || error.status !== 400) throw error;
      inside.replaceChildren(element("p", { class: "card hint" }, error.message));
    }
  }
  async function silenced(asked, off) {
    try {
      return await post("attention", { ...asked, heads_off: off });
    } catch (error) {
      alarm.show(error, () => look(0));
      return null;
    }
  }
  async function take(given) {
    if (!given) return;
    try {
      picture = await createImageBitmap(given);
    } catch {
      return alarm.show({ message: `${given.name} is no picture that this browser can read.`, wait: null });
    }
    draw(canvas, picture);
    found.replaceChildren();
    inside.replaceChildren();
    look(0);
  }
  file.addEventListener("change", () => take(file.files[0]));
  const desk = element(
    "section",
    { class: "card seeing", "aria-label": "Picture" },
    element("div", { class: "tools" }, file, models.length > 1 && choice),
    element("p", { class: "hint" }, "Choose a picture, drop one here, or paste it."),
    canvas,
    found,
  );
  // on the whole page: beside the card the browser would leave it and show the file
  addEventListener("dragover", (event) => event.preventDefault(), { signal });
  addEventListener(
    "drop",
    (event) => {
      event.preventDefault();
      take(event.dataTransfer.files[0]);
    },
    { signal },
  );
  addEventListener("paste", (event) => take(event.clipboardData?.files[0]), { signal });
  root.replaceChildren(
    top(element("bdi", { class: "model" }, models[0].id)),
    alarm.node,
    desk,
    inside,
    foot("It is asked by its "),
  );
}

/* The picture as it is sent: no larger than the model could use. */
function sent(picture) {
  const scale = Math.min(1, LARGEST / Math.max(picture.width, picture.height));
  const small = element("canvas", {
    width: Math.max(1, Math.round(picture.width * scale)),
    height: Math.max(1, Math.round(picture.height * scale)),
  });
  const ink = small.getContext("2d");
  ink.fillStyle = "#fff"; // what is transparent lies on white, as in training
  ink.fillRect(0, 0, small.width, small.height);
  ink.drawImage(picture, 0, 0, small.width, small.height);
  // a small one to the last pixel: what JPEG loses would be seen in it
  const exact = small.width * small.height <= SMALL;
  return exact ? small.toDataURL("image/png") : small.toDataURL("image/jpeg", 0.92);
}

function draw(canvas, picture) {
  const scale = 560 / Math.max(picture.width, picture.height);
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.hidden = false;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
}

function labels(answer) {
  const rows = Object.entries(answer.labels).map(([name, chance]) =>
    element(
      "li",
      { class: name === answer.label ? "first" : "" },
      element("bdi", {}, name),
      element(
        "span",
        { class: "track" },
        element("span", { class: "fill", style: { width: percent(Math.min(1, chance)) } }),
      ),
      element("span", { class: "figure" }, percent(chance, 1)),
    ),
  );
  return element("ul", { class: "labels" }, rows);
}

function objects(answer, canvas) {
  const pen = canvas.getContext("2d");
  const [across, down] = [canvas.width / answer.width, canvas.height / answer.height];
  const names = [...new Set(answer.objects.map((each) => each.label))];
  pen.lineWidth = 2;
  pen.font = "13px sans-serif";
  for (const { label, score, box } of [...answer.objects].reverse()) {
    const [x, y] = [box[0] * across, box[1] * down];
    pen.strokeStyle = pen.fillStyle = COLOURS[names.indexOf(label) % COLOURS.length];
    pen.strokeRect(x, y, box[2] * across, box[3] * down);
    const text = `${label} ${percent(score)}`;
    pen.fillRect(x, Math.max(0, y - 18), pen.measureText(text).width + 6, 18);
    pen.fillStyle = "#ffffff";
    pen.fillText(text, x + 3, Math.max(13, y - 5));
  }
  if (!answer.objects.length) return element("p", { class: "hint" }, "Nothing that it is sure of.");
  const row = ({ label, score }) =>
    element(
      "li",
      {},
      element("bdi", {}, label),
      element(
        "span",
        { class: "track" },
        element("span", { class: "fill", style: { width: percent(score) } }),
      ),
      element("span", { class: "figure" }, percent(score, 1)),
    );
  return element("ul", { class: "labels" }, answer.objects.map(row));
}
