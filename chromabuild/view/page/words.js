// Sentences about what is under the pointer or chosen.
import { arrays, base, facts, markOf, nucleosomeAt, number, partner, place, position, region } from "./data.js";
import { templateName } from "./atom_models.js";
import { changeOf } from "./atoms.js";
import { state } from "./state.js";

export const NEAR = 300; // angstrom: contacts of the model

export function distance(one, other) {
  const a = place(one), b = place(other);
  return Math.hypot(...a.map((value, k) => value - b[k]));
}

const where = (bp) => `${facts.chromosome}:${position(bp)}`;
const pairOf = (bp) => `${base(bp)}·${partner(base(bp))}`;

function features(bp) {
  const at = facts.start + bp;
  return facts.tracks.flatMap((track) => track.features
    .filter(([first, end]) => first <= at && at < end)
    .map(([, , name, strand]) => `${name || "feature"} (${track.name}${strand === "." ? "" : `, ${strand}`})`));
}

export function sentence(bp) {
  const k = nucleosomeAt(bp), parts = [`${where(bp)}, ${pairOf(bp)}`];
  if (k >= 0) {
    const from = bp - arrays.dyad[k];
    parts.push(`nucleosome ${number(k + 1)}, ${from === 0 ? "at its dyad" : `${from > 0 ? "+" : "−"}${Math.abs(from)} from its dyad`}`);
    if (markOf(k) >= 0) parts.push(facts.marks[markOf(k)]);
  } else {
    parts.push("linker");
  }
  return [...parts, ...features(bp)].join("; ");
}

export function pairSentence(one, other) {
  return `${where(one)} and ${where(other)}: ${Math.abs(one - other).toLocaleString("en-US")} bp along the sequence, `
    + `${(distance(one, other) / 10).toFixed(1)} nm apart in the model`;
}

function nucleosomeFacts(k) {
  const found = [["wrapped DNA", region(arrays.first_bp[k], arrays.last_bp[k])], ["dyad", where(arrays.dyad[k])]];
  const moved = arrays.dyad[k] - arrays.mapped[k];
  if (moved) found.push(["moved from its mapped place", `${moved > 0 ? "+" : "−"}${Math.abs(moved)} bp`]);
  found.push(["carries", markOf(k) < 0 ? "no variant or mark" : facts.marks[markOf(k)]]);
  const near = features(arrays.dyad[k]);
  if (near.length) found.push(["features at the dyad", near.join(", ")]);
  return found;
}

export function pickFacts() {
  const pick = state.pick;
  if (pick.nucleosome >= 0) return [`Nucleosome ${number(pick.nucleosome + 1)}`, nucleosomeFacts(pick.nucleosome)];
  const found = [["base pairs", number(pick.last - pick.first + 1)]];
  const inside = arrays.dyad.reduce((sum, dyad) => sum + (dyad >= pick.first && dyad <= pick.last), 0);
  found.push(["dyads", number(inside)], ["at its middle", sentence(Math.round((pick.first + pick.last) / 2))]);
  return [region(pick.first, pick.last), found];
}

const ACIDS = { ALA: "alanine", ARG: "arginine", ASN: "asparagine", ASP: "aspartate", CYS: "cysteine",
  GLN: "glutamine", GLU: "glutamate", GLY: "glycine", HIS: "histidine", ILE: "isoleucine", LEU: "leucine",
  LYS: "lysine", MET: "methionine", PHE: "phenylalanine", PRO: "proline", SER: "serine", THR: "threonine",
  TRP: "tryptophan", TYR: "tyrosine", VAL: "valine" };
const BASES = { A: "adenine", C: "cytosine", G: "guanine", T: "thymine" };
const STAND_IN = { KQ: "acetylated lysine", SE: "phosphoserine", TE: "phosphothreonine", YE: "phosphotyrosine" };

// Base pair of a nucleotide of a model, or -1.
export function bpOfAtom({ model, index }) {
  const r = model.residueOf[index], molecule = model.molecules[model.moleculeOf[r]];
  return molecule.strand ? molecule.bp + molecule.strand * (r - molecule.residue) : -1;
}

export function atomFacts(atom) {
  const { model, index } = atom, r = model.residueOf[index], molecule = model.molecules[model.moleculeOf[r]];
  const name = templateName(model, r), bp = bpOfAtom(atom), nucleosome = facts.atoms.places[model.number][2];
  const found = [];
  if (bp >= 0) {
    found.push(["base", `${BASES[name.slice(-1)] || name} of ${where(bp)}, pair ${pairOf(bp)}, strand ${molecule.name.slice(4)}`]);
  } else {
    found.push(["residue", `${ACIDS[name] || name} ${model.residueNumber[r]} of ${molecule.name}`]);
    const change = changeOf(model, r);
    if (change) {
      const parts = /:([A-Z])\d+([A-Z])$/.exec(change), stands = STAND_IN[parts[1] + parts[2]];
      found.push(["modification", stands ? `${change}, in place of ${stands}` : change]);
    } else if (molecule.family) {
      found.push(["modification", "none"]);
    }
  }
  if (nucleosome >= 0) found.push(["nucleosome", number(nucleosome + 1)]);
  found.push(["chain", `${molecule.chain}, segment ${molecule.segment}, residue ${model.residueNumber[r]}`]);
  return [`Atom ${model.name(index)}`, found];
}
