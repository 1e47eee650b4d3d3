// The contact map of the window that the tracks show. Above the diagonal: contacts that were given. Below it: how near
// the places of the model are, in the frame that is shown; what is within NEAR is a contact.
import { arrays, nBp, path } from "./data.js";
import { pageColours, rgb } from "./colours.js";
import { beforePaint, change, listen, showWindow, state, zoomWindow } from "./state.js";
import { NEAR } from "./words.js";

const BINS = 240;      // at most, along an edge
const LEAST = 5;       // px, edge of a given contact

export function createMap(canvas, view) {
  const context = canvas.getContext("2d"), picture = document.createElement("canvas");
  let edge = 1, known = "";
  const size = () => state.window[1] - state.window[0];
  const at = (bp) => (bp - state.window[0]) / size() * edge;
  const bpAt = (x) => Math.min(Math.max(Math.floor(state.window[0] + x / edge * size()), 0), nBp - 1);

  // Mean position of the base pairs of each bin, (3 bins).
  function binPositions(bins) {
    const sum = new Float64Array(3 * bins), count = new Float64Array(bins), [a, b] = state.window;
    const points = state.frame < 0 ? path : view.bodies().drawn;
    const bpOf = state.frame < 0 ? (k) => k : (k) => arrays.drawn[k];
    for (let k = 0; 3 * k < points.length; k++) {
      const bin = Math.floor((bpOf(k) + 0.5 - a) / (b - a) * bins);
      if (bin < 0 || bin >= bins) continue;
      count[bin]++;
      for (let axis = 0; axis < 3; axis++) sum[3 * bin + axis] += points[3 * k + axis];
    }
    return sum.map((value, k) => value / (count[Math.floor(k / 3)] || 1));
  }

  // Drawn once a window and frame, at one pixel a pair of bins.
  function paintModel(page) {
    const spacing = state.frame < 0 ? 1 : arrays.drawn[1] - arrays.drawn[0];
    const bins = Math.max(2, Math.min(BINS, Math.floor(size() / (2 * spacing))));
    const key = [...state.window, state.frame, page.paper].join();
    if (key === known) return;
    known = key;
    const points = binPositions(bins), image = new ImageData(bins, bins);
    const [dark, paper] = [rgb(page.accent), rgb(page.card)];
    for (let i = 0; i < bins; i++) {
      for (let j = 0; j < i; j++) {
        const distance = Math.hypot(points[3 * i] - points[3 * j], points[3 * i + 1] - points[3 * j + 1],
          points[3 * i + 2] - points[3 * j + 2]);
        const share = distance < NEAR ? 1 - 0.55 * distance / NEAR : 0.45 * Math.exp(-(distance - NEAR) / NEAR) * 0.5;
        const pixel = 4 * (i * bins + j);
        for (let c = 0; c < 3; c++) image.data[pixel + c] = 255 * (paper[c] * (1 - share) + dark[c] * share);
        image.data[pixel + 3] = 255;
      }
    }
    picture.width = picture.height = bins;
    picture.getContext("2d").putImageData(image, 0, 0);
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1, page = pageColours();
    edge = canvas.clientWidth;
    if (canvas.width !== Math.round(edge * ratio)) canvas.width = canvas.height = Math.round(edge * ratio);
    paintModel(page);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = page.card;
    context.fillRect(0, 0, edge, edge);
    context.imageSmoothingEnabled = picture.width > edge * ratio;
    context.drawImage(picture, 0, 0, edge, edge);
    const weight = arrays.contact_weight, top = weight.reduce((most, value) => Math.max(most, value), 0);
    context.fillStyle = page.pick;
    for (let k = 0; k < weight.length; k++) {
      const [a, b, c, d] = arrays.contact.subarray(4 * k, 4 * k + 4);
      const wide = Math.max(at(d) - at(c), LEAST), tall = Math.max(at(b) - at(a), LEAST);
      context.globalAlpha = 0.35 + 0.65 * weight[k] / top;
      context.fillRect((at(c) + at(d) - wide) / 2, (at(a) + at(b) - tall) / 2, wide, tall);
    }
    context.globalAlpha = 1;
    context.strokeStyle = page.line;
    context.beginPath();
    context.moveTo(0, 0);
    context.lineTo(edge, edge);
    context.stroke();
    if (state.pick) {
      const [first, last] = [at(state.pick.first), at(state.pick.last + 1)], wide = Math.max(last - first, 4);
      context.strokeStyle = page.pick;
      context.lineWidth = 1.5;
      context.strokeRect((first + last - wide) / 2, (first + last - wide) / 2, wide, wide);
      context.lineWidth = 1;
    }
    if (state.hover) cross(state.hover, page);
  }

  function cross({ bp, other }, page) {
    context.fillStyle = page.ink;
    context.globalAlpha = 0.7;
    context.fillRect(Math.round(at(bp + 0.5)), 0, 1, edge);
    context.fillRect(0, Math.round(at((other ?? bp) + 0.5)), edge, 1);
    context.globalAlpha = 1;
  }

  // ---- pointer
  const here = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  // A given contact near the pointer, or -1.
  function contactAt(x, y) {
    for (let k = 0; k < arrays.contact_weight.length; k++) {
      const [a, b, c, d] = arrays.contact.subarray(4 * k, 4 * k + 4);
      const wide = Math.max(at(d) - at(c), LEAST) / 2 + 3, tall = Math.max(at(b) - at(a), LEAST) / 2 + 3;
      if (Math.abs((at(c) + at(d)) / 2 - x) < wide && Math.abs((at(a) + at(b)) / 2 - y) < tall) return k;
    }
    return -1;
  }
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = here(event);
    change({ hover: { bp: bpAt(x), other: bpAt(y), contact: contactAt(x, y) } });
  });
  canvas.addEventListener("pointerleave", () => change({ hover: null }));
  canvas.addEventListener("click", (event) => {
    const [x, y] = here(event), k = contactAt(x, y);
    const ends = k < 0 ? [bpAt(x), bpAt(y)] : [arrays.contact[4 * k], arrays.contact[4 * k + 3] - 1];
    const [first, last] = ends.sort((a, b) => a - b);
    change({ pick: { bp: first, first, last, nucleosome: -1, contact: k }, atom: null });
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomWindow(Math.exp(0.0015 * event.deltaY), bpAt(here(event)[0]));
  }, { passive: false });
  canvas.addEventListener("dblclick", () => {
    if (state.pick) showWindow(state.pick.first - 200, state.pick.last + 200);
  });

  const later = beforePaint(draw);
  listen("window hover pick frame", later);
  new ResizeObserver(later).observe(canvas);
  return { draw: later };
}
