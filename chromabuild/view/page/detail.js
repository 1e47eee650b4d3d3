// DNA around the place that was gone to, drawn through every base pair in place of the coarser path of the whole locus.
import * as THREE from "three";
import { arrays, nBp, nDrawn, path } from "./data.js";
import { Tube } from "./geometry.js";

const SIDES = 14, SWAY = 4; // base pairs to each side over which the path is averaged
const MOST = 3000;          // base pairs

export class Detail {
  constructor(material, radius) {
    this.material = material;
    this.radius = radius;
    this.group = new THREE.Group();
    this.runs = [];          // [first base pair, tube]
    this.pieces = new Set(); // of the drawn path, which this stands for
  }

  // Around a point, as far as `reach` (angstrom), but for what is hidden, the nearest MOST base pairs at most; nothing where reach is 0.
  show(centre, reach, hidden) {
    this.group.children.forEach((tube) => tube.geometry.dispose());
    this.group.clear();
    this.pieces.clear();
    this.runs = [];
    if (!reach || arrays.drawn[1] === 1) return;
    const spacing = arrays.drawn[1] - arrays.drawn[0], away = new Float32Array(nDrawn - 1);
    for (let k = 0; k + 1 < nDrawn; k++) {
      const at = 3 * arrays.drawn[k];
      away[k] = Math.hypot(path[at] - centre[0], path[at + 1] - centre[1], path[at + 2] - centre[2]);
    }
    const limit = Math.min(reach, away.slice().sort()[Math.floor(MOST / spacing)] ?? reach), near = [];
    away.forEach((far, k) => {
      if (far < limit && !hidden(arrays.drawn[k], arrays.drawn[k + 1])) near.push(k);
    });
    this.pieces = new Set(near);
    for (let from = 0, k = 0; k < near.length; k++) {
      if (k + 1 < near.length && near[k + 1] === near[k] + 1) continue;
      this.add(arrays.drawn[near[from]], arrays.drawn[near[k] + 1]);
      from = k + 1;
    }
  }

  add(first, last) {
    const points = new Float32Array(3 * (last - first + 1));
    for (let bp = first; bp <= last; bp++) {
      const reach = Math.min(SWAY, bp, nBp - 1 - bp);
      for (let other = bp - reach; other <= bp + reach; other++) {
        for (let axis = 0; axis < 3; axis++) points[3 * (bp - first) + axis] += path[3 * other + axis] / (2 * reach + 1);
      }
    }
    const tube = new Tube(last - first + 1, SIDES, this.radius);
    tube.move(points);
    this.runs.push([first, tube]);
    const mesh = new THREE.Mesh(tube.geometry, [this.material]);
    mesh.frustumCulled = false;
    this.group.add(mesh);
  }

  // `placeColour(k)`: of the drawn path.
  paint(placeColour) {
    const spacing = arrays.drawn[1] - arrays.drawn[0];
    for (const [first, tube] of this.runs) {
      tube.paint((k) => placeColour(Math.min(Math.round((first + k) / spacing), nDrawn - 1)));
    }
  }
}
