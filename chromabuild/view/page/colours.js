// Colours of the fibre, of marks and of features; those of the page itself follow its appearance.
import { arrays, facts, markOf, nNucleosomes } from "./data.js";

const FIBRE = facts.colours.fibre;
export const LINKER = [0.62, 0.65, 0.69];
const PLAIN = [0.52, 0.6, 0.7];
// Distinguishable without red-green vision (after Okabe and Ito 2008), lighter than their originals.
const KINDS = [[0.9, 0.45, 0.13], [0.16, 0.58, 0.81], [0.2, 0.66, 0.45], [0.8, 0.47, 0.65], [0.93, 0.72, 0.2],
  [0.36, 0.4, 0.75], [0.6, 0.35, 0.28], [0.35, 0.72, 0.72]];

export const kindColour = (k) => KINDS[k % KINDS.length];
export const css = (colour, alpha = 1) =>
  `rgba(${colour.map((part) => Math.round(255 * part)).join(",")},${alpha})`;
export const blend = (one, other, share) => one.map((part, k) => part * (1 - share) + other[k] * share);

function fibreColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (FIBRE.length - 1);
  const k = Math.min(Math.floor(at), FIBRE.length - 2);
  return blend(FIBRE[k], FIBRE[k + 1], at - k);
}

const nucleosomeShare = (k) => k / Math.max(nNucleosomes - 1, 1);

// What a colouring can be: key, words, and whether it has a legend of kinds.
export function colourings() {
  const found = [["position", "place along the sequence"]];
  if (facts.marks.length) found.push(["marks", "histones and marks"]);
  facts.tracks.forEach((track, k) => found.push([`track:${k}`, track.name]));
  found.push(["plain", "one colour"]);
  return found;
}

const STRAND = { "+": 0, "-": 1, ".": 2 };
export const featureColour = (strand) => KINDS[STRAND[strand]];

export function nucleosomeColour(k, colouring) {
  if (colouring === "marks") return markOf(k) < 0 ? LINKER : kindColour(markOf(k));
  if (colouring.startsWith("track:")) return featureAt(arrays.dyad[k], colouring) || LINKER;
  return colouring === "plain" ? PLAIN : fibreColour(nucleosomeShare(k));
}

function featureAt(bp, colouring) {
  const at = facts.start + bp;
  const found = facts.tracks[Number(colouring.slice(6))].features.filter(([first, end]) => first <= at && at < end);
  if (!found.length) return undefined;
  return featureColour(found.sort((one, other) => (one[1] - one[0]) - (other[1] - other[0]))[0][3]); // the shortest
}

// Colour of a base pair's DNA; `nucleosome` is the one that it is wrapped on, or -1.
export function dnaColour(bp, nucleosome, colouring) {
  if (colouring.startsWith("track:")) return featureAt(bp, colouring) || LINKER;
  return nucleosome < 0 ? LINKER : nucleosomeColour(nucleosome, colouring);
}

export function legend(colouring) {
  if (colouring === "marks") {
    const kinds = facts.marks.map((label, k) => [label, css(kindColour(k))]);
    return [...kinds, ["none of them", css(LINKER)]];
  }
  if (colouring.startsWith("track:")) {
    const strands = new Set(facts.tracks[Number(colouring.slice(6))].features.map((feature) => feature[3]));
    const words = { "+": "forward strand", "-": "reverse strand", ".": "feature" };
    return [...Object.keys(words).filter((strand) => strands.has(strand))
      .map((strand) => [words[strand], css(featureColour(strand))]), ["no feature", css(LINKER)]];
  }
  return [];
}

// Colours of the page, as its style sheet gives them now.
export function pageColours() {
  const style = getComputedStyle(document.documentElement);
  const one = (name) => style.getPropertyValue(name).trim();
  return { ink: one("--ink"), soft: one("--soft"), line: one("--line"), paper: one("--paper"), card: one("--card"),
    accent: one("--accent"), stage: one("--stage"), pick: one("--pick") };
}

export function rgb(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);
}
