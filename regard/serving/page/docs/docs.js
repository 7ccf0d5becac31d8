// The addresses of this server, drawn from its own description (OpenAPI), each to be tried on the spot.
const KEY = "regard-key"; // where the other pages keep a key too

function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* The schema that a reference points to. */
function resolved(schema, spec) {
  const name = schema?.$ref?.split("/").pop();
  return name ? (spec.components?.schemas?.[name] ?? {}) : (schema ?? {});
}

/* What a field takes, in a few words. */
function kindOf(schema, spec) {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map((each) => kindOf(resolved(each, spec), spec)).join(" or ");
  if (schema.type === "array") return `list of ${kindOf(resolved(schema.items, spec), spec)}`;
  return schema.type ?? "anything";
}

/* The fields of what is posted to an address; none where it is got. */
function fieldsOf(operation, spec) {
  const content = operation.requestBody?.content ?? {};
  const kind = Object.keys(content)[0];
  const schema = kind ? resolved(content[kind].schema, spec) : {};
  const needed = new Set(schema.required ?? []);
  const own = { ...spec, components: { schemas: { ...spec.components?.schemas, ...schema.$defs } } };
  return Object.entries(schema.properties ?? {}).map(([name, each]) => ({
    name,
    kind: kindOf(resolved(each, own), own),
    needed: needed.has(name),
    fallback: each.default,
    says: each.description ?? "",
  }));
}

function tableOf(fields) {
  const head = made("tr", {}, ...["field", "takes", "default", ""].map((word) => made("th", {}, word)));
  const rows = fields.map(({ name, kind, needed, fallback, says }) => {
    const usual = needed ? "needed" : fallback === undefined ? "" : JSON.stringify(fallback);
    return made(
      "tr",
      {},
      made("td", {}, made("code", {}, name)),
      ...[kind, usual, says].map((text) => made("td", {}, text)),
    );
  });
  return made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows));
}

/* The words to begin with: the fields that are needed. */
function example(fields) {
  const usual = {
    q: "A dog runs.",
    source: "en",
    target: "de",
    text: "A dog runs.",
    prompt: "Once",
    input: "A dog.",
  };
  const needed = fields.filter((each) => each.needed || each.name === "source");
  return Object.fromEntries(needed.map(({ name }) => [name, usual[name] ?? ""]));
}

function tryOf(path, method, fields) {
  const label = `What to send to ${path}`;
  const asked = method === "post" ? made("textarea", { "aria-label": label, spellcheck: "false" }) : null;
  if (asked) asked.value = JSON.stringify(example(fields), null, 2);
  const button = made("button", { type: "button" }, "Try it");
  const out = made("pre", { "aria-live": "polite", tabindex: "0" });
  button.addEventListener("click", async () => {
    out.textContent = "…";
    out.textContent = await answerOf(path, method, asked?.value);
  });
  return made("div", {}, ...(asked ? [asked] : []), button, out);
}

async function answerOf(path, method, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const key = window.localStorage?.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key.replace(/^"|"$/g, "")}`;
  try {
    const response = await fetch(`..${path}`, { method: method.toUpperCase(), headers, body });
    const text = (await response.text()).slice(0, 20000);
    return `${response.status} ${response.statusText}\n\n${text}`;
  } catch (error) {
    return `The server cannot be reached (${error.message}).`;
  }
}

function entry(path, method, operation, spec) {
  const fields = fieldsOf(operation, spec);
  const title = made(
    "summary",
    {},
    made("span", { class: "method" }, method.toUpperCase()),
    made("code", {}, path),
  );
  const inside = made("div", {}, made("p", {}, operation.description ?? operation.summary ?? ""));
  if (fields.length) inside.append(tableOf(fields));
  if (!path.includes("{") && !operation.requestBody?.content?.["multipart/form-data"]) {
    inside.append(tryOf(path, method, fields));
  }
  return made("details", {}, title, inside);
}

async function draw() {
  const place = document.getElementById("docs");
  try {
    const spec = await (await fetch("../spec")).json();
    for (const [path, methods] of Object.entries(spec.paths)) {
      for (const [method, operation] of Object.entries(methods))
        place.append(entry(path, method, operation, spec));
    }
  } catch {
    place.append(made("p", {}, "The description cannot be had from this server."));
  }
}

draw();
