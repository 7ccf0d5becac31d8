// What the browser keeps between visits: the theme, the glossary, a key. Where it may keep nothing,
// nothing is kept.

export function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch {
    // full or forbidden: the page works without
  }
}

export function forget(name) {
  try {
    localStorage.removeItem(name);
  } catch {
    // as above
  }
}
