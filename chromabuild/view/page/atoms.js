// Loads the atoms of places - scripts in the folder `atoms`, which call chromabuildAtoms - and keeps the latest.
import { arrays, bytesOf, facts, nBp } from "./data.js";
import { AtomModel } from "./atom_models.js";
import { impostorMaterial } from "./impostors.js";
import { change, listen, state } from "./state.js";

const MOST_PLACES = 24;
const STICK = 0.22; // angstrom, radius of a bond

const CHANGE = /^(\w+):[A-Z](\d+)[A-Z]$/;

// The mutation or stand-in of a modification that a residue is, such as H3:K56Q, or undefined.
export function changeOf(model, r) {
  const molecule = model.molecules[model.moleculeOf[r]];
  const nucleosome = facts.atoms.places[model.number][2];
  if (nucleosome < 0 || !molecule.family || arrays.mark[nucleosome] === 255) return undefined;
  return facts.marks[arrays.mark[nucleosome]].split(", ").find((mark) => {
    const found = CHANGE.exec(mark);
    return found && found[1] === molecule.family && Number(found[2]) === model.residueNumber[r];
  });
}

export function createAtoms(view) {
  const balls = impostorMaterial("sphere", view.uniforms);
  const materials = { spheres: balls, joints: balls, sticks: impostorMaterial("stick", view.uniforms, { radius: STICK }) };
  const models = new Map(), loading = new Map();

  window.chromabuildAtoms = (number, header, base64) => {
    if (header.key === facts.atoms.key) {
      loading.get(number)?.resolve(new AtomModel(number, header, bytesOf(base64), changeOf));
    } else {
      loading.get(number)?.reject(new Error("These atoms are of another build: write the page again."));
    }
  };

  function load(number) {
    if (models.has(number)) return Promise.resolve(models.get(number));
    if (loading.has(number)) return loading.get(number).promise;
    const entry = {};
    entry.promise = new Promise((resolve, reject) => { Object.assign(entry, { resolve, reject }); });
    loading.set(number, entry);
    const script = document.createElement("script");
    script.src = `atoms/${String(number).padStart(4, "0")}.js`;
    script.onerror = () => entry.reject(new Error(`${script.src} is missing: copy the whole folder of this page.`));
    document.head.append(script);
    return entry.promise.finally(() => { loading.delete(number); script.remove(); });
  }

  // Numbers of the places that meet base pairs first to last, at most MOST_PLACES around the middle.
  function placesOf(first, last) {
    const found = [];
    facts.atoms.places.forEach(([a, b], number) => { if (b >= first && a <= last) found.push(number); });
    const middle = (first + last) / 2, far = (k) => Math.abs((facts.atoms.places[k][0] + facts.atoms.places[k][1]) / 2 - middle);
    return found.sort((a, b) => far(a) - far(b)).slice(0, MOST_PLACES);
  }

  async function show(first, last) {
    const wanted = placesOf(Math.max(first, 0), Math.min(last, nBp - 1));
    const missing = wanted.filter((number) => !models.has(number));
    (await Promise.all(missing.map(load))).forEach((model) => {
      models.set(model.number, model);
      view.scene.add(model.draw(state.atomStyle, materials));
    });
    // What was loaded longest ago goes first.
    wanted.forEach((number) => { const model = models.get(number); models.delete(number); models.set(number, model); });
    for (const number of [...models.keys()].slice(0, Math.max(models.size - MOST_PLACES, 0))) drop(number);
    place();
    change({ atoms: new Set(models.keys()), frame: -1 });
    document.body.dataset.atoms = [...models.values()].reduce((sum, model) => sum + model.atoms, 0);
  }

  // Atom files have the scaffold's coordinates; the page counts from the middle of the locus.
  function place() {
    for (const model of models.values()) {
      model.origin ??= model.centre;
      model.centre = model.origin.map((value, k) => value - facts.centre[k]);
      model.object.position.set(...model.centre);
    }
  }

  function drop(number) {
    models.get(number).dispose();
    models.delete(number);
  }

  function clear() {
    [...models.keys()].forEach(drop);
    change({ atoms: new Set(), atom: null });
    document.body.dataset.atoms = 0;
  }

  listen("atomStyle", () => {
    for (const model of models.values()) view.scene.add(model.draw(state.atomStyle, materials));
    place();
    view.request();
  });
  listen("frame", () => {
    for (const model of models.values()) model.object.visible = state.frame < 0;
  });
  return { show, clear, shown: () => (state.frame < 0 ? [...models.values()] : []) };
}
