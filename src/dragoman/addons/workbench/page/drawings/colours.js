// The colours of heat maps, which are those of the current theme.

const STOPS = 5;
const STEPS = 256;

/** Return the colours of a scale as a Uint32Array of 256 pixels. isSigned: whether the scale has negative values. */
export function scale(isSigned = false) {
  const style = getComputedStyle(document.documentElement);
  const name = isSigned ? "signed" : "shade";
  const stops = Array.from({ length: STOPS }, (_, index) => parseHex(style.getPropertyValue(`--${name}-${index}`).trim()));
  const pixels = new Uint8ClampedArray(4 * STEPS);
  for (let step = 0; step < STEPS; step += 1) {
    const place = (step / (STEPS - 1)) * (STOPS - 1);
    const index = Math.min(Math.floor(place), STOPS - 2);
    for (let channel = 0; channel < 3; channel += 1) {
      const [from, to] = [stops[index][channel], stops[index + 1][channel]];
      pixels[4 * step + channel] = Math.round(from + (to - from) * (place - index));
    }
    pixels[4 * step + 3] = 255;
  }
  return new Uint32Array(pixels.buffer);
}

/** Paint a matrix on a canvas, one pixel per cell. values: (rows · columns). limit: the value at the end of the scale. */
export function paint(canvas, values, rows, columns, limit, colours, isSigned = false) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const factor = (isSigned ? (STEPS - 1) / 2 : STEPS - 1) / limit;
  const zero = isSigned ? (STEPS - 1) / 2 : 0;
  for (let index = 0; index < values.length; index += 1) {
    pixels[index] = colours[Math.max(0, Math.min(STEPS - 1, Math.round(zero + values[index] * factor)))];
  }
  context.putImageData(image, 0, 0);
}

/** Call a function when the theme changes. Returns a function that ends this. */
export function onThemeChange(call) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", call);
  return () => query.removeEventListener("change", call);
}

function parseHex(colour) {
  return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));
}
