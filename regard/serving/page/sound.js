// Sound in the browser: any file it can read as samples, a spectrogram of them, and a WAV to be sent.

const ROWS = 96; // bands of the spectrogram
const MOST = 4000; // columns of it
const RANGE = 6; // powers of ten from the darkest shade to the brightest
const LEAST_RATE = 8000; // that browsers resample to

/* The samples of a file or a recording, one channel, at about `rate` a second. */
export async function samplesOf(file, rate) {
  const context = new OfflineAudioContext(1, 1, Math.max(LEAST_RATE, rate));
  const sound = await context.decodeAudioData(await file.arrayBuffer());
  const samples = new Float32Array(sound.length);
  for (let channel = 0; channel < sound.numberOfChannels; channel++) {
    const part = sound.getChannelData(channel);
    for (let i = 0; i < samples.length; i++) samples[i] += part[i] / sound.numberOfChannels;
  }
  return { samples, rate: sound.sampleRate, seconds: sound.duration };
}

/* A WAV of 16 bits. */
export function waveOf({ samples, rate }) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const text = (at, word) => [...word].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((sample, i) => {
    view.setInt16(44 + 2 * i, Math.round(32767 * Math.max(-1, Math.min(1, sample))), true);
  });
  return new Blob([view], { type: "audio/wav" });
}

/* The powers of short stretches as a picture: width, height and bytes, low bands first. */
export function spectrogramOf({ samples, rate }) {
  const size = rate > 12000 ? 512 : 256;
  const width = Math.max(1, Math.min(MOST, Math.floor(samples.length / (rate / 100))));
  const powers = new Float32Array(width * ROWS);
  const window = Float32Array.from(
    { length: size },
    (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size),
  );
  for (let x = 0; x < width; x++) {
    const first = Math.round((x * samples.length) / width - size / 2);
    const real = Float32Array.from(window, (weight, i) => weight * (samples[first + i] ?? 0));
    const spectrum = transformed(real);
    for (let y = 0; y < ROWS; y++)
      powers[y * width + x] = Math.log10(spectrum[Math.floor((y * size) / 2 / ROWS)] + 1e-10);
  }
  const loudest = powers.reduce((most, power) => Math.max(most, power), -10);
  const bytes = Uint8Array.from(powers, (power) =>
    Math.round(255 * Math.max(0, 1 + (power - loudest) / RANGE)),
  );
  return { width, height: ROWS, bytes };
}

/* |FFT|² of as many numbers as a power of two. */
function transformed(real) {
  const size = real.length,
    imaginary = new Float32Array(size);
  for (let i = 1, j = 0; i < size; i++) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [real[i], real[j]] = [real[j], real[i]];
  }
  for (let half = 1; half < size; half *= 2)
    for (let k = 0; k < half; k++) {
      const [c, s] = [Math.cos((Math.PI * k) / half), -Math.sin((Math.PI * k) / half)];
      for (let i = k; i < size; i += 2 * half) {
        const j = i + half;
        const re = real[j] * c - imaginary[j] * s,
          im = real[j] * s + imaginary[j] * c;
        [real[j], imaginary[j]] = [real[i] - re, imaginary[i] - im];
        [real[i], imaginary[i]] = [real[i] + re, imaginary[i] + im];
      }
    }
  return real.map((part, i) => part * part + imaginary[i] * imaginary[i]);
}
