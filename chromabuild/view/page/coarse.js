// The fibre while it moves, where fine shapes are too slow: a drum for each nucleosome, sticks for linkers.
import * as THREE from "three";
import { arrays, facts, nDrawn, nNucleosomes, nucleosomeAt } from "./data.js";
import { Sticks, impostorMaterial } from "./impostors.js";

const REACH = 57;   // angstrom: radius of a ball around a nucleosome
const LONGEST = 25; // base pairs of a piece of linker

export function createCoarse(uniforms) {
  const { dna, core } = facts.sizes, outer = core + 2 * dna + 1;
  const bytes = (size) => new Uint8Array(3 * size);
  const beads = new THREE.BufferGeometry();
  for (const [name, array] of [["position", new Float32Array(3 * nNucleosomes)],
    ["axis", new Float32Array(3 * nNucleosomes)], ["tint", bytes(nNucleosomes)], ["inner", bytes(nNucleosomes)]]) {
    beads.setAttribute(name, new THREE.BufferAttribute(array, 3, array instanceof Uint8Array));
  }
  // Pieces of some turns of the helix, of DNA that is not wrapped, or leads to DNA that is.
  const owner = Int32Array.from(arrays.drawn, nucleosomeAt), pieces = [];
  for (let k = 0; k + 1 < nDrawn; k++) {
    if (owner[k] >= 0 && owner[k] === owner[k + 1]) continue;
    let end = k + 1;
    while (end + 1 < nDrawn && owner[end] < 0 && arrays.drawn[end + 1] - arrays.drawn[k] <= LONGEST) end++;
    pieces.push([k, end]);
    k = end - 1;
  }
  const linkers = new Sticks(pieces.length, Float32Array);
  const group = new THREE.Group();
  group.add(
    new THREE.Points(beads, impostorMaterial("bead", uniforms, { reach: REACH, outer, dna, halfHeight: core * 0.74 })),
    new THREE.Mesh(linkers.geometry, impostorMaterial("stick", uniforms, { radius: dna })));
  group.children.forEach((child) => { child.frustumCulled = false; });

  const changed = () => {
    Object.values(beads.attributes).forEach((attribute) => { attribute.needsUpdate = true; });
    linkers.changed();
  };
  // From front to back: what lies behind is then left out.
  const order = Uint32Array.from({ length: nNucleosomes }, (_, k) => k);
  const far = new Float32Array(nNucleosomes);
  beads.setIndex(new THREE.BufferAttribute(order, 1));
  return {
    group,
    sort(camera) {
      const [x, y, z] = camera.matrixWorld.elements.slice(8, 11), { array } = beads.attributes.position;
      for (let k = 0; k < nNucleosomes; k++) far[k] = x * array[3 * k] + y * array[3 * k + 1] + z * array[3 * k + 2];
      order.sort((a, b) => far[b] - far[a]);
      beads.index.needsUpdate = true;
    },
    // `hidden(first, last)`: whether base pairs are shown by their atoms.
    move(shown, hidden) {
      beads.attributes.position.array.set(shown.core);
      const axis = new THREE.Vector3(), turn = new THREE.Quaternion();
      for (let k = 0; k < nNucleosomes; k++) {
        axis.set(0, 0, hidden(arrays.first_bp[k], arrays.last_bp[k]) ? 0 : 1);
        axis.applyQuaternion(turn.fromArray(shown.turn, 4 * k)).toArray(beads.attributes.axis.array, 3 * k);
      }
      pieces.forEach(([a, b], k) => {
        const from = shown.drawn.subarray(3 * a, 3 * a + 3), to = shown.drawn.subarray(3 * b, 3 * b + 3);
        linkers.set("begin", k, from);
        linkers.set("end", k, hidden(arrays.drawn[a], arrays.drawn[b]) ? from : to);
      });
      changed();
    },
    // Colours of drawn places and of cores, 0 to 255.
    paint(placeColour, coreColour) {
      for (let k = 0; k < nNucleosomes; k++) {
        const middle = Math.min(Math.round(arrays.dyad[k] / (arrays.drawn[1] - arrays.drawn[0])), nDrawn - 1);
        beads.attributes.tint.array.set(placeColour(middle), 3 * k);
        beads.attributes.inner.array.set(coreColour(k), 3 * k);
      }
      pieces.forEach(([a, b], k) => {
        linkers.set("tint", k, placeColour(a));
        linkers.set("tintEnd", k, placeColour(b));
      });
      changed();
    },
  };
}
