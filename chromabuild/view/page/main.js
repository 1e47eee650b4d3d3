// Puts the parts together: buttons, the card about what is chosen, the rings in the scene, errors.
import { arrays, facts, nBp, nNucleosomes, number } from "./data.js";
import { colourings, legend } from "./colours.js";
import { change, listen, pickPlace, showWindow, state, zoomWindow } from "./state.js";
import { createScene } from "./scene.js";
import { createAtoms } from "./atoms.js";
import { onScreen, pickAt } from "./picking.js";
import { createTracks } from "./tracks.js";
import { createMap } from "./contacts.js";
import { createPlayer } from "./player.js";
import { atomFacts, bpOfAtom, pairSentence, pickFacts, sentence } from "./words.js";

const $ = (id) => document.getElementById(id);

function element(tag, text, name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function begin() {
  const place = facts.chromosome ? `${facts.chromosome}:${number(facts.first + 1)}-${number(facts.first + nBp)}, ` : "";
  $("lead").textContent = `${place}${number(nBp)} base pairs, ${number(nNucleosomes)} nucleosomes`;
  let view;
  try {
    view = createScene($("scene"));
  } catch (error) {
    $("stage").replaceChildren(element("p", "This browser offers no WebGL 2: the fibre cannot be drawn.", "empty"));
    console.warn(error.message);
    return;
  }
  const atoms = facts.atoms ? createAtoms(view) : null;
  const tracks = createTracks($("tracks"), view), map = createMap($("map"), view);
  createPlayer($("player"));
  watchScene(view, atoms);
  wireButtons(view, atoms, [tracks, map]);
  wireWords();
  document.body.dataset.ready = "1";
}

function watchScene(view, atoms) {
  const canvas = view.canvas;
  let start = null, waiting = null;
  const at = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  const models = () => (atoms ? atoms.shown() : []);
  canvas.addEventListener("pointerdown", (event) => { start = at(event); });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const point = at(event);
    if (!waiting) {
      requestAnimationFrame(() => {
        const found = pickAt(view, ...waiting, models());
        waiting = null;
        hover(found);
      });
    }
    waiting = point;
  });
  const hover = (found) => {
    const bp = !found ? -1 : found.atom ? bpOfAtom(found.atom) : found.bp;
    const atom = found?.atom ? `${atomFacts(found.atom)[0]}, ${atomFacts(found.atom)[1][0][1]}` : "";
    change({ hover: found && (bp >= 0 || atom) ? { bp: bp >= 0 ? bp : dyadOf(found.atom), atom } : null });
  };
  const dyadOf = ({ model }) => arrays.dyad[Math.max(facts.atoms.places[model.number][2], 0)];
  canvas.addEventListener("pointerleave", () => change({ hover: null }));
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = at(event);
    if (!start || Math.hypot(x - start[0], y - start[1]) > 4 || event.button !== 0) return;
    const found = pickAt(view, x, y, models());
    if (found?.atom) change({ atom: found.atom });
    else change({ pick: found ? pickPlace(found.bp) : null, atom: null });
  });
  canvas.addEventListener("dblclick", () => { if (state.pick) view.goTo(state.pick.first, state.pick.last); });
  view.afterDraw(() => moveRings(view));
  listen("hover", () => moveRings(view)); // without drawing the fibre again
}

// A ring around what is under the pointer, and around its partner in the map.
function moveRings(view) {
  const places = state.hover && !state.hover.atom ? [state.hover.bp, state.hover.other] : [];
  ["ring", "ring-other"].forEach((id, k) => {
    const spot = places[k] === undefined ? null : onScreen(view, places[k]);
    $(id).hidden = !spot;
    if (!spot) return;
    const size = Math.min(Math.max(60 * spot.scale, 16), 90);
    $(id).style.cssText = `width:${size}px;height:${size}px;left:${spot.x - size / 2}px;top:${spot.y - size / 2}px`;
  });
}

function wireButtons(view, atoms, drawings) {
  const choice = $("colouring");
  colourings().forEach(([key, words]) => choice.append(new Option(words, key)));
  choice.addEventListener("change", () => change({ colouring: choice.value }));
  listen("colouring", () => {
    $("legend").replaceChildren(...legend(state.colouring).map(([words, colour]) => {
      const entry = element("span", words), dot = element("i", "");
      dot.style.background = colour;
      entry.prepend(dot);
      return entry;
    }));
  });
  toggle("spin", (on) => view.setSpinning(on));
  toggle("loops", (on) => change({ loops: on }), arrays.contact_weight.length > 0);
  $("whole").addEventListener("click", () => { view.showAll(); showWindow(0, nBp); });
  $("nearer").addEventListener("click", () => zoomWindow(0.5));
  $("farther").addEventListener("click", () => zoomWindow(2));
  $("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  const redraw = () => { view.appearance(); drawings.forEach((drawing) => drawing.draw()); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  $("go").addEventListener("click", () => {
    if (!state.pick) return;
    view.goTo(state.pick.first, state.pick.last);
    const size = Math.max(state.pick.last - state.pick.first, 300);
    showWindow(state.pick.first - size, state.pick.last + size);
  });
  $("style").hidden = $("clear").hidden = $("atoms").hidden = !atoms;
  if (!atoms) return;
  $("atoms").addEventListener("click", async () => {
    try {
      $("atoms").disabled = true;
      await atoms.show(state.pick.first, state.pick.last);
      view.goTo(state.pick.first, state.pick.last);
    } catch (error) {
      $("sentence").textContent = error.message;
      document.body.dataset.failed = error.message;
    } finally {
      $("atoms").disabled = !state.pick;
    }
  });
  $("clear").addEventListener("click", () => atoms.clear());
  $("style").addEventListener("click", () => {
    const sticks = state.atomStyle === "spheres";
    change({ atomStyle: sticks ? "sticks" : "spheres" });
    $("style").textContent = sticks ? "Spheres" : "Sticks";
  });
  const enable = () => { $("clear").disabled = $("style").disabled = !state.atoms.size; };
  listen("atoms", enable);
  enable();
}

function toggle(id, call, possible = true) {
  const button = $(id);
  button.hidden = !possible;
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    call(on);
  });
}

function wireWords() {
  const help = $("sentence").textContent;
  listen("hover", () => {
    const over = state.hover;
    $("sentence").textContent = !over ? help : over.atom || (over.other === undefined || over.other === over.bp
      ? sentence(over.bp) : pairSentence(over.bp, over.other));
  });
  listen("pick atom", () => {
    $("atoms").disabled = $("go").disabled = !state.pick;
    const [title, rows] = state.atom ? atomFacts(state.atom) : state.pick ? pickFacts() : ["Nothing chosen", []];
    $("title").textContent = title;
    $("facts-list").replaceChildren(...rows.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
    document.body.dataset.picked = title;
  });
}

begin();
