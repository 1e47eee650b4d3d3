"""The renderer: pictures are judged by where which colour stands, not by their bytes."""

import numpy as np
import pytest

from chromabuild.report.render import Camera, Canvas, oblique_view, principal_view, sky_visibility

RED, GREEN = np.array([0.9, 0.1, 0.1]), np.array([0.1, 0.8, 0.1])


def picture(position, radius, colour, size=(120, 90), **options):
    camera = Camera(np.eye(3), np.zeros(3), 2.0, size)
    canvas = Canvas(camera)
    canvas.draw_spheres(np.array(position, float), np.array(radius, float), np.array(colour, float))
    return canvas.image(**options)


def test_empty_picture_is_white():
    assert (Canvas(Camera(np.eye(3), np.zeros(3), 1.0, (8, 6))).image() == 255).all()


@pytest.mark.parametrize("radius", [1.0, 15.0])  # small spheres are splatted, large ones stamped
def test_sphere_covers_its_disc(radius):
    image = picture([[0, 0, 0]], [radius], [RED])
    covered = (image < 250).any(axis=2).sum()
    # A disc of 2 pixels an angstrom; the edge is anti-aliased over about one pixel of the circumference.
    assert covered == pytest.approx(np.pi * (2 * radius) ** 2, abs=2 * np.pi * 2 * radius + 4)
    rows, columns = np.nonzero((image < 250).any(axis=2))
    assert abs(rows.mean() - 44.5) < 1 and abs(columns.mean() - 59.5) < 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("radius", [1.5, 10.0])
def test_nearer_sphere_hides_the_farther(order, radius):
    position = np.array([[0, 0, 30.0], [0, 0, -30.0]])[list(order)]
    colour = np.array([RED, GREEN])[list(order)]
    centre = picture(position, [radius, radius], colour)[45, 60].astype(int)
    assert centre[0] > centre[1] + 50


def test_spheres_that_pass_through_each_other_meet_on_the_plane_between():
    image = picture([[-4, 0, 0], [4, 0, 0]], [10, 10], [RED, GREEN], outline=0).astype(int)
    row = image[45]
    left, right = row[45, 0] - row[45, 1], row[74, 0] - row[74, 1]
    assert left > 30 and right < -30


def test_hidden_spheres_do_not_change_the_picture():
    shell = np.array([[x, y, 20.0] for x in range(-30, 31, 2) for y in range(-22, 23, 2)], float)
    inside = shell - [0, 0, 25]
    alone = picture(shell, np.full(len(shell), 3.0), np.tile(RED, (len(shell), 1)), haze=0)
    both = picture(np.concatenate([inside, shell]), np.full(2 * len(shell), 3.0),
                   np.concatenate([np.tile(GREEN, (len(shell), 1)), np.tile(RED, (len(shell), 1))]), haze=0)
    middle = np.s_[15:75, 20:100]
    assert (alone[middle] == both[middle]).all()


def test_cylinder_seen_along_and_across_its_axis():
    for start, end, area in (([0, 0, -10], [0, 0, 10], np.pi * 8**2), ([-15, 0, 0], [15, 0, 0], 30 * 16)):
        canvas = Canvas(Camera(np.eye(3), np.zeros(3), 2.0, (120, 90)))
        canvas.draw_cylinder(np.array(start, float), np.array(end, float), 8.0, tuple(RED))
        covered = (canvas.image() < 250).any(axis=2).sum()
        assert covered == pytest.approx(4 * area, rel=0.08)


def test_buried_sphere_sees_less_sky():
    grid = np.stack(np.meshgrid(*[np.arange(-12, 13, 3.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    sky = sky_visibility(grid, np.full(len(grid), 1.9))
    distance = np.linalg.norm(grid, axis=1)
    assert sky[distance < 1].max() < 0.1
    assert sky[distance > 18].min() > 0.4


def test_views_are_right_handed_and_look_along_the_thin_axis():
    rng = np.random.default_rng(3)
    points = rng.normal(0, [40, 5, 20], (500, 3))
    for view in (principal_view(points), principal_view(points, 20), oblique_view(20, 20)):
        assert np.allclose(view @ view.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(view) == pytest.approx(1)
    assert abs(principal_view(points)[2, 1]) > 0.98
    assert oblique_view(20, 20)[2, 2] > 0  # the box is seen from above


def test_camera_shows_every_point():
    rng = np.random.default_rng(4)
    points = rng.normal(0, [300, 30, 10], (200, 3))
    camera = Camera.framing(points, principal_view(points), (400, 300), margin=0.05)
    seen = (points - camera.centre) @ camera.view.T * camera.scale
    assert (np.abs(seen[:, 0]) <= 180 + 1e-6).all() and (np.abs(seen[:, 1]) <= 135 + 1e-6).all()
    assert np.abs(seen[:, 0]).max() == pytest.approx(180)
