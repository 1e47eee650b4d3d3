// What the page holds from the start, decoded once: `facts` (JSON), typed arrays, and a few ways to ask them.
export const facts = JSON.parse(document.getElementById("facts").textContent);

export function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}

const KINDS = { int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint8: Uint8Array, float32: Float32Array };

function decode(table, bytes) {
  const found = {};
  for (const [name, entry] of Object.entries(table)) {
    const count = entry.shape.reduce((product, size) => product * size, 1);
    found[name] = new KINDS[entry.type](bytes.buffer, entry.at, count);
  }
  return found;
}

export const arrays = decode(facts.arrays, bytesOf(document.getElementById("data").textContent));
for (const id of ["facts", "data"]) document.getElementById(id).remove();

export const nBp = arrays.base.length;
export const nNucleosomes = arrays.dyad.length;
export const nFrames = facts.frames.length;
export const nDrawn = arrays.drawn.length;
const SCALE = 1 / 32767;

// Coordinates in angstrom from the middle of the locus.
// A loop, since `from` makes a list of all numbers first.
function times(whole, unit) {
  const found = new Float32Array(whole.length);
  for (let k = 0; k < whole.length; k++) found[k] = whole[k] * unit;
  return found;
}
const toAngstrom = (whole) => times(whole, facts.step);
export const path = toAngstrom(arrays.path);
export const place = (bp) => {
  const k = 3 * Math.min(Math.max(Math.round(bp), 0), nBp - 1);
  return [path[k], path[k + 1], path[k + 2]];
};

// Drawn DNA runs through the mean of some neighbours: base pairs sway around the axis of the helix.
const SWAY = Math.floor(4 / (nDrawn > 1 ? arrays.drawn[1] - arrays.drawn[0] : 1));
function smooth(points) {
  if (!SWAY) return points;
  const found = new Float32Array(points.length);
  for (let k = 0; k < nDrawn; k++) {
    const reach = Math.min(SWAY, k, nDrawn - 1 - k);
    for (let axis = 0; axis < 3; axis++) {
      let sum = 0;
      for (let j = k - reach; j <= k + reach; j++) sum += points[3 * j + axis];
      found[3 * k + axis] = sum / (2 * reach + 1);
    }
  }
  return found;
}

// The drawn path and the cores of a frame of the dynamics; frame -1 is the fibre as it was built.
export function conformation(frame) {
  const m = nNucleosomes;
  if (frame < 0) {
    const drawn = new Float32Array(3 * nDrawn);
    for (let k = 0; k < nDrawn; k++) {
      for (let axis = 0; axis < 3; axis++) drawn[3 * k + axis] = path[3 * arrays.drawn[k] + axis];
    }
    return { drawn: smooth(drawn), core: toAngstrom(arrays.core), turn: times(arrays.core_turn, SCALE) };
  }
  const part = (array, size) => array.subarray(frame * size, (frame + 1) * size);
  return {
    drawn: smooth(toAngstrom(part(arrays.frame_path, 3 * nDrawn))),
    core: toAngstrom(part(arrays.frame_core, 3 * m)),
    turn: times(part(arrays.frame_core_turn, 4 * m), SCALE),
  };
}

// The nucleosome whose wrapped DNA holds a base pair, or -1.
export function nucleosomeAt(bp) {
  let low = 0, high = nNucleosomes - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (bp < arrays.first_bp[middle]) high = middle - 1;
    else if (bp > arrays.last_bp[middle]) low = middle + 1;
    else return middle;
  }
  return -1;
}

export const base = (bp) => String.fromCharCode(arrays.base[bp]);
const PARTNER = { A: "T", C: "G", G: "C", T: "A" };
export const partner = (letter) => PARTNER[letter] || "N";
export const markOf = (k) => (arrays.mark[k] === 255 ? -1 : arrays.mark[k]);

// Positions as genome browsers write them: counted from 1, with commas.
export const number = (value) => Math.round(value).toLocaleString("en-US");
export const position = (bp) => placed(facts.start + bp + 1);
// Of a circle that is drawn from within, what lies beyond its last base pair is counted from the first.
export const placed = (at) => number(facts.first + 1 + (at - facts.first - 1) % nBp);
export const region = (first, last) => `${facts.chromosome}:${position(first)}-${position(last)}`;
