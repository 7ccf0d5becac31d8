"""Glyphs and scenes: the same for the same seed, with boxes that hold what was drawn."""

import numpy as np

from regard.images.glyphs import glyphs, scenes


def test_glyphs_are_a_function_of_the_seed() -> None:
    first, again, other = (list(glyphs(9, 23, seed=seed, letters="AB7")) for seed in (1, 1, 2))
    assert [name for _, name in first] == ["A", "B", "7"] * 3
    assert all(picture.shape == (1, 23, 23) and picture.dtype == np.uint8 for picture, _ in first)
    assert all((one == two).all() for (one, _), (two, _) in zip(first, again, strict=True))
    assert any((one != two).any() for (one, _), (two, _) in zip(first, other, strict=True))


def test_scenes_have_boxes_inside_that_do_not_touch() -> None:
    for scene in scenes(20, 47, seed=3):
        assert scene.pixels.shape == (1, 47, 47)
        assert len(scene.boxes) == len(scene.labels)
        assert ((scene.boxes >= 0) & (scene.boxes <= 47)).all()
        assert (scene.boxes[:, 2:] > scene.boxes[:, :2]).all()
