// The fibre in three dimensions. Nothing is drawn unless something has changed; while the camera moves, pictures are as
// coarse as the machine needs, and at rest one fine picture follows.
import * as THREE from "three";
import { arrays, conformation, facts, nucleosomeAt, place } from "./data.js";
import { createCoarse } from "./coarse.js";
import { LINKER, blend, dnaColour, nucleosomeColour, pageColours, rgb } from "./colours.js";
import { Fine, fineTriangles } from "./fine.js";
import { Tube, arcPoints } from "./geometry.js";
import { listen, state } from "./state.js";

const FIELD = 32;            // degree, of view
const REST = 160;            // ms without motion after which the fine picture is drawn
// While the camera moves: whether shapes are fine, and pixels a CSS pixel.
const LEVELS = [[true, 1], [false, 1], [false, 0.8], [false, 0.65], [false, 0.5], [false, 0.4], [false, 0.33]];
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const EASY = 30000;          // triangles that drawing in software turns smoothly
const AIM = 24;              // ms a picture may take while the camera moves
const MOST_ARCS = 300;
const TURN = 0.35;           // radian a second

const VERTEX = `
attribute vec3 tint;
uniform vec2 depth;
uniform vec3 paper;
varying vec3 colour, inside;
void main() {
  vec4 seen = modelViewMatrix * vec4(position, 1.0);
  vec3 facing = normalize(normalMatrix * normal);
  float light = 0.50 + 0.38 * max(facing.z, 0.0) + 0.24 * max(dot(facing, vec3(-0.45, 0.72, 0.53)), 0.0);
  float far = clamp((-seen.z - depth.x) / (depth.y - depth.x), 0.0, 1.0);
  colour = mix(tint * light, paper, 0.62 * far * far);
  inside = mix(0.6 * tint, paper, 0.62 * far * far);
  gl_Position = projectionMatrix * seen;
}`;
const FRAGMENT = `
varying vec3 colour, inside;
void main() { gl_FragColor = vec4(gl_FrontFacing ? colour : inside, 1.0); }`;

