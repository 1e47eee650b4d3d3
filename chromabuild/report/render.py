"""A small software renderer: spheres and cylinders seen in parallel projection, for pictures of scaffolds and solutes.

Everything is drawn into a geometry buffer (depth, normal, colour, object), which is lit once at the end. Light is a
key light from the upper left, an ambient term from how much of the sky an object sees, darkened creases, dark outlines
where depth jumps, and a haze with depth. Lengths are angstrom; the camera looks along -z of the view frame.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import gaussian_filter, maximum_filter

from chromabuild.molecule.colours import Colour

KEY_LIGHT = np.array([-0.45, 0.60, 0.66])
EMPTY = np.float32(-1e30)
HALF = np.float16  # what a pixel shows: an eighth of a step of the picture's 8 bits
LARGE = 5.0  # pixels: larger spheres are drawn in windows of their own, smaller ones all at once
_PIXELS_A_BATCH = 1 << 18  # of the windows of large spheres: fits a processor's cache


def principal_view(points: np.ndarray, tilt: float = 0.0) -> np.ndarray:
    """View frame (3, 3), rows right, up, toward the viewer: looking along the smallest principal axis of the points.

    points (n, 3) angstrom; the longest axis lies horizontally. ``tilt`` degrees turns the object about the horizontal
    axis so that its top comes forward.
    """
    centred = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    right, up = axes[:, 2], axes[:, 1]
    # An eigenvector's sign is arbitrary: choose it from the points, so that pictures are reproducible.
    right = right * (1.0 if ((centred @ right) ** 3).sum() >= 0 else -1.0)
    up = up * (1.0 if ((centred @ up) ** 3).sum() >= 0 else -1.0)
    return _tilted(np.stack([right, up, np.cross(right, up)]), tilt)


def _tilted(view: np.ndarray, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ view


def oblique_view(turn: float, tilt: float) -> np.ndarray:
    """View frame (3, 3) of a box: turned about its z axis, then tilted to be seen from above; degrees."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    front = np.array([[c, -s, 0.0], [0.0, 0.0, 1.0], [-s, -c, 0.0]])
    return _tilted(front, tilt)


def sky_visibility(position: np.ndarray, radius: np.ndarray, directions: int = 48, cell: float = 1.6) -> np.ndarray:
    """Share of the sky that each sphere sees, (n,) in 0..1, from depth maps along evenly spread directions.

    position (n, 3), radius (n,), cell: edge of a depth-map cell, all angstrom.
    """
    k = np.arange(directions) + 0.5
    polar, azimuth = np.arccos(1 - 2 * k / directions), np.pi * (1 + 5**0.5) * k
    sky = np.stack([np.cos(azimuth) * np.sin(polar), np.sin(azimuth) * np.sin(polar), np.cos(polar)], axis=1)
    seen = np.zeros(len(position), dtype=np.float32)
    for direction in sky:
        helper = np.eye(3)[np.argmin(np.abs(direction))]
        right = np.cross(direction, helper)
        right /= np.linalg.norm(right)
        up = np.cross(direction, right)
        plane = position @ np.stack([right, up], axis=1)
        cells = ((plane - plane.min(axis=0)) / cell).astype(np.int32) + 1
        width, height = cells.max(axis=0) + 2
        depth = (position @ direction + radius).astype(np.float32)
        index = cells[:, 1] * width + cells[:, 0]
        top = np.full(width * height, EMPTY)
        for offset in (0, 1, -1, width, -width):
            np.maximum.at(top, index + offset, depth - (0.0 if offset == 0 else 0.8))
        seen += np.clip(1.0 - (top[index] - depth - 1.5) / 5.0, 0.0, 1.0)
    return seen / directions


@dataclass
class Camera:
    """Where the picture is taken from."""

    view: np.ndarray
    """(3, 3), rows right, up, toward the viewer."""
    centre: np.ndarray
    """(3,) the point in the middle of the picture."""
    scale: float
    """Pixels of the final picture an angstrom."""
    size: tuple[int, int]
    """Width and height of the final picture, pixels."""

    @classmethod
    def framing(cls, points: np.ndarray, view: np.ndarray, size: tuple[int, int], margin: float = 0.05,
                radius: float = 0.0) -> "Camera":
        """The camera that shows all points (n, 3), spheres of a radius, with a margin (share of the picture) on every
        side."""
        seen = points @ view.T
        low, high = seen.min(axis=0) - radius, seen.max(axis=0) + radius
        room = np.array(size) * (1 - 2 * margin)
        return cls(view, ((low + high) / 2) @ view, float((room / np.maximum(high - low, 1.0)[:2]).min()), size)


