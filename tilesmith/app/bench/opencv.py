"""Shipped pipelines by OpenCV's own functions, those that it has the operations of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[[], tuple[np.ndarray, ...]]


def _unsharp(image: np.ndarray) -> Run:
    import cv2

    gaussian = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2)) / (np.sqrt(2 * np.pi) * 1.5)
    taps = gaussian.astype(np.float32)

    def run() -> tuple[np.ndarray, ...]:
        red, green, blue = image
        gray = cv2.addWeighted(red, 0.299, green, 0.587, 0)
        cv2.scaleAdd(blue, 0.114, gray, gray)
        smooth = cv2.sepFilter2D(gray, cv2.CV_32F, taps, taps, borderType=cv2.BORDER_REPLICATE)
        ratio = cv2.divide(cv2.addWeighted(gray, 2, smooth, -1, 0), gray)
        return (np.stack([cv2.multiply(ratio, plane) for plane in image]),)

    return run


def _gaussian3x3(image: np.ndarray) -> Run:
    import cv2

    planes = np.empty_like(image)

    def run() -> tuple[np.ndarray, ...]:
        for source, target in zip(image, planes, strict=True):
            cv2.GaussianBlur(source, (3, 3), 0, target, borderType=cv2.BORDER_REPLICATE)
        return (planes,)

    return run


def _sobel(image: np.ndarray) -> Run:
    import cv2

    def run() -> tuple[np.ndarray, ...]:
        gx = cv2.Sobel(image, cv2.CV_32F, 1, 0, borderType=cv2.BORDER_REPLICATE)
        gy = cv2.Sobel(image, cv2.CV_32F, 0, 1, borderType=cv2.BORDER_REPLICATE)
        return (cv2.convertScaleAbs(cv2.magnitude(gx, gy)),)

    return run


def _laplacian_sharpen(image: np.ndarray) -> Run:
    import cv2

    kernel = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
    planes = np.empty_like(image)

    def run() -> tuple[np.ndarray, ...]:
        for source, target in zip(image, planes, strict=True):
            cv2.filter2D(source, cv2.CV_8U, kernel, target, borderType=cv2.BORDER_REPLICATE)
        return (planes,)

    return run


def _harris(image: np.ndarray) -> Run:
    import cv2

    interleaved = np.ascontiguousarray(np.moveaxis(image, 0, -1))  # what OpenCV's images are

    def run() -> tuple[np.ndarray, ...]:
        gray = cv2.cvtColor(interleaved, cv2.COLOR_RGB2GRAY)
        return (cv2.cornerHarris(gray, blockSize=3, ksize=3, k=0.04)[3:-3, 3:-3],)

    return run


OPENCV: dict[str, Callable[[np.ndarray], Run]] = {
    "unsharp": _unsharp,
    "gaussian3x3": _gaussian3x3,
    "harris": _harris,
    "sobel": _sobel,
    "laplacian_sharpen": _laplacian_sharpen,
}