export function createScene(canvas) {
  const renderer = new THREE.WebGLRenderer({ canvas, antialias: false, powerPreference: "high-performance" });
  renderer.outputColorSpace = "srgb-linear"; // colours are given as they are shown
  const scene = new THREE.Scene();
  const camera = new THREE.PerspectiveCamera(FIELD, 1, 1, 1e6);
  const controls = new THREE.TrackballControls(camera, canvas);
  Object.assign(controls, { rotateSpeed: 2.6, zoomSpeed: 1.1, panSpeed: 0.6, dynamicDampingFactor: 0.25, keys: [] });
  const uniforms = { depth: { value: new THREE.Vector2(1, 2) }, paper: { value: new THREE.Vector3(1, 1, 1) },
    pixels: { value: 1 } };
  const material = new THREE.ShaderMaterial({ vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms });

  const onTop = material.clone(); // contacts are seen through the fibre
  Object.assign(onTop, { uniforms, depthTest: false });

  const owner = Int32Array.from(arrays.drawn, nucleosomeAt);
  const fine = new Fine(material), coarse = createCoarse(uniforms), arcs = new THREE.Group();
  scene.add(fine.group, coarse.group, arcs);

  let frame = -1, shown = conformation(frame), focus = { centre: [0, 0, 0], radius: 0 }; // the place that was gone to
  const ball = boundingBall(shown.drawn);

  function moveBodies() {
    if (state.frame !== frame) shown = conformation(frame = state.frame);
    const hidden = hiddenStretches();
    // A loop, since this is asked of every piece, and lists taken apart would be garbage.
    const isHidden = (first, last) => {
      for (const part of hidden) if (first >= part[0] && last <= part[1] + 1) return true;
      return false;
    };
    fine.move(shown, isHidden, state.frame < 0 ? focus : { ...focus, radius: 0 });
    coarse.move(shown, isHidden);
    drawArcs();
  }

  function hiddenStretches() {
    return state.frame < 0 ? [...state.atoms].map((number) => facts.atoms.places[number]) : [];
  }

  // Contacts are tubes a few pixels thick when the whole locus is seen; the strongest, where there are very many.
  function drawArcs() {
    arcs.children.forEach((arc) => arc.geometry.dispose());
    arcs.clear();
    if (!state.loops || state.frame >= 0) return;
    const weight = arrays.contact_weight;
    const order = Array.from(weight.keys()).sort((a, b) => weight[b] - weight[a]).slice(0, MOST_ARCS);
    const colour = rgb(pageColours().pick).map((part) => 255 * part);
    for (const k of order) {
      const [a, b, c, d] = arrays.contact.subarray(4 * k, 4 * k + 4);
      const pieces = 20, arc = new Tube(pieces + 1, 4, Math.min(Math.max(ball.radius / 260, 3), 14));
      arc.move(arcPoints(place((a + b) / 2), place((c + d) / 2), ball.centre, pieces));
      arc.paint(() => colour);
      const mesh = new THREE.Mesh(arc.geometry, [onTop]);
      mesh.frustumCulled = false;
      arcs.add(mesh);
    }
  }

  function paintBodies() {
    const shade = (value) => 0.7 + 0.3 * Math.min(1.3 * value / 255, 1);
    const chosen = (k) => state.pick && state.pick.nucleosome === k;
    const bright = rgb(pageColours().pick);
    // Places of one nucleosome, and of linkers, have colours in common, but for the features of a track.
    const known = new Map(), byFeature = state.colouring.startsWith("track:");
    const ownColour = (k) => {
      if (byFeature) return dnaColour(arrays.drawn[k], owner[k], state.colouring);
      if (!known.has(owner[k])) known.set(owner[k], dnaColour(arrays.drawn[k], owner[k], state.colouring));
      return known.get(owner[k]);
    };
    const painted = [0, 0, 0]; // one for all: whoever asks copies it
    const placeColour = (k) => {
      const colour = ownColour(k), light = 255 * shade(arrays.shade[k]);
      for (let part = 0; part < 3; part++) painted[part] = colour[part] * light;
      return painted;
    };
    const coreColour = (k) => {
      const own = nucleosomeColour(k, state.colouring);
      const colour = chosen(k) ? bright : blend(own, [0.96, 0.94, 0.9], own === LINKER ? 0.3 : 0.5);
      return colour.map((part) => 255 * part * shade(arrays.core_shade[k]));
    };
    fine.paint(placeColour, coreColour);
    coarse.paint(placeColour, coreColour);
  }

  // ---- when to draw, and how finely
  const after = [];
  let asked = false, movingUntil = 0, last = 0, slow = 0, spinning = false, flight = null, down = 0, drawn = 0;
  let level = isSoftware(renderer) && fineTriangles > EASY ? 4 : 0;
  const seen = new THREE.Matrix4();
  // A large picture that software draws is no finer than the screen: it would take twice the memory.
  const rest = level ? window.devicePixelRatio : Math.max(2, window.devicePixelRatio);
  let wasMoving = false;

  function request() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(draw);
  }

  function draw(now) {
    asked = false;
    if (flight) fly(now);
    if (spinning) spin(Math.min(now - last, 100) / 1000);
    controls.update();
    camera.updateMatrixWorld();
    const moved = !sameView(seen, camera.matrixWorld, camera.position.distanceTo(controls.target));
    seen.copy(camera.matrixWorld);
    if (moved || spinning || flight) {
      if (wasMoving) adapt(now - last);
      movingUntil = now + REST;
    }
    last = now;
    const moving = wasMoving = now < movingUntil;
    setQuality(...(moving ? LEVELS[level] : [true, rest]));
    lightDepth();
    renderer.render(scene, camera);
    document.body.dataset.drawn = ++drawn; // how many pictures there have been
    after.forEach((call) => call());
    if (moving || down) request();
  }

  // One slow picture may be chance; three in a row are not. What was once too much is not tried again.
  function adapt(spent) {
    slow = spent > 1.25 * AIM ? slow + 1 : 0;
    if (slow < 3) return;
    slow = 0;
    level = Math.min(level + 1, LEVELS.length - 1);
  }

  function setQuality(isFine, ratio) {
    if (isFine) fine.finish();
    fine.group.visible = isFine;
    coarse.group.visible = !isFine;
    if (!isFine) coarse.sort(camera);
    if (renderer.getPixelRatio() !== ratio) resample(ratio);
    uniforms.pixels.value = canvas.height;
  }

  // The old picture is given up before there is another: both at once would leave gaps in the graphics memory.
  function resample(ratio) {
    const context = renderer.getContext();
    canvas.width = canvas.height = 1;
    context.clear(context.COLOR_BUFFER_BIT | context.DEPTH_BUFFER_BIT);
    context.readPixels(0, 0, 1, 1, context.RGBA, context.UNSIGNED_BYTE, new Uint8Array(4)); // when it is gone
    renderer.setPixelRatio(ratio);
  }

  function lightDepth() {
    const distance = camera.position.distanceTo(new THREE.Vector3(...ball.centre));
    const aim = camera.position.distanceTo(controls.target);
    // What stands before the place that was gone to is cut away.
    camera.near = Math.max(distance - 1.6 * ball.radius, focus.radius ? aim - focus.radius : 5, 5);
    camera.far = distance + 2 * ball.radius + 100;
    camera.updateProjectionMatrix();
    if (focus.radius) uniforms.depth.value.set(aim, aim + Math.max(aim, 8 * focus.radius));
    else uniforms.depth.value.set(distance - 0.7 * ball.radius, distance + ball.radius);
  }

  function spin(seconds) {
    const offset = camera.position.clone().sub(controls.target);
    offset.applyAxisAngle(camera.up.clone().normalize(), TURN * seconds);
    camera.position.copy(controls.target).add(offset);
    camera.lookAt(controls.target);
  }

  // ---- where the camera looks
  function flyTo(target, distance, time = 450) {
    const offset = camera.position.clone().sub(controls.target);
    flight = { begin: performance.now(), time, from: controls.target.clone(), to: new THREE.Vector3(...target),
      near: offset.length(), far: distance };
    request();
  }

  function fly(now) {
    const t = flight.time ? Math.min(Math.max((now - flight.begin) / flight.time, 0), 1) : 1;
    const share = t * t * (3 - 2 * t);
    const offset = camera.position.clone().sub(controls.target).normalize();
    controls.target.lerpVectors(flight.from, flight.to, share);
    const length = flight.near * (flight.far / flight.near) ** share;
    camera.position.copy(controls.target).addScaledVector(offset, length);
    if (t >= 1) flight = null;
  }

  const distanceFor = (radius) => {
    const half = Math.tan(Math.PI * FIELD / 360);
    return 1.04 * radius / Math.min(half, half * camera.aspect);
  };

  function showAll(time = 450) {
    if (focus.radius) setFocus([0, 0, 0], 0);
    const out = new THREE.Vector3(0, 0, 1);
    if (time) return flyTo(ball.centre, fitDistance());
    controls.target.fromArray(ball.centre);
    camera.up.set(0, 1, 0);
    camera.position.copy(controls.target).addScaledVector(out, fitDistance());
    movingUntil = performance.now() + REST; // the first picture is quick
    return request();
  }

  // The locus lies with its longest edges along x and y: its width and height decide, with its depth.
  function fitDistance() {
    const half = Math.tan(Math.PI * FIELD / 360), [x, y, z] = ball.half;
    return 1.06 * Math.max((y + 25) / half, (x + 25) / (half * camera.aspect)) + z;
  }

  function goTo(first, last) {
    const spots = [], step = Math.max(1, Math.floor((last - first) / 200));
    for (let bp = first; bp <= last; bp += step) spots.push(place(bp));
    const { centre, radius } = boundingBall(spots.flat());
    setFocus(centre, radius);
    flyTo(centre, distanceFor(radius));
  }

  function setFocus(centre, radius) {
    focus = { centre, radius };
    material.side = radius ? THREE.DoubleSide : THREE.FrontSide;
    moveBodies();
  }

  // In a frame that is folded away there is no size, and no distance to look from, until it is unfolded.
  let folded = true;
  function resize() {
    const box = canvas.parentElement.getBoundingClientRect(), wasFolded = folded;
    folded = !(box.width > 0 && box.height > 0);
    if (folded) return;
    renderer.setSize(box.width, box.height, false);
    camera.aspect = box.width / Math.max(box.height, 1);
    camera.updateProjectionMatrix();
    controls.handleResize();
    if (wasFolded) showAll(0);
    else request();
  }

  function appearance() {
    const stage = rgb(pageColours().stage);
    renderer.setClearColor(new THREE.Color(...stage), 1);
    uniforms.paper.value.set(...stage);
    paintBodies();
    drawArcs();
    request();
  }

  canvas.addEventListener("pointerdown", () => { down++; flight = null; request(); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { down = Math.max(down - 1, 0); });
  controls.addEventListener("start", request);
  listen("frame", () => { moveBodies(); movingUntil = performance.now() + REST; request(); });
  listen("atoms loops", () => { moveBodies(); request(); });
  listen("colouring pick", () => { paintBodies(); request(); });
  new ResizeObserver(resize).observe(canvas.parentElement);
  moveBodies();
  appearance();
  resize();

  return { scene, camera, canvas, uniforms, request, goTo, showAll, appearance,
    bodies: () => shown,
    afterDraw: (call) => after.push(call),
    setSpinning(value) { spinning = value; request(); },
  };
}

function isSoftware(renderer) {
  const context = renderer.getContext(), names = context.getExtension("WEBGL_debug_renderer_info");
  return SOFTWARE.test(context.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : context.RENDERER));
}

function sameView(one, other, distance) {
  return one.elements.every((value, k) => Math.abs(value - other.elements[k]) < (k < 12 ? 2e-4 : 2e-4 * distance));
}

function boundingBall(points) {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  points.forEach((value, k) => {
    low[k % 3] = Math.min(low[k % 3], value);
    high[k % 3] = Math.max(high[k % 3], value);
  });
  const half = high.map((value, k) => (value - low[k]) / 2);
  return { centre: high.map((value, k) => (value + low[k]) / 2), half, radius: Math.hypot(...half) + 20 };
}
