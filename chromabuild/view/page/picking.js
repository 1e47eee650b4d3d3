// What lies under the pointer: the nearest of the cores, of the DNA or of the atoms whose picture covers it.
import * as THREE from "three";
import { arrays, facts, nDrawn, nNucleosomes, place } from "./data.js";
import { state } from "./state.js";

const REACH = 5; // pixels around DNA that count as its picture

// Calls `test(x, y, depth, pixels an angstrom)` for points (3 n) times `step` from `centre`; x and y in CSS pixels.
function project(view, points, count, test, step = 1, centre = [0, 0, 0]) {
  const { camera, canvas } = view;
  const matrix = new THREE.Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse).elements;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const scale = height / (2 * Math.tan(Math.PI * camera.fov / 360));
  for (let k = 0; k < count; k++) {
    const x = points[3 * k] * step + centre[0], y = points[3 * k + 1] * step + centre[1];
    const z = points[3 * k + 2] * step + centre[2];
    const w = matrix[3] * x + matrix[7] * y + matrix[11] * z + matrix[15];
    if (w <= camera.near) continue;
    const px = (matrix[0] * x + matrix[4] * y + matrix[8] * z + matrix[12]) / w;
    const py = (matrix[1] * x + matrix[5] * y + matrix[9] * z + matrix[13]) / w;
    test(k, (0.5 + px / 2) * width, (0.5 - py / 2) * height, w, scale / w);
  }
}

export function onScreen(view, bp) {
  let found = null;
  const shown = view.bodies();
  if (state.frame < 0) {
    project(view, place(bp), 1, (_, x, y, depth, scale) => { found = { x, y, scale }; });
  } else {
    const k = Math.round((nDrawn - 1) * bp / arrays.drawn[nDrawn - 1]);
    project(view, shown.drawn.subarray(3 * k, 3 * k + 3), 1, (_, x, y, depth, scale) => { found = { x, y, scale }; });
  }
  return found;
}

// {bp, nucleosome} or {atom: {place, index}} or null.
export function pickAt(view, x, y, models) {
  const shown = view.bodies();
  const hidden = state.frame < 0 ? [...state.atoms].map((number) => facts.atoms.places[number]) : [];
  let best = null, nearest = Infinity;
  const offer = (depth, found) => { if (depth < nearest) { nearest = depth; best = found; } };
  const { core, dna } = facts.sizes;
  project(view, shown.core, nNucleosomes, (k, px, py, depth, scale) => {
    if (Math.hypot(px - x, py - y) < core * scale && !hidden.some((part) => part[2] === k)) {
      offer(depth - 0.6 * core, { bp: arrays.dyad[k], nucleosome: k });
    }
  });
  project(view, shown.drawn, nDrawn, (k, px, py, depth, scale) => {
    const bp = arrays.drawn[k];
    if (Math.hypot(px - x, py - y) < Math.max(dna * scale, REACH) && !hidden.some(([a, b]) => bp >= a && bp <= b)) {
      offer(depth - dna, { bp, nucleosome: -1 });
    }
  });
  for (const model of models) {
    project(view, model.coordinates, model.atoms, (k, px, py, depth, scale) => {
      const radius = model.radius(k);
      if (Math.hypot(px - x, py - y) < radius * scale) offer(depth - radius, { atom: { model, index: k } });
    }, model.step, model.centre);
  }
  return best;
}
