// Shapes: a tube along a path, the disc of a core, arcs between places.
import * as THREE from "three";

// An attribute whose numbers are given up once they are drawn: only the graphics memory keeps them. Whoever changes
// them begins with `fresh`. Bytes come by fours, which drivers need not copy.
function passing(array, items, normalized = false) {
  return new THREE.BufferAttribute(array, items, normalized).onUpload(function () { this.array = null; });
}

function fresh(attribute, Kind) {
  if (!attribute.array) attribute.array = new Kind(attribute.count * attribute.itemSize);
  attribute.needsUpdate = true;
  return attribute.array;
}

// Indices of so many vertices.
const indices = (vertices, size) => new (vertices > 65535 ? Uint32Array : Uint16Array)(size);

// A shape of so many vertices and with these indices, none drawn yet. Its mesh has its material in a list, since parts
// of the shape are drawn, and must not be culled: its positions, from which the library would find its extent, are given
// up.
function emptyShape(vertices, index) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", passing(new Float32Array(3 * vertices), 3));
  geometry.setAttribute("normal", passing(new Int8Array(4 * vertices), 4, true));
  geometry.setAttribute("tint", passing(new Uint8Array(4 * vertices), 4, true));
  geometry.setIndex(passing(index, 1));
  geometry.computeBoundingSphere(); // of no size, once: nothing is culled by it
  return geometry;
}

// Which of the `count` pieces of a shape, each of `size` indices, are drawn: as runs, so that the index stays as it is.
function showPieces(geometry, count, size, visible) {
  geometry.clearGroups();
  for (let k = 0, from = 0; k <= count; k++) {
    if (k < count && visible(k)) continue;
    if (k > from) geometry.addGroup(from * size, (k - from) * size, 0);
    from = k + 1;
  }
}

// A tube through points (3 p), `sides` corners around; normals are turned along the path as little as it asks for.
export class Tube {
  constructor(count, sides, radius) {
    this.count = count;
    this.sides = sides;
    this.radius = radius;
    this.geometry = emptyShape(count * sides, this.corners());
    this.ring = Array.from({ length: sides }, (_, k) =>
      [Math.cos(2 * Math.PI * k / sides), Math.sin(2 * Math.PI * k / sides)]);
    this.show(() => true);
  }

  corners() {
    const { count, sides } = this, index = indices(count * sides, 6 * sides * (count - 1));
    for (let k = 0, used = 0; k + 1 < count; k++) {
      for (let s = 0; s < sides; s++) {
        const a = k * sides + s, b = k * sides + (s + 1) % sides;
        index[used++] = a;
        index[used++] = b;
        index[used++] = a + sides;
        index[used++] = b;
        index[used++] = b + sides;
        index[used++] = a + sides;
      }
    }
    return index;
  }

  // Which pieces between neighbouring points are drawn.
  show(visible) { showPieces(this.geometry, this.count - 1, 6 * this.sides, visible); }

  move(points) {
    const { count, sides, radius, ring } = this;
    const position = fresh(this.geometry.attributes.position, Float32Array);
    const normal = fresh(this.geometry.attributes.normal, Int8Array);
    let nx = 0, ny = 0, nz = 0;
    for (let k = 0; k < count; k++) {
      const before = 3 * Math.max(k - 1, 0), after = 3 * Math.min(k + 1, count - 1), here = 3 * k;
      let tx = points[after] - points[before], ty = points[after + 1] - points[before + 1];
      let tz = points[after + 2] - points[before + 2];
      const length = Math.hypot(tx, ty, tz) || 1;
      tx /= length; ty /= length; tz /= length;
      let along = nx * tx + ny * ty + nz * tz;
      nx -= along * tx; ny -= along * ty; nz -= along * tz;
      let size = Math.hypot(nx, ny, nz);
      if (size < 1e-6) {
        const helper = Math.abs(tx) < 0.8 ? [1, 0, 0] : [0, 1, 0];
        along = helper[0] * tx + helper[1] * ty + helper[2] * tz;
        nx = helper[0] - along * tx; ny = helper[1] - along * ty; nz = helper[2] - along * tz;
        size = Math.hypot(nx, ny, nz);
      }
      nx /= size; ny /= size; nz /= size;
      const reach = k && k < count - 1 ? radius : 0; // the ends are closed
      const bx = ty * nz - tz * ny, by = tz * nx - tx * nz, bz = tx * ny - ty * nx;
      for (let s = 0; s < sides; s++) {
        const [c, d] = ring[s], at = 3 * (k * sides + s), to = 4 * (k * sides + s);
        const x = c * nx + d * bx, y = c * ny + d * by, z = c * nz + d * bz;
        position[at] = points[here] + reach * x;
        position[at + 1] = points[here + 1] + reach * y;
        position[at + 2] = points[here + 2] + reach * z;
        normal[to] = 127 * x; normal[to + 1] = 127 * y; normal[to + 2] = 127 * z;
      }
    }
  }

