// The page for recognisers: drop a recording or speak, and the words appear under the sound.
import { element, percent } from "./look/dom.js";
import { drawSpectrogram, mountSound } from "./look/sound.js";
import { onTheme } from "./look/theme.js";
import { newest, post, transcription } from "./api.js";
import { chooserOf, foot, top } from "./frame.js";
import { notice } from "./notice.js";
import { samplesOf, spectrogramOf, waveOf } from "./sound.js";

const LOOKED = 30; // seconds that can be looked into
const SECOND = 90; // pixels of a second of sound
const WIDEST = 30_000; // pixels of all of it

export async function openListener(root, signal, models) {
  new Page(root, models);
}

class Page {
  constructor(root, models) {
    Object.assign(this, { root, models, model: models[0], sound: null, off: {}, recorder: null });
    this.alarm = notice();
    this.name = element("bdi", { class: "model" }, this.model.id);
    this.file = element("input", { type: "file", accept: "audio/*,video/*", "aria-label": "Recording" });
    this.file.addEventListener("change", () => this.take(this.file.files[0]));
    this.speak = element(
      "button",
      { type: "button", class: "primary", onclick: () => this.record() },
      "Record",
    );
    this.canvas = element("canvas", { class: "spectrogram", role: "img", "aria-label": "The sound" });
    this.words = element("div", { class: "sound-words" });
    this.strip = element(
      "div",
      { class: "sound-strip", tabindex: "0", role: "group", "aria-label": "Sound and words" },
      this.canvas,
      this.words,
    );
    this.strip.hidden = true;
    this.said = element("p", { class: "said-text", dir: "auto", "aria-live": "polite" });
    this.inside = element("div", { class: "sound-look" });
    const trouble = (error) => this.alarm.show(error, () => this.hear(0));
    this.hear = newest((stop) => this.transcribe(stop), { trouble });
    onTheme(() => this.sound && drawSpectrogram(this.canvas, this.sound.picture));
    this.layOut();
  }

  layOut() {
    const changed = () => {
      this.off = {};
      this.hear(0);
    };
    const desk = element(
      "section",
      { class: "card seeing", "aria-label": "Recording" },
      element(
        "div",
        { class: "tools" },
        this.speak,
        this.file,
        this.models.length > 1 && chooserOf(this, changed),
      ),
      element("p", { class: "hint" }, "Choose a recording, drop one here, or speak."),
      this.strip,
      this.said,
    );
    desk.addEventListener("dragover", (event) => event.preventDefault());
    desk.addEventListener("drop", (event) => {
      event.preventDefault();
      this.take(event.dataTransfer.files[0]);
    });
    this.root.replaceChildren(
      top(this.name),
      this.alarm.node,
      desk,
      this.inside,
      foot("It is asked by its "),
    );
  }

  async record() {
    if (this.recorder) return this.recorder.stop();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      return this.alarm.show({ message: "This browser gives no microphone to the page.", wait: null });
    }
    const parts = [];
    this.recorder = new MediaRecorder(stream);
    this.recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    this.recorder.addEventListener("stop", () => {
      stream.getTracks().forEach((track) => track.stop());
      this.recorder = null;
      this.speak.textContent = "Record";
      this.take(new File(parts, "the recording"));
    });
    this.recorder.start();
    this.speak.textContent = "Stop";
  }

  async take(file) {
    if (!file) return;
    this.hear.stop();
    let sound;
    try {
      sound = await samplesOf(file, this.model.rate);
    } catch {
      return this.alarm.show({ message: `${file.name} is no sound that this browser can read.`, wait: null });
    }
    if (sound.seconds > this.model.seconds)
      return this.alarm.show({
        message: `${file.name} is longer than ${this.model.seconds} seconds.`,
        wait: null,
      });
    this.sound = { ...sound, picture: spectrogramOf(sound), wave: waveOf(sound) };
    this.off = {};
    this.hear(0);
  }

  /* The sound as it is, then its words as they are heard, then where each was listened to. */
  async transcribe(stop) {
    if (!this.sound) return;
    this.clear();
    const fields = { response_format: "verbose_json", "timestamp_granularities[]": "word" };
    const texts = [];
    for await (const { delta, words } of transcription(this.form(fields), stop)) {
      texts.push(delta);
      this.said.textContent = texts.join("");
      words.forEach((word) => this.place(word));
    }
    this.said.classList.toggle("empty", !texts.length);
    if (!texts.length) this.said.textContent = "Nothing was said.";
    this.alarm.show(null);
    if (texts.length && this.sound.seconds <= LOOKED) await this.look(stop);
  }

  async look(stop) {
    const tree = await post("attention", this.form({}), stop);
    mountSound(this.inside, tree, (name, head) => {
      const heads = new Set(this.off[name] ?? []);
      if (!heads.delete(head)) heads.add(head);
      this.off[name] = [...heads];
      this.hear(0);
    });
  }

  form(fields) {
    const form = new FormData();
    const all = { model: this.model.id, heads_off: JSON.stringify(this.off), ...fields };
    for (const [name, value] of Object.entries(all)) form.set(name, value);
    form.set("file", this.sound.wave, "recording.wav");
    return form;
  }

  clear() {
    const { seconds, picture } = this.sound;
    const wide = Math.round(Math.min(WIDEST, Math.max(600, seconds * SECOND)));
    this.strip.hidden = false;
    this.canvas.width = wide;
    this.canvas.height = 180;
    this.canvas.style.setProperty("width", `${wide}px`);
    this.words.style.setProperty("width", `${wide}px`);
    drawSpectrogram(this.canvas, picture);
    this.words.replaceChildren();
    this.said.textContent = "";
    this.inside.replaceChildren();
    this.lines = []; // where each line of words ends
  }

  /* A word under the moment it was said, in the first line that is free there. */
  place({ word, start, end, probability }) {
    const share = (seconds) => (seconds / this.sound.seconds) * this.words.clientWidth;
    const title = `${start.toFixed(2)} to ${end.toFixed(2)} s, ${percent(probability)} sure`;
    const node = element("bdi", { class: "sound-word", title }, word);
    this.words.append(node);
    const left = share(start);
    let line = this.lines.findIndex((until) => until <= left);
    if (line < 0) line = this.lines.push(0) - 1;
    this.lines[line] = left + node.offsetWidth + 6;
    node.style.setProperty("left", `${left}px`);
    node.style.setProperty("top", `${line * 30}px`);
    this.words.style.setProperty("height", `${this.lines.length * 30}px`);
  }
}
