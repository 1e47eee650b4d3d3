// Spheres, sticks and nucleosomes, each drawn as one flat piece that faces the camera and is shaded as the body that it
// stands for: the work is that of its pixels, whatever its shape.
import * as THREE from "three";

const SHADING = `
uniform vec2 depth;
uniform vec3 paper;
vec3 shaded(vec3 colour, vec3 facing, float away) {
  float light = 0.50 + 0.38 * facing.z + 0.24 * max(dot(facing, vec3(-0.45, 0.72, 0.53)), 0.0);
  float far = clamp((away - depth.x) / (depth.y - depth.x), 0.0, 1.0);
  return mix(colour * light, paper, 0.62 * far * far);
}`;
const DEPTH = `
uniform mat4 projectionMatrix;
float depthAt(float z) {
  vec2 clip = projectionMatrix[2].zw * z + projectionMatrix[3].zw;
  return 0.5 + 0.5 * clip.x / clip.y;
}`;
const SPHERE_VERTEX = `
attribute vec3 tint;
attribute float size;
uniform float pixels;
varying vec3 colour;
varying float radius, away;
void main() {
  vec4 seen = modelViewMatrix * vec4(position, 1.0);
  colour = tint;
  radius = size;
  away = -seen.z;
  gl_Position = projectionMatrix * seen;
  gl_PointSize = max(radius * projectionMatrix[1][1] * pixels / away, 1.0);
}`;
const SPHERE_FRAGMENT = `
${SHADING}
${DEPTH}
varying vec3 colour;
varying float radius, away;
void main() {
  vec2 at = vec2(2.0, -2.0) * (gl_PointCoord - 0.5);
  float rest = 1.0 - dot(at, at);
  if (rest < 0.0) discard;
  vec3 facing = vec3(at, sqrt(rest));
  float z = -away + radius * facing.z;
  gl_FragColor = vec4(shaded(colour, facing, -z), 1.0);
  gl_FragDepth = depthAt(z);
}`;
const STICK_VERTEX = `
attribute vec3 begin, end, tint, tintEnd;
uniform float radius;
varying vec3 colour, colourEnd, side, front;
varying vec2 at;
varying float away;
void main() {
  vec3 a = (modelViewMatrix * vec4(begin, 1.0)).xyz, b = (modelViewMatrix * vec4(end, 1.0)).xyz;
  vec3 along = normalize(b - a);
  vec3 seen = mix(a, b, position.y);
  side = normalize(cross(along, -normalize(seen)));
  front = cross(side, along);
  seen += side * position.x * radius;
  at = position.xy;
  colour = tint;
  colourEnd = tintEnd;
  away = -seen.z;
  gl_Position = projectionMatrix * vec4(seen, 1.0);
}`;
const STICK_FRAGMENT = `
${SHADING}
uniform float radius;
varying vec3 colour, colourEnd, side, front;
varying vec2 at;
varying float away;
void main() {
  vec3 facing = normalize(side) * at.x + normalize(front) * sqrt(max(1.0 - at.x * at.x, 0.0));
  gl_FragColor = vec4(shaded(at.y < 0.5 ? colour : colourEnd, facing, away), 1.0);
}`;

