"""Inputs for the shipped pipelines that want more than a photograph, made from photographs. The same ones every time.

python examples/inputs.py photographs FOLDER         photographs to begin with (of scikit-image; public domain, CC0)
python examples/inputs.py stereo PHOTO FOLDER        left.png and right.png, for lens_blur
python examples/inputs.py joint PHOTO PHOTO FOLDER   image1.png, image2.png and mask.png, for pyramid_blend
python examples/inputs.py sparse PHOTO FOLDER        sparse.png, for interpolate and machado_interpolation
python examples/inputs.py network FOLDER             the weights of a network, for vdsr
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

Array = np.ndarray

LAYERS, CHANNELS = 20, 64
NEAR, FAR = 26, 8
"""Disparity of the two images of a stereo pair, in pixels: lens_blur focuses on 26 by default."""


def twelve_bits(photo: Array) -> Array:
    """The photograph as a gray one of 12 bits in uint16, as many cameras give: blur sums three of these, in 16 bits."""
    return (photo @ (0.299, 0.587, 0.114) * (4095 / 255)).round().astype(np.uint16)


def stereo(photo: Array) -> tuple[Array, Array]:
    """A pair for lens_blur from a photograph of shape (H, W, 3): what is in an ellipse in its middle is near.

    What the left image has at x, the right one has NEAR or FAR pixels further right. What comes into sight behind the
    ellipse is the background's own edge.
    """
    height, width = photo.shape[:2]
    y, x = np.mgrid[:height, :width]

    def near(at: Array) -> Array:
        return ((at - width / 2) / (0.3 * width)) ** 2 + ((y - 0.6 * height) / (0.55 * height)) ** 2 < 1

    shift = np.where(near(x - NEAR), NEAR, FAR)
    return photo, photo[y, np.clip(x - shift, 0, width - 1)]


def joint(one: Array, two: Array) -> tuple[Array, Array, Array]:
    """Two photographs cut to the same size around their middles, and a mask: the first within a circle."""
    height, width = (min(a, b) for a, b in zip(one.shape, two.shape[:2], strict=False))
    y, x = np.mgrid[:height, :width]
    inside = np.hypot(x - width / 2, y - height / 2) < 0.38 * min(width, height)
    return _middle(one, width, height), _middle(two, width, height), np.uint8(255) * inside


def sparse(photo: Array, share: float = 0.08) -> Array:
    """The photograph with an alpha channel that is opaque at few points, chosen at random."""
    opaque = np.random.default_rng(1).random(photo.shape[:2]) < share
    return np.dstack([photo * opaque[..., None], np.uint8(255) * opaque])


def network(gain: float = 0.9) -> dict[str, Array]:
    """Weights of vdsr, by input, with which it sharpens: an unsharp mask spread over 20 layers.

    Channel 0 carries the image along, channel 1 is blurred once in each layer; the last one adds `gain` times their
    difference. The other channels are random and come to nothing, but take their time. Nobody trained this.
    """
    rng = np.random.default_rng(2)
    blur = np.outer((1, 2, 1), (1, 2, 1)) / 16
    same = np.zeros((3, 3))
    same[1, 1] = 1
    first = rng.normal(0, np.sqrt(2 / 9), (CHANNELS, 3, 3))
    middle = rng.normal(0, np.sqrt(2 / (9 * CHANNELS)), (LAYERS - 2, CHANNELS, CHANNELS, 3, 3))
    last = np.zeros((CHANNELS, 3, 3))
    first[0], first[1] = same, blur
    middle[:, :2] = 0
    middle[:, 0, 0], middle[:, 1, 1] = same, blur
    last[0], last[1] = gain * same, -gain * blur
    biases = np.zeros((LAYERS - 1, CHANNELS))
    arrays = {"first_weights": first, "weights": middle, "last_weights": last, "biases": biases}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _middle(photo: Array, width: int, height: int) -> Array:
    top, left = (photo.shape[0] - height) // 2, (photo.shape[1] - width) // 2
    return photo[top : top + height, left : left + width]


def _photo(path: Path) -> Array:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def _made(command: str, photos: list[Path]) -> dict[str, Array]:
    """The arrays of a command, by the name of their file."""
    if command == "photographs":
        from skimage import data

        made = {f"{name}.png": getattr(data, name)() for name in ("astronaut", "coffee", "chelsea")}
        return {**made, "twelve_bits.png": twelve_bits(made["astronaut.png"])}
    pictures = [_photo(path) for path in photos]
    if command == "stereo":
        return dict(zip(("left.png", "right.png"), stereo(*pictures), strict=True))
    if command == "joint":
        return dict(zip(("image1.png", "image2.png", "mask.png"), joint(*pictures), strict=True))
    if command == "sparse":
        return {"sparse.png": sparse(*pictures)}
    return {f"{name}.npy": array for name, array in network().items()}


def main() -> int:
    """Writes what is asked for and prints the names of the files; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for command, photos in {"photographs": 0, "stereo": 1, "joint": 2, "sparse": 1, "network": 0}.items():
        one = commands.add_parser(command)
        one.add_argument("photos", nargs=photos, type=Path, metavar="PHOTO") if photos else one.set_defaults(photos=[])
        one.add_argument("folder", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    try:
        made = _made(asked.command, asked.photos)
        asked.folder.mkdir(parents=True, exist_ok=True)
        for name, array in made.items():
            path = asked.folder / name
            Image.fromarray(array).save(path) if path.suffix == ".png" else np.save(path, array)
            print(path)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
