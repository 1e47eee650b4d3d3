// Tracks along the sequence: ruler, nucleosomes, marks, features of BED files, contacts as arcs.
import { arrays, facts, nBp, nNucleosomes, markOf, placed } from "./data.js";
import { css, featureColour, kindColour, nucleosomeColour, pageColours } from "./colours.js";
import { beforePaint, change, listen, pickPlace, showWindow, state, zoomWindow } from "./state.js";

const LABELS = 132, PAD = 12; // px to the left and right of the sequence
const ROWS = { ruler: 26, nucleosomes: 24, marks: 16, feature: 18, arcs: 54 };
const MOST_ARCS = 2000, MOST_LANES = 3;

// Top, height and name of every row.
function rows() {
  const found = [];
  let top = 2;
  const add = (kind, title, extra = {}) => {
    const height = ROWS[kind] * (extra.lanes || 1);
    found.push({ kind, title, top, height, ...extra });
    top += height + 4;
  };
  add("ruler", facts.chromosome || "position");
  add("nucleosomes", "nucleosomes");
  if (facts.marks.length) add("marks", "marks");
  facts.tracks.forEach((track) => add("feature", track.name, inLanes(track.features)));
  if (arrays.contact_weight.length) add("arcs", "contacts");
  return { found, height: top };
}

// Features that overlap lie below each other, in as few lanes as there can be.
function inLanes(features) {
  const ends = [];
  const lane = features.map(([start, end]) => {
    let k = ends.findIndex((last) => last <= start);
    if (k < 0) k = ends.length < MOST_LANES ? ends.length : MOST_LANES - 1;
    ends[k] = end;
    return k;
  });
  return { features, lane, lanes: ends.length };
}

