// What the page asks of its server. A refusal becomes a `Trouble`: one line for a person, and whether
// waiting helps.
import { forget, recall, remember } from "./memory.js";

const KEY = "regard-key";
const BUSY = { 429: "The server is busy.", 503: "The server is not ready yet." };

export class Trouble extends Error {
  constructor(message, { status = 0, wait = null } = {}) {
    super(message);
    Object.assign(this, { status, wait });
  }
}

export function setKey(key) {
  if (key) remember(KEY, key);
  else forget(KEY);
}

async function send(path, fields, signal) {
  const key = recall(KEY),
    headers = {};
  const form = fields instanceof FormData; // a file is in it: the browser names its type and its edge
  if (fields && !form) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await reached(
    fetch(path, {
      method: fields ? "POST" : "GET",
      headers,
      body: form ? fields : fields ? JSON.stringify(fields) : undefined,
      signal,
    }),
  );
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const wait = response.status in BUSY ? Number(response.headers.get("Retry-After")) || 2 : null;
  throw new Trouble(BUSY[response.status] ?? messageOf(said) ?? `The server answered ${response.status}.`, {
    status: response.status,
    wait,
  });
}

/* What a refusal says, in LibreTranslate's shape or in OpenAI's. */
function messageOf({ error }) {
  const said = error?.message ?? error;
  return said === undefined || said === null ? null : String(said);
}

/* What was on its way, or a Trouble where the way is broken. */
async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The server cannot be reached.", { wait: 3 });
  }
}

export async function get(path, signal) {
  return reached((await send(path, null, signal)).json());
}

export async function post(path, fields, signal) {
  return reached((await send(path, fields, signal)).json());
}

/* A translation as it comes: [name, value] of each event, the last of them ["done", everything]. */
export async function* translation(fields, signal) {
  for await (const block of blocks("translate", fields, signal)) {
    const [name, data] = eventOf(block);
    const tree = JSON.parse(data);
    if (name === "error") throw new Trouble(String(tree.error), { wait: 10 });
    yield [name, tree];
    if (name === "done") return;
  }
}

/* A completion as it comes: a part of its text each. */
export async function* completion(fields, signal) {
  for await (const block of blocks("v1/completions", fields, signal)) {
    const [, data] = eventOf(block);
    if (data === "[DONE]") return;
    const tree = JSON.parse(data);
    if (tree.error) throw new Trouble(messageOf(tree), { wait: 10 });
    yield tree.choices;
  }
}

/* What is said in a recording as it is heard: [text, what else is told of it] of each segment. */
export async function* transcription(form, signal) {
  form.set("stream", "true");
  for await (const block of blocks("v1/audio/transcriptions", form, signal)) {
    const tree = JSON.parse(eventOf(block)[1]);
    if (tree.error) throw new Trouble(messageOf(tree), { wait: null });
    if (tree.type === "transcript.text.done") return;
    yield tree;
  }
}

/* The events of a stream; whoever reads them stops at the last, and no stream may end before. */
async function* blocks(path, fields, signal) {
  const asked = fields instanceof FormData ? fields : { ...fields, stream: true };
  const response = await send(path, asked, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reached(reader.read());
    if (done) throw new Trouble("The answer broke off.", { wait: 3 });
    const whole = (held + value).split("\n\n");
    held = whole.pop();
    yield* whole;
  }
}

function eventOf(block) {
  const lines = block.split("\n");
  const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  return [field("event") ?? "data", field("data")];
}

/* `work(signal)` for the newest wish only: older ones are given up; where waiting helps it is tried again,
   until `stop`. */
export function newest(work, { delay = 0, trouble }) {
  let timer = 0,
    under = null,
    failed = 0;
  function wish(wait = delay) {
    wish.stop();
    timer = setTimeout(run, wait);
  }
  wish.stop = () => {
    clearTimeout(timer);
    under?.abort();
  };
  async function run() {
    const mine = (under = new AbortController());
    try {
      await work(mine.signal);
      failed = 0;
      trouble(null);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (!(error instanceof Trouble)) throw error;
      const wait = error.wait && Math.min(30, error.wait * 2 ** failed++);
      if (wait) timer = setTimeout(run, wait * 1000);
      trouble(error, () => wish(0));
    }
  }
  return wish;
}
