"""Augmentations against Pillow's own operations, and what each may and may not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from weft.data import AugmentConfig, batches, open_source
from weft.data.augment import colour, geometry, mixing, policy
from weft.data.augment.pipeline import Augmenter

INDEX = np.arange(16)


@pytest.fixture
def images() -> torch.Tensor:
    """(16, 3, 24, 24) smooth colour images of varied range."""
    generator = torch.Generator().manual_seed(0)
    small = torch.rand(16, 3, 6, 6, generator=generator) * torch.linspace(0.3, 1, 16).view(-1, 1, 1, 1)
    return (torch.nn.functional.interpolate(small, size=24, mode="bilinear") * 255).to(torch.uint8)


def pillow(images: torch.Tensor, operation) -> torch.Tensor:
    """The same operation on each image by Pillow."""
    done = [operation(number, Image.fromarray(image.permute(1, 2, 0).numpy())) for number, image in enumerate(images)]
    return torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1) for image in done])


FACTORS = np.linspace(0.1, 1.9, 16)
BITS = np.arange(16) % 7 + 2
THRESHOLDS = np.linspace(0, 255, 16)


@pytest.mark.parametrize(
    ("ours", "theirs", "off"),
    [
        (lambda x: colour.brightness(x, FACTORS), lambda n, x: ImageEnhance.Brightness(x).enhance(FACTORS[n]), 1),
        (lambda x: colour.contrast(x, FACTORS), lambda n, x: ImageEnhance.Contrast(x).enhance(FACTORS[n]), 1),
        (lambda x: colour.saturation(x, FACTORS), lambda n, x: ImageEnhance.Color(x).enhance(FACTORS[n]), 1),
        (lambda x: colour.sharpness(x, FACTORS), lambda n, x: ImageEnhance.Sharpness(x).enhance(FACTORS[n]), 2),
        (lambda x: colour.posterize(x, BITS), lambda n, x: ImageOps.posterize(x, int(BITS[n])), 0),
        (lambda x: colour.solarize(x, THRESHOLDS), lambda n, x: ImageOps.solarize(x, THRESHOLDS[n]), 0),
        (colour.autocontrast, lambda n, x: ImageOps.autocontrast(x), 1),
        (colour.equalize, lambda n, x: ImageOps.equalize(x), 0),
    ],
    ids=["brightness", "contrast", "saturation", "sharpness", "posterize", "solarize", "autocontrast", "equalize"],
)
def test_colour_operations_are_pillows(images, ours, theirs, off):
    """Pillow truncates where we round, hence one level."""
    ours_done, theirs_done = ours(images), pillow(images, theirs)
    assert (ours_done.int() - theirs_done.int()).abs().max() <= off
    assert not torch.equal(ours_done, images)


def test_affine_maps_are_pillows(images):
    maps = np.tile(np.eye(2, 3), (16, 1, 1))
    maps[:, 0, 2] = 0.25  # a quarter of half the side: 3 pixels to the left
    maps[:, 0, 1] = 0.5
    # Pillow maps pixel corners of the result to pixel corners of the image; ours are in [-1, 1] about the centre.
    matrix = (1.0, 0.5, 3.0 - 6.0, 0.0, 1.0, 0.0)
    theirs = pillow(images, lambda n, x: x.transform(x.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR))
    inside = slice(4, 20)  # at the border Pillow drops what we blend with black
    difference = (geometry.affine(images, maps).int() - theirs.int()).abs()
    assert difference[:, :, inside, inside].float().quantile(0.95) <= 2


def test_a_flip_mirrors_the_chosen_half(images):
    draws = np.linspace(0, 0.99, 16)[:, None]
    done = geometry.flip(images, draws)
    assert torch.equal(done[:8], images[:8].flip(-1))
    assert torch.equal(done[8:], images[8:])


def test_a_padded_crop_shifts_each_image_by_its_own_draw(images):
    draws = np.array([[row / 5 + 0.01, column / 5 + 0.01] for row in range(4) for column in range(4)])
    done = geometry.padded_crop(images, draws, padding=2)
    for number in range(16):
        down, across = divmod(number, 4)
        moved = torch.nn.functional.pad(images[number], [2, 2, 2, 2])[:, down : down + 24, across : across + 24]
        assert torch.equal(done[number], moved)


def test_a_resized_crop_of_everything_is_the_image(images):
    whole = np.tile([0.0, 0.0, 1.0, 1.0], (16, 1))
    assert torch.equal(geometry.resized_crop(images, whole), images)


def test_crop_boxes_stay_inside_and_keep_to_their_area():
    boxes = geometry.crop_boxes(np.random.default_rng(0).random((1000, 4)), (0.35, 1.0))
    assert (boxes >= 0).all() and (boxes[:, 0] + boxes[:, 2] <= 1 + 1e-9).all()
    assert (boxes[:, 1] + boxes[:, 3] <= 1 + 1e-9).all()
    area = boxes[:, 2] * boxes[:, 3]
    assert area.min() >= 0.3 and area.max() <= 1.0


def test_every_operation_of_a_policy_occurs_and_changes_its_images(images):
    many = images.repeat(40, 1, 1, 1)
    for number, name in enumerate(policy.OPERATIONS):
        chosen = np.full(len(many), number)
        done = policy.apply(many, chosen, np.full(len(many), 0.7), np.zeros(len(many), bool), policy.WIDE)
        assert torch.equal(done, many) == (name == "identity"), name


def test_policies_at_no_strength_leave_geometry_and_colour_alone(images):
    for name in ("shear_x", "translate_y", "rotate", "brightness", "contrast", "sharpness", "posterize"):
        chosen = np.full(16, policy.OPERATIONS.index(name))
        done = policy.apply(images, chosen, np.zeros(16), np.zeros(16, bool), policy.WIDE)
        assert (done.int() - images.int()).abs().max() <= 0, name


def test_erasing_fills_with_the_mean_whatever_the_normalisation():
    """0 is the training mean of centred images; in [0, 1] it would be black."""
    images = torch.rand(64, 3, 16, 16) * 0.5 + 0.5
    augmenter = Augmenter(AugmentConfig(reprob=1.0), 0)
    index = np.arange(64)
    erased = augmenter.erase(images, 0, index, centred=False)
    changed = erased != images
    means = images.mean((2, 3), keepdim=True).expand_as(images)
    assert changed.flatten(1).any(1).all() and torch.equal(erased[changed], means[changed])
    assert (augmenter.erase(images, 0, index)[changed] == 0).all()


def test_erasing_hits_its_share_of_images_and_pixels():
    generator = np.random.default_rng(0)
    images = torch.ones(2000, 1, 32, 32)
    erased = mixing.erase(images, generator.random((2000, 5)), 0.25)
    hit = (erased == 0).flatten(1).any(1)
    assert 0.2 < hit.float().mean() < 0.3
    share = (erased[hit] == 0).float().mean((1, 2, 3))
    assert share.min() > 0.01 and share.max() < 0.36


def test_cutmix_weighs_the_target_by_the_pixels_that_stayed():
    draws = np.random.default_rng(1).random((500, 5))
    mix = mixing.draw_mix(draws, torch.Size([500, 1, 16, 16]), mixup=0.0, cutmix=1.0, probability=0.8)
    own, other = torch.zeros(500, 1, 16, 16), torch.ones(500, 1, 16, 16)
    mixed = mix.images(own, other)
    stayed = 1 - mixed.mean((1, 2, 3))
    targets = mix.targets(torch.ones(500), torch.zeros(500))
    torch.testing.assert_close(targets, stayed)
    assert 0.1 < (stayed == 1).float().mean() < 0.3


def test_mixup_weighs_pixels_and_target_alike_and_draws_from_a_beta():
    draws = np.random.default_rng(2).random((4000, 5))
    mix = mixing.draw_mix(draws, torch.Size([4000, 1, 2, 2]), mixup=0.4, cutmix=0.0, probability=1.0)
    mixed = mix.images(torch.ones(4000, 1, 2, 2), torch.zeros(4000, 1, 2, 2)).mean((1, 2, 3))
    torch.testing.assert_close(mix.targets(torch.ones(4000), torch.zeros(4000)), mixed)
    assert abs(float(mixed.mean()) - 0.5) < 0.02
    assert abs(float(mixed.var()) - 1 / (4 * (2 * 0.4 + 1))) < 0.01  # variance of Beta(a, a)


def test_mixed_targets_are_distributions_and_binary_ones_stay_flat():
    config = AugmentConfig(mixup=0.5, cutmix=0.5)
    batch = batches(open_source("digits"), "train", 32, augment=config)[0]
    assert batch.targets.shape == (32, 10)
    torch.testing.assert_close(batch.targets.sum(1), torch.ones(32))
    assert ((batch.targets > 0).sum(1) == 2).any()
    assert mixing.partners(np.arange(5), 5).tolist() == [1, 0, 3, 2, 4]


def test_each_augmentation_is_keyed_by_seed_step_and_index(images):
    config = AugmentConfig(flip=True, crop_padding=2, policy="rand", color_jitter=0.3)
    first = Augmenter(config, seed=0).pixels(images, 5, INDEX)
    assert torch.equal(first, Augmenter(config, seed=0).pixels(images, 5, INDEX))
    assert not torch.equal(first, Augmenter(config, seed=1).pixels(images, 5, INDEX))
    assert not torch.equal(first, Augmenter(config, seed=0).pixels(images, 6, INDEX))
    assert not torch.equal(first, Augmenter(config, seed=0).pixels(images, 5, INDEX + 16))


def test_a_grey_image_survives_every_augmentation():
    config = AugmentConfig(resized_crop=(0.5, 1.0), color_jitter=0.5, policy="trivial", reprob=0.5)
    batch = batches(open_source("digits"), "train", 64, augment=config)[0]
    assert batch.inputs["x"].shape == (64, 1, 8, 8) and batch.inputs["x"].isfinite().all()