export function createTracks(canvas, view) {
  const context = canvas.getContext("2d");
  const { found, height } = rows();
  canvas.style.height = `${height}px`;
  let width = 1;
  const inner = () => Math.max(width - LABELS - PAD, 10);
  const xOf = (bp) => LABELS + (bp - state.window[0]) / (state.window[1] - state.window[0]) * inner();
  const bpAt = (x) => state.window[0] + (x - LABELS) / inner() * (state.window[1] - state.window[0]);
  const whole = (bp) => Math.min(Math.max(Math.floor(bp), 0), nBp - 1);

  function draw() {
    const ratio = window.devicePixelRatio || 1, page = pageColours();
    width = canvas.clientWidth;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = page.soft;
    for (const row of found) context.fillText(fitted(row.title, LABELS - (row.kind === "ruler" ? 72 : 16)), LABELS - 10, row.top + row.height / 2);
    context.save();
    context.beginPath();
    context.rect(LABELS - 1, 0, inner() + 2, height);
    context.clip();
    context.textAlign = "left";
    if (state.pick) band(state.pick.first, state.pick.last + 1, page.pick, 0.16);
    for (const row of found) DRAW[row.kind](row, page);
    if (state.hover) {
      line(state.hover.bp + 0.5, page.ink);
      if (state.hover.other !== undefined) line(state.hover.other + 0.5, page.ink);
    }
    context.restore();
  }

  function fitted(text, room) {
    if (context.measureText(text).width <= room) return text;
    let size = text.length;
    while (size > 1 && context.measureText(`${text.slice(0, size)}…`).width > room) size--;
    return `${text.slice(0, size)}…`;
  }

  function band(first, end, colour, alpha) {
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(xOf(first), 0, Math.max(xOf(end) - xOf(first), 2), height);
    context.globalAlpha = 1;
  }

  function line(bp, colour) {
    context.fillStyle = colour;
    context.fillRect(Math.round(xOf(bp)) - 0.5, 0, 1, height);
  }

  function box(first, end, top, tall, colour) {
    const x = xOf(first), wide = Math.max(xOf(end) - x, 1.5);
    context.fillStyle = colour;
    context.beginPath();
    context.roundRect(x, top, wide, tall, Math.min(tall / 2, wide / 2, 5));
    context.fill();
    return [x, wide];
  }

  const DRAW = {
    ruler(row, page) {
      const [a, b] = state.window, room = 110, least = (b - a) * room / inner();
      const power = 10 ** Math.floor(Math.log10(least));
      const step = Math.max([1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least), 1);
      const bottom = row.top + row.height;
      context.fillStyle = page.line;
      context.fillRect(LABELS, bottom - 1, inner(), 1);
      context.textAlign = "center";
      const first = Math.ceil((facts.start + 1 + a) / step) * step;
      for (let at = first; at <= facts.start + b; at += step) {
        const x = xOf(at - facts.start - 0.5);
        context.fillStyle = page.soft;
        context.fillRect(Math.round(x), bottom - 6, 1, 6);
        if (x - LABELS > 34 && LABELS + inner() - x > 34) context.fillText(placed(at), x, row.top + 8);
      }
      context.textAlign = "left";
    },

    nucleosomes(row, page) {
      const middle = row.top + row.height / 2, [a, b] = state.window, wide = inner() / (b - a) * 147;
      context.fillStyle = page.line;
      context.fillRect(xOf(0), middle - 1, xOf(nBp) - xOf(0), 2);
      for (let k = 0; k < nNucleosomes; k++) {
        if (arrays.last_bp[k] < a || arrays.first_bp[k] > b) continue;
        const chosen = state.pick && state.pick.nucleosome === k;
        const colour = chosen ? page.pick : css(nucleosomeColour(k, state.colouring));
        box(arrays.first_bp[k], arrays.last_bp[k] + 1, row.top + 3, row.height - 6, colour);
        if (wide > 34) {
          context.fillStyle = "#fff";
          context.fillText(fitted(String(k + 1), wide - 10), xOf(arrays.first_bp[k]) + 6, middle + 0.5);
        }
        if (wide > 8) {
          const dyad = xOf(arrays.dyad[k] + 0.5), mapped = xOf(arrays.mapped[k] + 0.5);
          context.fillStyle = page.ink;
          context.fillRect(dyad - 0.5, row.top, 1, 4);
          if (arrays.mapped[k] !== arrays.dyad[k]) {
            context.fillRect(Math.min(dyad, mapped), row.top + row.height - 1.5, Math.abs(dyad - mapped), 1.5);
            context.fillRect(mapped - 0.5, row.top + row.height - 5, 1, 5);
          }
        }
      }
      context.strokeStyle = page.soft;
      for (const dropped of facts.dropped) {
        const x = xOf(dropped - facts.start + 0.5);
        context.strokeRect(x - 2, middle - 2, 4, 4);
      }
    },

    marks(row) {
      for (let k = 0; k < nNucleosomes; k++) {
        if (markOf(k) < 0) continue;
        const [x, wide] = box(arrays.first_bp[k], arrays.last_bp[k] + 1, row.top + 2, row.height - 4,
          css(kindColour(markOf(k))));
        if (wide > 40) {
          context.fillStyle = "#fff";
          context.fillText(fitted(facts.marks[markOf(k)], wide - 10), x + 5, row.top + row.height / 2 + 0.5);
        }
      }
    },

    feature(row) {
      row.features.forEach(([start, end, name, strand], k) => {
        const top = row.top + row.lane[k] * ROWS.feature;
        const first = Math.max(start - facts.start, 0), beyond = Math.min(end - facts.start, nBp);
        if (beyond < state.window[0] || first > state.window[1]) return;
        const [x, wide] = box(first, beyond, top + 1, ROWS.feature - 3, css(featureColour(strand)));
        const left = Math.max(x, LABELS), right = Math.min(x + wide, LABELS + inner()), room = right - left;
        if (room < 22) return;
        const arrow = strand === "+" ? " ›" : strand === "-" ? "‹ " : "";
        const text = strand === "-" ? `${arrow}${name}` : `${name}${arrow}`;
        context.fillStyle = "#fff";
        context.fillText(fitted(text, room - 10), left + 5, top + ROWS.feature / 2);
      });
    },

    arcs(row, page) {
      const weight = arrays.contact_weight, top = weight.reduce((most, value) => Math.max(most, value), 0);
      context.strokeStyle = page.pick;
      for (let k = 0; k < Math.min(weight.length, MOST_ARCS); k++) {
        const [a, b, c, d] = arrays.contact.subarray(4 * k, 4 * k + 4);
        const x = xOf((a + b) / 2), y = xOf((c + d) / 2), bottom = row.top + row.height;
        context.globalAlpha = 0.35 + 0.65 * weight[k] / top;
        context.lineWidth = 1.5;
        context.beginPath();
        const tall = Math.min(row.height - 6, 8 + Math.abs(y - x) / 2);
        context.ellipse((x + y) / 2, bottom - 4, Math.abs(y - x) / 2, tall, 0, Math.PI, 2 * Math.PI);
        context.stroke();
        context.globalAlpha = 1;
        context.fillStyle = page.pick;
        for (const [from, to] of [[a, b], [c, d]]) {
          context.fillRect(xOf(from), bottom - 4, Math.max(xOf(to) - xOf(from), 2), 4);
        }
      }
    },
  };

  // ---- pointer and keys
  const rowAt = (y) => found.find((row) => y >= row.top && y < row.top + row.height + 4);
  const here = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  let grip = null;

  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = here(event);
    const selects = event.shiftKey || rowAt(y)?.kind === "ruler";
    grip = { x, y, bp: bpAt(x), window: state.window, selects, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = here(event);
    canvas.style.cursor = rowAt(y)?.kind === "ruler" ? "text" : grip?.moved ? "grabbing" : "pointer";
    if (grip && Math.abs(x - grip.x) > 3) grip.moved = true;
    if (grip?.moved && grip.selects) {
      const [first, last] = [whole(grip.bp), whole(bpAt(x))].sort((a, b) => a - b);
      change({ pick: { bp: whole((first + last) / 2), first, last, nucleosome: -1 }, atom: null });
    } else if (grip?.moved) {
      const shift = (grip.x - x) / inner() * (grip.window[1] - grip.window[0]);
      showWindow(grip.window[0] + shift, grip.window[1] + shift);
    } else {
      change({ hover: x < LABELS ? null : { bp: whole(bpAt(x)) } });
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = here(event);
    if (grip && !grip.moved && x >= LABELS) click(whole(bpAt(x)), rowAt(y), y);
    grip = null;
  });
  canvas.addEventListener("pointercancel", () => { grip = null; });
  canvas.addEventListener("pointerleave", () => change({ hover: null }));

  function click(bp, row, y) {
    const lane = row && Math.floor((y - row.top) / ROWS.feature), at = facts.start + bp;
    const feature = row?.features?.find(([start, end], k) => start <= at && at < end && row.lane[k] === lane);
    if (feature) {
      const [first, last] = [whole(feature[0] - facts.start), whole(feature[1] - facts.start - 1)];
      change({ pick: { bp, first, last, nucleosome: -1 }, atom: null });
    } else {
      change({ pick: pickPlace(bp), atom: null });
    }
  }

  canvas.addEventListener("dblclick", () => {
    if (!state.pick) return;
    const room = Math.max(3 * (state.pick.last - state.pick.first), 400), middle = (state.pick.first + state.pick.last) / 2;
    showWindow(middle - room / 2, middle + room / 2);
    view.goTo(state.pick.first, state.pick.last);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x] = here(event), size = state.window[1] - state.window[0];
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = event.deltaX / inner() * size;
      showWindow(state.window[0] + shift, state.window[1] + shift);
    } else {
      zoomWindow(Math.exp(0.0015 * event.deltaY), bpAt(Math.max(x, LABELS)));
    }
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const size = state.window[1] - state.window[0];
    const keys = { ArrowLeft: () => showWindow(state.window[0] - size / 8, state.window[1] - size / 8),
      ArrowRight: () => showWindow(state.window[0] + size / 8, state.window[1] + size / 8),
      "+": () => zoomWindow(0.6), "-": () => zoomWindow(1 / 0.6), 0: () => showWindow(0, nBp) };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  const later = beforePaint(draw);
  listen("window hover pick colouring", later);
  new ResizeObserver(later).observe(canvas);
  return { draw: later };
}
