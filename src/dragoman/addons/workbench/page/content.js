// The content of a view, requested from the server: facts (JSON values), and figures with their numbers.

import { requestBytes } from "../shared/server.js";

const TYPES = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

/**
 * Request the content of a view. fragment: its state. names: the figures to request; undefined for all.
 *
 * Returns {state, facts, figures}. Each figure has the fields of `Figure.description`; each of its `arrays` has a shape
 * and, as `data`, a typed array. The format is described in workbench/packing.py.
 */
export async function fetchContent(fragment, names, signal) {
  const query = new URLSearchParams((names ?? []).map((name) => ["figure", name]));
  return unpack(await requestBytes(`content?${query}`, fragment, signal));
}

/** Request a figure as a file, which is the same that `dragoman workbench figures` writes. */
export function fetchFile(fragment, figure, format, signal) {
  return requestBytes(`file?${new URLSearchParams({ figure, format })}`, fragment, signal);
}

function unpack(buffer) {
  const start = 4 + new DataView(buffer).getUint32(0, true);
  const content = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, start - 4)));
  for (const { arrays } of Object.values(content.figures)) {
    for (const array of Object.values(arrays)) {
      const size = array.shape.reduce((product, each) => product * each, 1);
      array.data = new TYPES[array.dtype](buffer, start + array.offset, size);
    }
  }
  return content;
}