@dataclass
class Canvas:
    """The geometry buffer of one picture. Draw, then ``image()``."""

    camera: Camera
    supersampling: int = 2
    depth: np.ndarray = field(init=False)
    normal: np.ndarray = field(init=False)
    colour: np.ndarray = field(init=False)
    ambient: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        width, height = (side * self.supersampling for side in self.camera.size)
        self.depth = np.full((height, width), EMPTY)
        self.normal = np.zeros((height, width, 3), dtype=HALF)
        self.colour = np.zeros((height, width, 3), dtype=HALF)
        self.ambient = np.ones((height, width), dtype=HALF)

    @property
    def _pixels_per_angstrom(self) -> float:
        return self.camera.scale * self.supersampling

    def _project(self, position: np.ndarray) -> np.ndarray:
        """Buffer column, row and depth, in pixels (n, 3)."""
        height, width = self.depth.shape
        seen = (position - self.camera.centre) @ self.camera.view.T * self._pixels_per_angstrom
        return (seen * [1, -1, 1] + [width / 2, height / 2, 0]).astype(np.float32)

    def draw_spheres(self, position: np.ndarray, radius: np.ndarray, colour: np.ndarray,
                     ambient: np.ndarray | None = None) -> None:
        """Draw shaded spheres: position (n, 3), radius (n,) angstrom, colour (n, 3) and ambient (n,) in 0..1."""
        height, width = self.depth.shape
        centre = self._project(position)
        size = (radius * self._pixels_per_angstrom).astype(np.float32)
        owner = np.full(height * width, -1, dtype=np.int32)
        depth = self.depth.reshape(-1)
        order = np.argsort(-(centre[:, 2] + size), kind="stable")
        inside = ((centre[order, 0] > -size[order]) & (centre[order, 0] < width + size[order])
                  & (centre[order, 1] > -size[order]) & (centre[order, 1] < height + size[order]))
        order = order[inside]
        # Front to back in slabs, so that most of what is hidden is never drawn.
        for slab in np.array_split(order, max(1, min(12, len(order) // 2000))):
            visible = slab[~self._hidden(centre[slab], size[slab])]
            large = size[visible] > LARGE
            self._stamp(depth, owner, centre, size, visible[large])
            # Back to front: where two small spheres write one pixel at once, the last, nearer one stays.
            self._splat(depth, owner, centre, size, visible[~large][::-1])
        colour = np.asarray(colour, dtype=np.float32)
        shade = np.ones(len(position), np.float32) if ambient is None else np.asarray(ambient, dtype=np.float32)
        for rows in self._bands():
            who = owner.reshape(height, width)[rows].ravel()
            pixel = np.flatnonzero(who >= 0)
            who = who[pixel]
            y, x = (k.astype(np.float32) + np.float32(0.5) for k in np.divmod(pixel, width))
            normal = -centre[who]
            normal[:, 0] += x
            normal[:, 1] = -normal[:, 1] - (y + np.float32(rows.start))
            normal[:, 2] += self.depth[rows].ravel()[pixel]
            normal /= size[who, None]
            self.normal[rows].reshape(-1, 3)[pixel] = normal
            self.colour[rows].reshape(-1, 3)[pixel] = colour[who]
            self.ambient[rows].reshape(-1)[pixel] = shade[who]

    def _bands(self, rows: int = 64) -> list[slice]:
        """The buffer cut into bands of rows that fit a processor's cache."""
        rows -= rows % self.supersampling
        return [slice(y, min(y + rows, len(self.depth))) for y in range(0, len(self.depth), rows)]

    def _hidden(self, centre: np.ndarray, size: np.ndarray, tile: int = 8) -> np.ndarray:
        """Whether spheres lie wholly behind what is drawn, judged on tiles of the depth buffer."""
        height, width = self.depth.shape
        rows, columns = height // tile, width // tile
        if rows < 1 or columns < 1:
            return np.zeros(len(centre), dtype=bool)
        nearest = self.depth[: rows * tile].reshape(rows, tile, width).min(axis=1)
        nearest = nearest[:, : columns * tile].reshape(rows, columns, tile).min(axis=2)
        hidden = np.ones(len(centre), dtype=bool)
        reach = int(np.ceil(2 * size.max() / tile))
        first = np.floor((centre[:, :2] - size[:, None]) / tile).astype(int)
        last = np.floor((centre[:, :2] + size[:, None]) / tile).astype(int)
        for dy in range(reach + 1):
            for dx in range(reach + 1):
                column, row = first[:, 0] + dx, first[:, 1] + dy
                counts = (column <= last[:, 0]) & (row <= last[:, 1])
                on = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
                cover = np.where(on, nearest[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)], EMPTY)
                hidden &= ~counts | (cover > centre[:, 2] + size)
        return hidden

    def _stamp(self, depth: np.ndarray, owner: np.ndarray, centre: np.ndarray, size: np.ndarray,
               which: np.ndarray) -> None:
        """Draw large spheres, some at a time, each in the window that holds the largest of them.

        Where two are as near as each other, the one that comes first in ``which`` stays.
        """
        height, width = self.depth.shape
        window = int(2 * size[which].max()) + 2 if len(which) else 1
        reach = np.arange(window, dtype=np.int32)
        for batch in np.array_split(which, -(-len(which) * window**2 // _PIXELS_A_BATCH) or 1):
            half, middle = size[batch], centre[batch]
            square = (half.astype(np.float64) ** 2).astype(np.float32)
            column, row = (np.floor(middle[:, k] - half).astype(np.int32)[:, None] + reach for k in (0, 1))
            dx, dy = (at.astype(np.float32) + (np.float32(0.5) - middle[:, k, None])
                      for k, at in enumerate((column, row)))
            dx[(column < 0) | (column >= width)] = np.inf  # off the picture: never inside
            dy[(row < 0) | (row >= height)] = np.inf
            rest = (square[:, None] - dy * dy)[:, :, None] - (dx * dx)[:, None, :]
            inside = np.flatnonzero(rest > 0)
            ends = np.searchsorted(inside, np.arange(1, len(batch) + 1) * window**2)
            sphere = np.repeat(np.arange(len(batch)), np.diff(ends, prepend=0))
            pixel = ((row * width)[:, :, None] + column[:, None, :]).ravel()[inside]
            z = np.sqrt(rest.ravel()[inside]) + middle[sphere, 2]
            front = np.flatnonzero(z > depth[pixel])[::-1]
            pixel, z, sphere = pixel[front], z[front], sphere[front]
            np.maximum.at(depth, pixel, z)
            nearest = np.flatnonzero(z == depth[pixel])
            owner[pixel[nearest]] = batch[sphere[nearest]]

    def _splat(self, depth: np.ndarray, owner: np.ndarray, centre: np.ndarray, size: np.ndarray,
               which: np.ndarray) -> None:
        """Draw many small spheres, pixel by pixel of the largest one's window."""
        height, width = self.depth.shape
        reach = int(np.ceil(size[which].max())) if len(which) else -1
        base = np.floor(centre[which, :2]).astype(np.int64)
        shift = centre[which, :2] - base - 0.5
        square = size[which] ** 2
        for dy in range(-reach, reach + 1):
            away_y = (dy - shift[:, 1]) ** 2
            near = np.flatnonzero((away_y < square) & (base[:, 1] + dy >= 0) & (base[:, 1] + dy < height))
            for dx in range(-reach, reach + 1) if len(near) else ():
                rest = square[near] - away_y[near] - (dx - shift[near, 0]) ** 2
                column = base[near, 0] + dx
                hit = np.flatnonzero((rest > 0) & (column >= 0) & (column < width))
                if not len(hit):
                    continue
                mine = near[hit]
                pixel = (base[mine, 1] + dy) * width + column[hit]
                z = centre[which[mine], 2] + np.sqrt(rest[hit])
                front = z > depth[pixel]
                depth[pixel[front]] = z[front]
                owner[pixel[front]] = which[mine[front]]

    def draw_cylinder(self, start: np.ndarray, end: np.ndarray, radius: float, colour: Colour) -> None:
        """Draw one cylinder with flat ends from start to end (3,), radius angstrom."""
        height, width = self.depth.shape
        a, b = self._project(np.stack([start, end])).astype(np.float64)
        r = radius * self._pixels_per_angstrom
        x0, y0 = np.maximum(np.floor(np.minimum(a, b)[:2] - r).astype(int), 0)
        x1 = min(int(np.ceil(max(a[0], b[0]) + r)) + 1, width)
        y1 = min(int(np.ceil(max(a[1], b[1]) + r)) + 1, height)
        if x0 >= x1 or y0 >= y1:
            return
        axis = b - a
        length = float(np.linalg.norm(axis))
        for band in self._bands():
            y = max(y0, band.start), min(y1, band.stop)
            if y[0] < y[1]:
                self._draw_side_and_ends(a, axis / length, length, r, _strip(a, axis / length, r, (x0, x1), y), colour)

    def _draw_side_and_ends(self, a: np.ndarray, axis: np.ndarray, length: float, r: float,
                            pixel: tuple[np.ndarray, np.ndarray], colour: Colour) -> None:
        """Draw what some pixels (rows, columns) see of a cylinder from a (3,) along an axis (3,), all in pixels."""
        rows, columns = pixel
        px, py = columns + 0.5 - a[0], rows + 0.5 - a[1]
        # A ray is (px, py, z) with z free. Side: |p - (p.axis) axis| = r, a quadratic in z.
        across = px * axis[0] + py * axis[1]
        qa = 1 - axis[2] ** 2
        depth = np.full(px.shape, -np.inf)
        normal = np.zeros((*px.shape, 3))
        if qa > 1e-9:
            qb = -across * axis[2]
            qc = px**2 + py**2 - across**2 - r**2
            root = qb**2 - qa * qc
            z = (-qb + np.sqrt(np.maximum(root, 0))) / qa
            along = across + z * axis[2]
            side = (root >= 0) & (along >= 0) & (along <= length)
            depth[side] = z[side]
            away = np.stack([px - along * axis[0], py - along * axis[1], z - along * axis[2]], axis=-1) / r
            normal[side] = away[side]
        if abs(axis[2]) > 1e-6:
            for along, sign in ((0.0, -1.0), (length, 1.0)):
                if sign * axis[2] > 0:
                    z = (along - across) / axis[2]
                    off = (px - along * axis[0]) ** 2 + (py - along * axis[1]) ** 2 + (z - along * axis[2]) ** 2
                    cap = (off <= r**2) & (z > depth)
                    depth[cap] = z[cap]
                    normal[cap] = sign * axis
        depth += a[2]
        front = np.isfinite(depth) & (depth > self.depth[rows, columns])
        pixel = rows[front], columns[front]
        self.colour[pixel] = colour
        self.depth[pixel] = depth[front]
        self.normal[pixel] = normal[front] * [1, -1, 1]
        self.ambient[pixel] = 1.0

    def image(self, haze: float = 0.35, outline: float = 0.75) -> np.ndarray:
        """Light the buffer: (height, width, 3) uint8 on white. haze, outline: strengths, 0..1."""
        drawn = self.depth > EMPTY / 2
        if not drawn.any():
            return np.full((self.camera.size[1], self.camera.size[0], 3), 255, dtype=np.uint8)
        near, far = self._ends(drawn)
        crease = self._creases(self._depth(slice(None, None, self.supersampling), drawn, far)[:, ::self.supersampling])
        light = (KEY_LIGHT / np.linalg.norm(KEY_LIGHT)).astype(np.float32)
        half = light + np.float32([0, 0, 1])
        half /= np.linalg.norm(half)
        n = self.supersampling
        height, width = self.depth.shape
        picture = np.empty((self.camera.size[1], self.camera.size[0], 3), dtype=np.uint8)
        for rows in self._bands():
            low = slice(rows.start // n, rows.stop // n)
            around = slice(max(0, rows.start - 1), min(height, rows.stop + 1))
            depth = self._depth(around, drawn, far)
            inner = slice(rows.start - around.start, rows.stop - around.start)
            depth, edge = depth[inner], maximum_filter(depth, size=3)[inner]
            normal, colour, ambient = (one[rows].astype(np.float32) for one in (self.normal, self.colour, self.ambient))
            diffuse = np.clip(normal @ light, 0, 1)
            facing = np.clip(normal[..., 2], 0, 1)
            shine = np.clip(normal @ half, 0, 1)
            for _ in range(5):  # to the power of 32, many times faster than a general power
                shine *= shine
            sky = ambient * np.repeat(np.repeat(crease[low], n, axis=0), n, axis=1)
            shade = sky * (0.66 + 0.20 * facing) + 0.38 * diffuse * (0.35 + 0.65 * sky)
            lit = colour * shade[..., None] + (0.07 * shine * sky)[..., None]
            fog = haze * np.clip((near - depth) / max(near - far, 1.0), 0, 1)[..., None]
            lit = lit * (1 - fog) + fog * np.float32(0.97)
            # The line lies on the farther side of an edge, where a neighbouring pixel is much nearer.
            lit *= (1 - outline * np.clip((edge - depth - 3.0) / 8.0, 0, 1))[..., None]
            lit[~drawn[rows]] = 1.0
            fine = np.clip(lit, 0, 1, out=lit).reshape(low.stop - low.start, n, width // n, n, 3)
            total = sum(fine[:, k // n, :, k % n] for k in range(n * n))  # many times faster than mean(axis=(1, 3))
            picture[low] = (total / np.float32(n * n) * 255 + 0.5).astype(np.uint8)
        return picture

    def _ends(self, drawn: np.ndarray) -> tuple[float, float]:
        """Depth of the nearest and the farthest, angstrom, of every sixteenth pixel but the outermost 0.2 %."""
        found, count = [], 0
        for rows in self._bands():
            values = self.depth[rows][drawn[rows]]
            found.append(values[-count % 16::16])
            count += len(values)
        depth = np.concatenate(found) / np.float32(self._pixels_per_angstrom)
        near, far = np.percentile(depth, [99.8, 0.2])
        return near, far

    def _depth(self, rows: slice, drawn: np.ndarray, far: float) -> np.ndarray:
        """Depth of some rows, angstrom, where nothing is drawn behind everything."""
        depth = self.depth[rows] / np.float32(self._pixels_per_angstrom)
        depth[~drawn[rows]] = far - 30.0
        return depth

    def _creases(self, low: np.ndarray) -> np.ndarray:
        """Screen-space occlusion, a value a final pixel: darker where the surroundings rise toward the viewer.

        What is nearer by much more than the reach floats in front and does not count.
        """
        low = np.ascontiguousarray(low)
        dark = np.zeros_like(low)
        for reach, strength in ((2.5, 0.35), (7.0, 0.4), (18.0, 0.45)):
            pixels = min(reach * self.camera.scale, 120.0)
            total = np.zeros_like(low)
            for k in range(10):
                turn = 2 * np.pi * (k + reach) / 10
                dy, dx = int(round(pixels * np.sin(turn))), int(round(pixels * np.cos(turn)))
                rise = np.maximum((_shifted(low, dy, dx) - low) / np.float32(reach) - np.float32(0.35), 0)
                total += rise / (0.5 + rise * (1 + 0.25 * rise * rise))
            dark += np.float32(strength / 10) * gaussian_filter(total, min(0.35 * pixels, 10.0))
        return 1 - np.clip(dark, 0, 0.7)


def _shifted(image: np.ndarray, dy: int, dx: int) -> np.ndarray:
    """The image moved by whole pixels; what enters repeats the border."""
    height, width = image.shape
    padded = np.pad(image, ((max(dy, 0), max(-dy, 0)), (max(dx, 0), max(-dx, 0))), mode="edge")
    return padded[max(-dy, 0) : max(-dy, 0) + height, max(-dx, 0) : max(-dx, 0) + width]


def _strip(through: np.ndarray, axis: np.ndarray, reach: float, x: tuple[int, int],
           y: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the pixels of a window that lie within reach of an axis (3,), as it is seen, or a bit more.

    The window has the columns x[0]..x[1]-1 and the rows y[0]..y[1]-1; the axis passes ``through`` (3,), in pixels.
    """
    rows = np.arange(*y)
    first, last = np.full(len(rows), x[0]), np.full(len(rows), x[1])
    if abs(axis[1]) > 1e-6:
        middle = through[0] + (rows + 0.5 - through[1]) * axis[0] / axis[1]
        half = reach * np.hypot(*axis[:2]) / abs(axis[1]) + 1.0
        first, last = (np.clip(np.floor(edge), *x).astype(int) for edge in (middle - half, middle + half + 1))
    count = last - first
    columns = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
    return np.repeat(rows, count), columns
