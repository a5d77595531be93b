"""Smaller networks of the kind of the shipped one, which is large."""

from __future__ import annotations

import json
import re

import numpy as np

from tilesmith.scheduler import pipelines

LAYERS, CHANNELS = 20, 64


def vdsr(layers: int, channels: int) -> dict:
    """The document of vdsr with as many convolutions, the first and the last among them, and as many channels."""
    document = pipelines.document("vdsr")
    kept = {"output", *(f"conv_{k}" for k in range(1, layers)), f"conv_{LAYERS}"}
    document["stages"] = [s for s in document["stages"] if s["name"] in kept]
    text = re.sub(rf"\b{CHANNELS}\b", str(channels), json.dumps(document))
    text = text.replace(f"conv_{LAYERS - 1}(", f"conv_{layers - 1}(")
    smaller: dict = json.loads(text)
    smaller["estimates"]["weights"][4][1] = max(layers - 2, 1)
    smaller["estimates"]["biases"][1][1] = layers - 1
    return smaller


def weights(layers: int, channels: int, seed: int) -> dict[str, np.ndarray]:
    """The inputs of such a network but the image: weights that keep the magnitude from layer to layer."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int, fan_in: int) -> np.ndarray:
        return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    return {
        "first_weights": normal(channels, 3, 3, fan_in=9),
        "weights": normal(max(layers - 2, 1), channels, channels, 3, 3, fan_in=9 * channels),
        "last_weights": normal(channels, 3, 3, fan_in=9 * channels),
        "biases": normal(layers - 1, channels, fan_in=200),
    }