const BEAD_VERTEX = `
attribute vec3 axis, tint, inner;
uniform float pixels, reach;
uniform vec2 depth;
uniform vec3 paper;
varying vec3 colour, colourInner, along;
varying float share;
void main() {
  vec4 seen = modelViewMatrix * vec4(position, 1.0);
  along = normalize(normalMatrix * axis);
  along *= along.z < 0.0 ? -1.0 : 1.0;
  float far = clamp((-seen.z - depth.x) / (depth.y - depth.x), 0.0, 1.0);
  share = 1.0 - 0.62 * far * far;
  colour = tint * share + paper * (1.0 - share);
  colourInner = inner * share + paper * (1.0 - share);
  gl_Position = projectionMatrix * seen;
  gl_PointSize = dot(axis, axis) > 0.5 ? max(reach * projectionMatrix[1][1] * pixels / -seen.z, 1.0) : 0.0;
}`;
// A drum: two turns of DNA around a core, hit by a ray that runs along z. It is the drawing of every moving picture, so
// it does with few operations: along points to the eye, and only what light needs of a normal is computed.
const BEAD_FRAGMENT = `
uniform float reach, outer, dna, halfHeight;
varying vec3 colour, colourInner, along;
varying float share;
void main() {
  vec2 at = reach * vec2(2.0, -2.0) * (gl_PointCoord - 0.5);
  float tilt = max(1.0 - along.z * along.z, 1e-4);
  float start = dot(at, along.xy) + reach * along.z, b = along.z * start - reach;
  float root = b * b - tilt * (dot(at, at) + reach * reach - start * start - outer * outer);
  if (root < 0.0) discard;
  float t = (-b - sqrt(root)) / tilt, height = start - t * along.z, bump, light;
  vec3 own = colour;
  if (abs(height) <= halfHeight) {
    bump = 2.0 * abs(height) / halfHeight - 1.0;
    light = (-b - t * tilt) / outer + along.z * sign(height) * bump;
  } else {
    t = (start - halfHeight) / along.z;
    vec2 spot = at - along.xy * halfHeight;
    float depth = reach - t - along.z * halfHeight, away = sqrt(dot(spot, spot) + depth * depth);
    if (away > outer) discard;
    bump = (away - outer) / dna + 1.0;
    if (bump < -1.0) { own = colourInner; bump = 0.0; }
    light = along.z + depth / outer * bump;
  }
  light = 0.54 + 0.46 * light - 0.25 * bump * bump;
  gl_FragColor = vec4(own * mix(1.0, light, share), 1.0);
}`;

// `uniforms`: depth and paper, as the whole scene has them, and the height of the picture in pixels.
export function impostorMaterial(kind, uniforms, own = {}) {
  const [vertexShader, fragmentShader] = { sphere: [SPHERE_VERTEX, SPHERE_FRAGMENT],
    stick: [STICK_VERTEX, STICK_FRAGMENT], bead: [BEAD_VERTEX, BEAD_FRAGMENT] }[kind];
  const values = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, { value }]));
  return new THREE.ShaderMaterial({ vertexShader, fragmentShader, uniforms: { ...uniforms, ...values },
    side: THREE.DoubleSide });
}

// Sticks between points, coloured half and half: four corners each, since drawing in software handles every instance
// of an instanced drawing as a drawing of its own. `Kind`: of the coordinates, Float32Array or Int16Array.
export class Sticks {
  constructor(count, Kind) {
    this.geometry = new THREE.BufferGeometry();
    const corner = new Int8Array(12 * count), index = new Uint32Array(6 * count);
    for (let k = 0; k < count; k++) {
      corner.set([-1, 0, 0, 1, 0, 0, 1, 1, 0, -1, 1, 0], 12 * k);
      index.set([0, 1, 2, 0, 2, 3].map((vertex) => 4 * k + vertex), 6 * k);
    }
    const add = (name, array, normalized = false) =>
      this.geometry.setAttribute(name, new THREE.BufferAttribute(array, 3, normalized));
    add("position", corner);
    for (const name of ["begin", "end"]) add(name, new Kind(12 * count));
    for (const name of ["tint", "tintEnd"]) add(name, new Uint8Array(12 * count), true);
    this.geometry.setIndex(new THREE.BufferAttribute(index, 1));
  }

  // Three numbers of a stick: `name` is begin, end, tint or tintEnd.
  set(name, k, values) {
    const { array } = this.geometry.attributes[name];
    for (let at = 12 * k; at < 12 * k + 12; at += 3) array.set(values, at);
  }

  changed() {
    for (const name of ["begin", "end", "tint", "tintEnd"]) this.geometry.attributes[name].needsUpdate = true;
  }
}
