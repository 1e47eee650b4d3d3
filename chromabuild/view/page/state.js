// What is shown and chosen. Parts of the page listen to it and never to each other.
import { nBp, nucleosomeAt, arrays } from "./data.js";

export const state = {
  window: [0, nBp],        // base pairs that the track and the map show
  hover: null,             // {bp, other}: under the pointer, in any of the three views; other: of a pair in the map
  pick: null,              // {bp, first, last, nucleosome}: what was chosen
  colouring: "position",
  loops: true,
  frame: -1,
  atoms: new Set(),        // numbers of the places whose atoms are shown
  atomStyle: "spheres",
  atom: null,              // the atom that was clicked
};

const listeners = [];
export const listen = (keys, call) => listeners.push([new Set(keys.split(" ")), call]);

export function change(values) {
  const changed = Object.keys(values).filter((key) => state[key] !== values[key]);
  Object.assign(state, values);
  for (const [keys, call] of listeners) {
    if (changed.some((key) => keys.has(key))) call(changed);
  }
}

// The narrowest window holds some turns of the helix.
export function showWindow(first, end) {
  const size = Math.min(Math.max(end - first, Math.min(40, nBp)), nBp);
  const from = Math.min(Math.max((first + end - size) / 2, 0), nBp - size);
  change({ window: [from, from + size] });
}

export function zoomWindow(factor, at = (state.window[0] + state.window[1]) / 2) {
  const [a, b] = state.window;
  showWindow(at - (at - a) * factor, at + (b - at) * factor);
}

export function pickPlace(bp) {
  const k = nucleosomeAt(bp);
  if (k >= 0) return { bp, first: arrays.first_bp[k], last: arrays.last_bp[k], nucleosome: k };
  return { bp, first: Math.max(bp - 20, 0), last: Math.min(bp + 20, nBp - 1), nucleosome: -1 };
}

// A call that happens once before the next picture, however often it is asked for.
export function beforePaint(call) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; call(); });
  };
}
