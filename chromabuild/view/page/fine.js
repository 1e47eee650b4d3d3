// The fibre as it is drawn at rest: DNA as a tube, cores as rounded discs, finer around the place that was gone to. It is
// made when it is first needed: where drawing is slow, a coarse picture comes before it.
import * as THREE from "three";
import { arrays, facts, nDrawn, nNucleosomes } from "./data.js";
import { Detail } from "./detail.js";
import { Copies, Tube, discGeometry } from "./geometry.js";

const TRIANGLES = 100000; // of the tube, about
const REACH = 3.5;        // radii of a place within which its surroundings are finer
const sides = Math.min(Math.max(Math.floor(TRIANGLES / (2 * nDrawn)), 5), 12);
const corners = nNucleosomes > 300 ? 14 : 24;
export const fineTriangles = 2 * sides * nDrawn + 12 * corners * nNucleosomes;

export class Fine {
  constructor(material) {
    this.material = material;
    this.group = new THREE.Group();
    this.detail = new Detail(material, facts.sizes.dna);
    this.pending = { move: null, paint: null };
  }

  // `hidden(first, last)`: whether base pairs are shown by their atoms; `focus`: centre and radius of the place.
  move(shown, hidden, focus) { this.pending.move = [shown, hidden, focus]; }
  // Colours of drawn places and of cores, 0 to 255.
  paint(placeColour, coreColour) { this.pending.paint = [placeColour, coreColour]; }

  // Does what is pending, and no more: what is sent to the graphics memory again takes it twice for a while.
  finish() {
    if (!this.tube) this.make();
    const { move, paint } = this.pending;
    this.pending = { move: null, paint: null };
    if (paint) this.colours = paint;
    const moved = move && this.moveNow(...move);
    if (moved || paint) this.paintNow(...this.colours);
    else if (move) this.detail.paint(this.colours[0]);
  }

  make() {
    this.tube = new Tube(nDrawn, sides, facts.sizes.dna);
    this.discs = new Copies(discGeometry(facts.sizes.core, facts.sizes.height, corners), nNucleosomes);
    for (const { geometry } of [this.tube, this.discs]) {
      const mesh = new THREE.Mesh(geometry, [this.material]);
      mesh.frustumCulled = false;
      this.group.add(mesh);
    }
    this.group.add(this.detail.group);
  }

  // Whether the fibre has moved: else only what is hidden, and the place that is finer, are others.
  moveNow(shown, hidden, focus) {
    const moved = shown !== this.shown;
    if (moved) {
      this.shown = shown;
      this.tube.move(shown.drawn);
      this.discs.move((k, at, turn) => {
        at.fromArray(shown.core, 3 * k);
        turn.fromArray(shown.turn, 4 * k).normalize();
      });
    }
    this.discs.show((k) => !hidden(arrays.first_bp[k], arrays.last_bp[k]));
    this.detail.show(focus.centre, REACH * focus.radius, hidden);
    this.tube.show((k) => !hidden(arrays.drawn[k], arrays.drawn[k + 1]) && !this.detail.pieces.has(k));
    return moved;
  }

  paintNow(placeColour, coreColour) {
    this.tube.paint(placeColour);
    this.detail.paint(placeColour);
    this.discs.paint(coreColour);
  }
}
