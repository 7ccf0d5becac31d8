// Which page it is: each task that is served has one, and where there are several, one chooses.
import { element } from "./look/dom.js";
import { isDark, onTheme } from "./look/theme.js";
import { get, newest } from "./api.js";
import { foot, offer, top } from "./frame.js";
import { recall, remember } from "./memory.js";
import { notice } from "./notice.js";
import { openListener } from "./listen.js";
import { openReader } from "./read.js";
import { openDrawer } from "./draw.js";
import { openSeer } from "./see.js";
import { openTranslator } from "./translate.js";
import { openWriter } from "./write.js";

const PAGES = {
  translation: ["Translate", openTranslator],
  language: ["Write", openWriter],
  gan: ["Draw", openDrawer],
  masked: ["Fill", openReader],
  classify: ["Classify", openReader],
  tag: ["Tag", openReader],
  embed: ["Compare", openReader],
  image: ["Name", openSeer],
  detection: ["Find", openSeer],
  speech: ["Transcribe", openListener],
};

function followTheme() {
  const { dataset } = document.documentElement,
    chosen = recall("regard-theme");
  if (chosen === "light" || chosen === "dark") dataset.theme = chosen;
  onTheme(() => {
    if (dataset.theme) remember("regard-theme", isDark() ? "dark" : "light");
  });
}

/* Models whose task has no page: what they are, and that they can be asked. */
function listed(models) {
  const names = models.map((model) => element("li", {}, `${model.id} (${model.task})`));
  return element(
    "section",
    { class: "card", "aria-label": "Models" },
    element("p", {}, "This server is ready. It has no page for what it serves:"),
    element("ul", {}, ...names),
  );
}

function start(root) {
  const alarm = notice();
  let wanted = new URLSearchParams(location.hash.slice(1)).get("task");
  const load = newest(
    async (signal) => {
      const models = (await get("v1/models", signal)).data;
      const tasks = Object.keys(PAGES).filter((task) => models.some((model) => model.task === task));
      const task = tasks.includes(wanted) ? wanted : tasks[0];
      const choose = (other) => {
        wanted = other;
        history.replaceState(null, "", `#${new URLSearchParams({ task: other })}`);
        load(0);
      };
      offer(
        tasks.map((each) => [each, PAGES[each][0]]),
        task,
        choose,
      );
      if (!task)
        return root.replaceChildren(top(""), alarm.node, listed(models), foot("It is asked by its "));
      await PAGES[task][1](
        root,
        signal,
        models.filter((model) => model.task === task),
      );
    },
    { trouble: alarm.show },
  );
  root.replaceChildren(top(""), alarm.node);
  load();
}

followTheme();
start(document.getElementById("regard"));
