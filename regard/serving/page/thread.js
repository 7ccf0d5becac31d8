// The thread from a word of the translation to where it came from, across the two halves of the desk.
import { shape } from "./look/dom.js";

export function threads(desk) {
  const canvas = shape("svg", { class: "threads", "aria-hidden": "true" });
  desk.append(canvas);
  return {
    draw(word, marks) {
      const box = desk.getBoundingClientRect();
      canvas.replaceChildren(...(word ? marks : []).map((mark) => shape("path", { d: path(rectOf(mark, box), rectOf(word, box)) })));
    },
  };
}

/* Of a word that is broken over two lines the first part. */
function rectOf(node, box) {
  const rect = node.getClientRects()[0] ?? node.getBoundingClientRect();
  return { left: rect.left - box.left, right: rect.right - box.left, top: rect.top - box.top, bottom: rect.bottom - box.top };
}

/* From the foot of the one, below both, to the foot of the other; where they stand in a column, straight down. */
function path(from, to) {
  const x = (rect) => (rect.left + rect.right) / 2;
  const gap = 3;
  if (to.top - from.bottom > 60) {
    const middle = (from.bottom + to.top) / 2;
    return `M${x(from)} ${from.bottom + gap}C${x(from)} ${middle} ${x(to)} ${middle} ${x(to)} ${to.top - gap}`;
  }
  const low = Math.max(from.bottom, to.bottom) + 46;
  return `M${x(from)} ${from.bottom + gap}C${x(from)} ${low} ${x(to)} ${low} ${x(to)} ${to.bottom + gap}`;
}
