// How the model learned: small charts of the training log, drawn here.
import { element, shape } from "./look/dom.js";

const HEIGHT = 190,
  LEFT = 40,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 24,
  RULES = 4,
  APART = 58; // between the last round number and the end

/* lines = [{name, key, class, dots}] over the points' minutes. */
export function chart(title, points, lines, format) {
  const series = lines.map((line) => ({
    ...line,
    points: points
      .filter((point) => finite(point[line.key]) && finite(point.seconds))
      .map((point) => [point.seconds / 60, point[line.key], point.step]),
  }));
  const all = series.flatMap((line) => line.points);
  if (all.length < 2) return null;
  const canvas = shape("svg", { role: "img", "aria-label": describe(title, series, format), height: HEIGHT });
  const told = element("p", { class: "chart-told", "aria-hidden": "true" });
  const figure = element(
    "figure",
    { class: "chart" },
    element(
      "figcaption",
      {},
      element("span", { class: "eyebrow" }, title),
      element(
        "span",
        { class: "legend" },
        series.length > 1 ? series.map((line) => element("span", { class: line.class }, line.name)) : "",
      ),
    ),
    canvas,
    told,
  );
  const frame = {
    xs: range(
      all.map(([x]) => x),
      0,
    ),
    ys: rounded(range(all.map(([, y]) => y))),
  };
  const paint = () => draw(canvas, series, frame, Math.max(220, figure.clientWidth));
  new ResizeObserver(paint).observe(figure);
  canvas.addEventListener("pointermove", (event) => {
    told.textContent = point(canvas, series, frame, event, format);
  });
  canvas.addEventListener("pointerleave", () => {
    told.textContent = "";
    canvas.querySelector(".cursor")?.remove();
  });
  return figure;
}

const finite = (value) => typeof value === "number" && Number.isFinite(value);

function range(values, floor = null) {
  const low = floor ?? values.reduce((a, b) => Math.min(a, b)),
    high = values.reduce((a, b) => Math.max(a, b));
  return [low, high > low ? high : low + 1];
}

/* The distance of round numbers, of which there are about `count` between two bounds. */
function strideOf([low, high], count) {
  const rough = (high - low) / count,
    power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

/* Bounds that are round numbers themselves, so that a rule lies above the highest value too. */
function rounded(bounds) {
  const step = strideOf(bounds, RULES);
  return [Math.floor(bounds[0] / step + 1e-6) * step, Math.ceil(bounds[1] / step - 1e-6) * step];
}

/* Round numbers between two bounds, about `count` of them. */
function ticks([low, high], count) {
  const step = strideOf([low, high], count);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6 && found.length < 20; tick += step)
    found.push(Number(tick.toPrecision(6)));
  return found;
}

function scales(frame, width) {
  const scale =
    ([low, high], from, to) =>
    (value) =>
      from + ((value - low) / (high - low)) * (to - from);
  return { x: scale(frame.xs, LEFT, width - RIGHT), y: scale(frame.ys, HEIGHT - BOTTOM, TOP) };
}

function draw(canvas, series, frame, width) {
  const { x, y } = scales(frame, width),
    put = (value) => value.toFixed(1);
  canvas.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  canvas.setAttribute("width", width);
  const grid = ticks(frame.ys, RULES).map((tick) =>
    shape(
      "g",
      {},
      shape("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: put(y(tick)), y2: put(y(tick)) }),
      shape("text", { x: LEFT - 8, y: put(y(tick) + 4), "text-anchor": "end" }, String(tick)),
    ),
  );
  const last = frame.xs[1];
  const foot = (tick, text, anchor) =>
    shape("text", { class: "foot", x: put(x(tick)), y: HEIGHT - 6, "text-anchor": anchor }, text);
  const feet = ticks(frame.xs, 5)
    .filter((tick) => x(last) - x(tick) > APART)
    .map((tick) => foot(tick, String(tick), "middle"));
  feet.push(foot(last, `${Number(last.toPrecision(3))} min`, "end")); // where the curve ends
  const lines = series.flatMap((line) => [
    shape("path", {
      class: `line ${line.class}`,
      d: line.points.map(([px, py], i) => `${i ? "L" : "M"}${put(x(px))} ${put(y(py))}`).join(""),
    }),
    ...(line.dots
      ? line.points.map(([px, py]) =>
          shape("circle", { class: line.class, cx: put(x(px)), cy: put(y(py)), r: 3 }),
        )
      : []),
  ]);
  canvas.replaceChildren(...grid, ...feet, ...lines);
}

/* The figures nearest to the pointer, and a line there. */
function point(canvas, series, frame, event, format) {
  const width = canvas.viewBox.baseVal.width,
    { x } = scales(frame, width);
  const nearest = series
    .filter((line) => line.points.length)
    .map((line) => [
      line,
      line.points.reduce((a, b) =>
        Math.abs(x(b[0]) - event.offsetX) < Math.abs(x(a[0]) - event.offsetX) ? b : a,
      ),
    ]);
  const at = nearest
    .map(([, each]) => each)
    .reduce((a, b) => (Math.abs(x(b[0]) - event.offsetX) < Math.abs(x(a[0]) - event.offsetX) ? b : a));
  canvas.querySelector(".cursor")?.remove();
  canvas.append(shape("line", { class: "cursor", x1: x(at[0]), x2: x(at[0]), y1: TOP, y2: HEIGHT - BOTTOM }));
  const step = finite(at[2]) ? `step ${at[2].toLocaleString("en")}, ` : "";
  const values = nearest.map(([line, each]) => `${line.name} ${format(each[1])}`);
  return `${step}${at[0].toFixed(1)} min: ${values.join(", ")}`;
}

function describe(title, series, format) {
  const ends = series
    .filter((line) => line.points.length)
    .map((line) => `${line.name} from ${format(line.points[0][1])} to ${format(line.points.at(-1)[1])}`);
  return `${title}: ${ends.join("; ")}`;
}
