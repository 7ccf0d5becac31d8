// What every page of a server has: its head, its foot, panels of which one is open.
import { element, segmented } from "./look/dom.js";
import { header } from "./look/theme.js";

const tasks = { choices: [], chosen: "", choose: null }; // what else is served, and how to go there

/* Let the heads of pages offer these tasks: [[name, what people call it], ...]. */
export function offer(choices, chosen, choose) {
  Object.assign(tasks, { choices, chosen, choose });
}

export function top(name) {
  return header(
    name,
    tasks.choices.length > 1 && segmented("Task", tasks.choices, tasks.chosen, tasks.choose),
  );
}

export function foot(text) {
  return element("footer", {}, element("p", {}, text, element("a", { href: "spec" }, "API")));
}

/* The list of a page's models; whichever is chosen becomes its `model`, and `changed` is called. */
export function chooserOf(page, changed) {
  const list = element(
    "select",
    {
      "aria-label": "Model",
      onchange: () => {
        page.model = page.models[list.selectedIndex];
        page.name.textContent = page.model.id;
        changed();
      },
    },
    page.models.map((each) => element("option", { selected: each === page.model }, each.id)),
  );
  return list;
}

/* Panels by name, the tabs that open one of them, and `open(name)`. */
export function panelsOf(names, label, opened) {
  const panels = Object.fromEntries(
    names.map(([key]) => [key, element("div", { class: `panel ${key}-panel` })]),
  );
  const tabs = element("nav", { class: "tabs", "aria-label": label });
  function open(panel) {
    const choose = (value) => {
      open(value);
      tabs.querySelector(`[data-value=${value}]`).focus();
    };
    tabs.replaceChildren(segmented("What to see", names, panel, choose));
    for (const [key, node] of Object.entries(panels)) node.hidden = key !== panel;
    opened();
  }
  return { panels, tabs, open };
}