  // `colour(k)`: of the ring around point k, 0 to 255.
  paint(colour) {
    const tint = fresh(this.geometry.attributes.tint, Uint8Array);
    for (let k = 0; k < this.count; k++) {
      const own = colour(k);
      for (let s = 0; s < this.sides; s++) {
        const at = 4 * (k * this.sides + s);
        tint[at] = own[0]; tint[at + 1] = own[1]; tint[at + 2] = own[2];
      }
    }
  }
}

// A cylinder along z with rounded edges.
export function discGeometry(radius, height, corners) {
  const bevel = 0.22 * height, profile = [[0, -height / 2]];
  for (let k = 0; k <= 2; k++) {
    const angle = -Math.PI / 2 + k * Math.PI / 4;
    profile.push([radius - bevel + bevel * Math.cos(angle), -height / 2 + bevel + bevel * Math.sin(angle)]);
  }
  const upper = profile.map(([r, z]) => [r, -z]).reverse();
  const lathe = new THREE.LatheGeometry([...profile, ...upper].map(([r, z]) => new THREE.Vector2(r, z)), corners);
  lathe.rotateX(Math.PI / 2);
  return lathe;
}

// Many copies of one shape, each where it belongs: one drawing, not an instance each, for the same reason as sticks.
export class Copies {
  constructor(shape, count) {
    this.shape = shape;
    this.count = count;
    this.size = shape.attributes.position.count;
    const corners = shape.index.array, index = indices(this.size * count, corners.length * count);
    for (let k = 0, used = 0; k < count; k++) {
      for (let i = 0; i < corners.length; i++) index[used++] = corners[i] + k * this.size;
    }
    this.geometry = emptyShape(this.size * count, index);
    this.show(() => true);
  }

  // Which copies are drawn.
  show(visible) { showPieces(this.geometry, this.count, this.shape.index.count, visible); }

  // Places every copy: `place(k, at, turn)` sets centre and quaternion.
  move(place) {
    const position = fresh(this.geometry.attributes.position, Float32Array);
    const normal = fresh(this.geometry.attributes.normal, Int8Array);
    const { position: corner, normal: facing } = this.shape.attributes;
    const at = new THREE.Vector3(), turn = new THREE.Quaternion(), point = new THREE.Vector3();
    for (let k = 0; k < this.count; k++) {
      place(k, at, turn);
      for (let v = 0; v < this.size; v++) {
        const to = k * this.size + v;
        point.fromBufferAttribute(corner, v).applyQuaternion(turn).add(at);
        point.toArray(position, 3 * to);
        point.fromBufferAttribute(facing, v).applyQuaternion(turn).multiplyScalar(127).toArray(normal, 4 * to);
      }
    }
  }

  // `colour(k)`: of a copy, 0 to 255.
  paint(colour) {
    const tint = fresh(this.geometry.attributes.tint, Uint8Array);
    for (let k = 0; k < this.count; k++) {
      const own = colour(k);
      for (let v = 0; v < this.size; v++) tint.set(own, 4 * (k * this.size + v));
    }
  }
}

// Points of an arc from one place to another that bulges away from `middle`.
export function arcPoints(one, other, middle, pieces) {
  const centre = one.map((value, k) => (value + other[k]) / 2);
  const span = Math.hypot(...one.map((value, k) => value - other[k]));
  let out = centre.map((value, k) => value - middle[k]);
  const length = Math.hypot(...out);
  out = length > 1 ? out.map((value) => value / length) : [0, 0, 1];
  const top = centre.map((value, k) => value + out[k] * Math.max(0.7 * span, 120));
  const points = new Float32Array(3 * (pieces + 1));
  for (let p = 0; p <= pieces; p++) {
    const t = p / pieces, u = 1 - t;
    for (let k = 0; k < 3; k++) points[3 * p + k] = u * u * one[k] + 2 * u * t * top[k] + t * t * other[k];
  }
  return points;
}
