// The thread from a word of the translation to where it came from, across the two halves of the desk.
import { shape } from "./look/dom.js";

const FAR = 60,
  RISE = 34;

export function threads(desk) {
  const canvas = shape("svg", { class: "threads", "aria-hidden": "true" });
  desk.prepend(canvas); // behind the text
  return {
    draw(word, marks) {
      const box = desk.getBoundingClientRect();
      canvas.replaceChildren(
        ...(word ? marks : []).map((mark) =>
          shape("path", { d: path(rectOf(mark, box), rectOf(word, box)) }),
        ),
      );
    },
  };
}

/* Of a word that is broken over two lines the first part. */
function rectOf(node, box) {
  const rect = node.getClientRects()[0] ?? node.getBoundingClientRect();
  return {
    left: rect.left - box.left,
    right: rect.right - box.left,
    top: rect.top - box.top,
    bottom: rect.bottom - box.top,
  };
}

/* In an arc over both; where one stands far below the other, as on a phone, down to it. */
function path(from, to) {
  const x = (rect) => (rect.left + rect.right) / 2;
  if (to.top - from.bottom > FAR) {
    const middle = (from.bottom + to.top) / 2;
    return `M${x(from)} ${from.bottom}C${x(from)} ${middle} ${x(to)} ${middle} ${x(to)} ${to.top}`;
  }
  const high = Math.min(from.top, to.top) - RISE;
  return `M${x(from)} ${from.top}C${x(from)} ${high} ${x(to)} ${high} ${x(to)} ${to.top}`;
}
