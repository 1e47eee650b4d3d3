// The atoms of a place: what each is, and spheres or sticks of them.
import * as THREE from "three";
import { facts } from "./data.js";
import { blend } from "./colours.js";
import { Sticks } from "./impostors.js";

const RADII = { H: 1.1, C: 1.7, N: 1.55, O: 1.52, P: 1.8, S: 1.8 }; // angstrom, van der Waals
const JOINT = 0.34;
const ELEMENTS = { N: [0.25, 0.38, 0.85], O: [0.86, 0.24, 0.22], P: [0.93, 0.55, 0.1], S: [0.9, 0.75, 0.15] };
const OTHER = [0.72, 0.52, 0.78];
const CHANGED = [0.9, 0.15, 0.6];

export class AtomModel {
  constructor(number, header, bytes, changedResidue) {
    Object.assign(this, { number, ...header });
    const { atoms, residues } = header;
    this.coordinates = new Int16Array(bytes.buffer, 0, 3 * atoms);
    this.template = new Uint16Array(bytes.buffer, 6 * atoms, residues);
    this.residueNumber = new Int16Array(bytes.buffer, 6 * atoms + 2 * residues, residues);
    this.firstAtom = new Uint32Array(residues + 1);
    this.residueOf = new Uint32Array(atoms);
    this.moleculeOf = new Uint16Array(residues);
    let at = 0;
    for (let r = 0, m = 0; r < residues; r++) {
      const size = this.names(r).length;
      while (m + 1 < this.molecules.length && this.molecules[m + 1].residue <= r) m++;
      this.moleculeOf[r] = m;
      this.firstAtom[r] = at;
      this.residueOf.fill(r, at, at + size);
      at += size;
    }
    this.firstAtom[residues] = at;
    this.changed = Uint8Array.from({ length: residues }, (_, r) => (changedResidue(this, r) ? 1 : 0));
    this.object = null;
  }

  names(r) { return table(this.template[r]).atoms; }
  element(k) { return table(this.template[this.residueOf[k]]).elements[k - this.firstAtom[this.residueOf[k]]]; }
  name(k) { return this.names(this.residueOf[k])[k - this.firstAtom[this.residueOf[k]]]; }
  radius(k) { return this.style === "sticks" ? 2 * JOINT : RADII[this.element(k)] || 1.6; }

  // (atoms, 4) of 0 to 255, the last of no use: by molecule, elements shining through.
  colours(share) {
    const found = new Uint8Array(4 * this.atoms), known = new Map();
    for (let r = 0; r < this.residues; r++) {
      const molecule = this.molecules[this.moleculeOf[r]].name;
      const key = `${molecule} ${this.template[r]} ${this.changed[r]}`;
      if (!known.has(key)) {
        const own = this.changed[r] ? CHANGED : facts.colours.molecules[molecule] || OTHER;
        known.set(key, table(this.template[r]).elements.flatMap((element) => [...tinted(own, element, share), 255]));
      }
      found.set(known.get(key), 4 * this.firstAtom[r]);
    }
    return found;
  }

  bonds() {
    const found = [];
    for (let r = 0; r < this.residues; r++) {
      const { bonds, head, tail } = table(this.template[r]), first = this.firstAtom[r];
      for (const atom of bonds) found.push(first + atom);
      const follows = r + 1 < this.residues && this.moleculeOf[r + 1] === this.moleculeOf[r];
      const next = follows ? table(this.template[r + 1]) : null;
      if (next && tail >= 0 && next.head >= 0) found.push(first + tail, this.firstAtom[r + 1] + next.head);
    }
    return found;
  }

  draw(style, materials) {
    this.style = style;
    this.dispose();
    const tint = this.colours(style === "sticks" ? 0.75 : 0.22);
    const size = new Float32Array(this.atoms);
    for (let k = 0; k < this.atoms; k++) size[k] = style === "sticks" ? JOINT : RADII[this.element(k)] || 1.6;
    const balls = new THREE.BufferGeometry();
    balls.setAttribute("position", new THREE.BufferAttribute(this.coordinates, 3));
    balls.setAttribute("tint", new THREE.BufferAttribute(tint, 4, true));
    balls.setAttribute("size", new THREE.BufferAttribute(size, 1));
    this.object = new THREE.Group();
    this.object.add(new THREE.Points(balls, style === "sticks" ? materials.joints : materials.spheres));
    if (style === "sticks") this.object.add(new THREE.Mesh(this.sticks(tint), materials.sticks));
    this.object.children.forEach((child) => { child.frustumCulled = false; });
    this.object.position.set(...this.centre);
    this.object.scale.setScalar(this.step);
    return this.object;
  }

  sticks(tint) {
    const bonds = this.bonds(), sticks = new Sticks(bonds.length / 2, Int16Array);
    bonds.forEach((atom, k) => {
      sticks.set(k % 2 ? "end" : "begin", k >> 1, this.coordinates.subarray(3 * atom, 3 * atom + 3));
      sticks.set(k % 2 ? "tintEnd" : "tint", k >> 1, tint.subarray(4 * atom, 4 * atom + 3));
    });
    return sticks.geometry;
  }

  dispose() {
    if (!this.object) return;
    this.object.children.forEach((child) => child.geometry.dispose());
    this.object.removeFromParent();
    this.object = null;
  }
}

function tinted(colour, element, share) {
  if (ELEMENTS[element]) colour = blend(colour, ELEMENTS[element], share);
  if (element === "H") colour = blend(colour, [1, 1, 1], share / 2);
  return colour.map((part) => Math.round(255 * part));
}

const tables = [];
function table(k) {
  if (!tables[k]) {
    const entry = facts.atoms.templates[k], atoms = entry.atoms.split(" ");
    const find = (...names) => names.map((name) => atoms.indexOf(name)).find((found) => found >= 0) ?? -1;
    tables[k] = { ...entry, atoms, elements: entry.elements.split(" "),
      head: find("P") >= 0 ? find("P") : find("N"), tail: find("O3'") >= 0 ? find("O3'") : find("C") };
  }
  return tables[k];
}
export const templateName = (model, r) => table(model.template[r]).name;
