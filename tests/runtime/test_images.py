"""Files to arrays and back: depth, channels, planes, and files that are not what they say."""

import struct
import zlib

import numpy as np
import png
import pytest
import tifffile
from PIL import Image

from tilesmith.app.runtime import images
from tilesmith.app.runtime.images import ImageError
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import TYPES

RNG = np.random.default_rng(5)


def wanted(type_="uint8", dims=("x", "y")):
    return Input("input", TYPES[type_], tuple(dims), None, tuple(dims))


def picture(tmp_path, samples, name="picture.png"):
    path = tmp_path / name
    if samples.dtype == np.uint16 and path.suffix == ".png":
        rows = samples.reshape(samples.shape[0], -1)
        with path.open("wb") as file:
            png.Writer(samples.shape[1], samples.shape[0], greyscale=samples.ndim == 2, bitdepth=16).write(file, rows)
    else:
        Image.fromarray(samples).save(path)
    return path


def integers(shape, dtype):
    return RNG.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_keep_every_bit_of_integers(tmp_path, dtype, suffix, channels):
    dims = ("x", "y") if channels == 1 else ("x", "y", "c")
    shape = (5, 7) if channels == 1 else (3, 5, 7)
    array = integers(shape, dtype)
    path = tmp_path / f"a{suffix}"
    images.write(path, array, dims)
    assert np.array_equal(images.read(path, wanted(dtype, dims), channels), array)


def test_sixteen_bits_of_colour_are_not_reduced_to_eight(tmp_path):
    samples = integers((4, 6, 3), np.uint16)
    array = images.read(picture(tmp_path, samples), wanted("uint16", ("x", "y", "c")), 3)
    assert np.array_equal(array, samples.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("dims", "axes"), [(("x", "y", "c"), (2, 0, 1)), (("c", "x", "y"), (0, 1, 2)), (("x", "c", "y"), (0, 2, 1))]
)
def test_planes_follow_the_dims(tmp_path, dims, axes):
    samples = integers((4, 6, 3), np.uint8)
    path = picture(tmp_path, samples)
    assert np.array_equal(images.read(path, wanted("uint8", dims), 3), samples.transpose(axes))
    images.write(tmp_path / "again.png", samples.transpose(axes), dims)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "again.png")), samples)


@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 255), (np.uint16, 65535)])
def test_floats_are_read_from_0_to_1(tmp_path, dtype, top):
    samples = integers((4, 6), dtype)
    array = images.read(picture(tmp_path, samples), wanted("float32"))
    assert array.dtype == np.float32
    assert np.array_equal(array, samples.astype(np.float32) / np.float32(top))


def test_floats_are_clipped_and_no_number_is_black(tmp_path):
    array = np.array([[-1.0, 0.5, 2.0, np.nan]], dtype=np.float32)
    images.write(tmp_path / "a.png", array, ("x", "y"))
    assert np.asarray(Image.open(tmp_path / "a.png")).tolist() == [[0, 128, 255, 0]]
    images.write(tmp_path / "a.tif", array, ("x", "y"))
    assert tifffile.imread(tmp_path / "a.tif").tolist() == [[0, 32768, 65535, 0]]


def test_stretch_uses_the_whole_range(tmp_path):
    array = np.linspace(-3e-4, 7e-4, 300, dtype=np.float32).reshape(15, 20)
    images.write(tmp_path / "a.png", array, ("x", "y"), stretch=True)
    written = np.asarray(Image.open(tmp_path / "a.png"))
    assert (written.min(), written.max()) == (0, 255)
    images.write(tmp_path / "flat.png", np.zeros((2, 2), np.float32), ("x", "y"), stretch=True)
    assert not np.asarray(Image.open(tmp_path / "flat.png")).any()


def test_bool_is_black_and_white_both_ways(tmp_path):
    array = np.array([[True, False], [False, True]])
    images.write(tmp_path / "a.png", array, ("x", "y"))
    assert np.asarray(Image.open(tmp_path / "a.png")).tolist() == [[255, 0], [0, 255]]
    Image.fromarray(array).save(tmp_path / "bits.png")
    assert np.array_equal(images.read(tmp_path / "bits.png", wanted("bool")), array)


def test_npy_has_the_dims_reversed_and_any_byte_order(tmp_path):
    array = RNG.random((3, 4, 5), dtype=np.float32)
    images.write(tmp_path / "a.npy", array, ("x", "y", "c"))
    assert np.array_equal(images.read(tmp_path / "a.npy", wanted("float32", ("x", "y", "c"))), array)
    np.save(tmp_path / "big.npy", array.astype(">f4"))
    read = images.read(tmp_path / "big.npy", wanted("float32", ("x", "y", "c")))
    assert read.dtype == np.float32
    assert np.array_equal(read, array)


def test_orientation_of_a_camera_is_applied(tmp_path):
    samples = integers((4, 6), np.uint8)
    exif = Image.Exif()
    exif[274] = 6  # the camera was turned: shown after a quarter turn clockwise
    Image.fromarray(samples).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(images.read(tmp_path / "a.png", wanted()), np.rot90(samples, -1))


def test_palette_and_compressed_tiff(tmp_path):
    samples = np.repeat(integers((4, 6, 1), np.uint8), 3, axis=2)
    Image.fromarray(samples).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "p.png")
    assert np.array_equal(images.read(tmp_path / "p.png", wanted("uint8", "xyc"), 3), samples.transpose(2, 0, 1))
    Image.fromarray(samples).save(tmp_path / "lzw.tif", compression="tiff_lzw")
    assert np.array_equal(images.read(tmp_path / "lzw.tif", wanted("uint8", "xyc"), 3), samples.transpose(2, 0, 1))


def test_planar_tiff_of_16_bits(tmp_path):
    planes = integers((3, 4, 6), np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", planes, photometric="rgb", planarconfig="separate")
    assert np.array_equal(images.read(tmp_path / "a.tif", wanted("uint16", "xyc"), 3), planes)


def test_tiffs_that_are_no_picture_are_refused(tmp_path):
    tifffile.imwrite(tmp_path / "volume.tif", np.zeros((2, 16, 16), np.uint16), volumetric=True, tile=(2, 16, 16))
    with pytest.raises(ImageError, match="a volume, of 2 pictures") as caught:
        images.read(tmp_path / "volume.tif", wanted("uint16"))
    assert caught.value.code == "image_dims"
    tifffile.imwrite(tmp_path / "flat.tif", np.zeros((5, 7), np.uint16))
    with tifffile.TiffFile(tmp_path / "flat.tif", mode="r+") as file:
        file.pages.first.tags["ImageLength"].overwrite(0)
    with pytest.raises(ImageError, match="empty picture, of 7 x 0 pixels"):
        images.read(tmp_path / "flat.tif", wanted("uint16"))


def test_pngs_of_sixteen_bits_have_no_palette(tmp_path):
    head = b"IHDR" + struct.pack(">IIBBBBB", 7, 5, 16, 3, 0, 0, 0)
    chunk = struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)
    with pytest.raises(ImageError, match="damaged"):
        images.read(tmp_path / "a.png", wanted("uint16"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "image_too_large"),
        (NotImplementedError("24-bit integers"), "image_format"),
        (ZeroDivisionError(), "image_unreadable"),
    ],
)
def test_what_libraries_raise_is_told(tmp_path, monkeypatch, error, code):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(images.np, "load", fail)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0")
    with pytest.raises(ImageError, match="npy") as caught:
        images.read(tmp_path / "a.npy", wanted())
    assert caught.value.code == code


def test_signalling_nans_are_black(tmp_path):
    array = np.full((2, 3), 0x7F800001, np.uint32).view(np.float32)
    images.write(tmp_path / "a.png", array, ("x", "y"))
    assert np.asarray(Image.open(tmp_path / "a.png")).max() == 0


def test_headers_of_arrays_that_are_no_python(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.uint8))
    content = (tmp_path / "a.npy").read_bytes()
    for old, new in ((b"{'descr'", b"{\0(escr'"), (b"False", b"Fa/se")):
        (tmp_path / "a.npy").write_bytes(content.replace(old, new))
        with pytest.raises(ImageError, match="damaged") as caught:
            images.read(tmp_path / "a.npy", wanted())
        assert caught.value.code == "image_unreadable"
        assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize(
    ("samples", "input_", "channels", "code", "words"),
    [
        (np.zeros((2, 3), np.uint16), wanted("uint8"), None, "image_depth", "16 bit.*uint8.*8 bits"),
        (np.zeros((2, 3), np.uint8), wanted("uint16"), None, "image_depth", "8 bit.*uint16.*16 bits"),
        (np.zeros((2, 3), np.uint16), wanted("int16"), None, "image_depth", "16 bit.*int16"),
        (np.zeros((2, 3, 3), np.uint8), wanted("uint8"), None, "image_channels", "3 channels .RGB.*wants 1"),
        (np.zeros((2, 3), np.uint8), wanted("uint8", "xyc"), 3, "image_channels", "1 channel .gray.*wants 3"),
        (np.zeros((2, 3, 4), np.uint8), wanted("uint8", "xyc"), 3, "image_channels", "4 channels .RGBA.*wants 3"),
        (np.zeros((2, 3), np.uint8), wanted("uint8", "i"), None, "image_dims", "picture.*dims .i."),
    ],
)
def test_the_wrong_picture_is_refused_with_a_remedy(tmp_path, samples, input_, channels, code, words):
    with pytest.raises(ImageError, match=words) as caught:
        images.read(picture(tmp_path, samples), input_, channels)
    assert caught.value.code == code
    assert caught.value.hint


def test_convert_changes_depth_and_channels(tmp_path):
    gray8 = picture(tmp_path, np.array([[0, 128, 255]], np.uint8), "gray.png")
    assert images.read(gray8, wanted("uint16"), None, convert=True).tolist() == [[0, 128 * 257, 65535]]
    gray16 = picture(tmp_path, np.array([[0, 128 * 257, 65535]], np.uint16), "gray16.png")
    assert images.read(gray16, wanted("uint8"), None, convert=True).tolist() == [[0, 128, 255]]
    colour = picture(tmp_path, np.array([[[255, 0, 0], [255, 255, 255]]], np.uint8), "colour.png")
    assert images.read(colour, wanted("uint8"), None, convert=True).tolist() == [[76, 255]]
    assert images.read(gray8, wanted("uint8", "xyc"), 3, convert=True).tolist() == [[[0, 128, 255]]] * 3
    assert images.read(colour, wanted("uint8", "xyc"), 4, convert=True)[3].tolist() == [[255, 255]]


@pytest.mark.parametrize(
    ("array", "code", "words"),
    [
        (np.zeros((2, 3, 4), np.float32), "image_dims", r"shape \(2, 3, 4\).*\[x, y\]"),
        (np.zeros((2, 3), np.float64), "image_depth", "float64.*float32"),
        (np.zeros((0, 3), np.float32), "image_dims", "empty"),
        (np.array([[{}]]), "image_unreadable", "damaged|pickle|Object"),
    ],
)
def test_the_wrong_array_is_refused(tmp_path, array, code, words):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ImageError, match=words) as caught:
        images.read(tmp_path / "a.npy", wanted("float32"))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.full((2, 3), 0.5), "(array * 255).round().astype('uint8')"),
        (np.full((2, 3), 200.0), "array.astype('uint8')"),
        (np.full((2, 3), 1, np.int64), "array.astype('uint8')"),
    ],
)
def test_floats_of_a_picture_are_scaled_before_they_are_integers(tmp_path, array, hint):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ImageError) as caught:
        images.read(tmp_path / "a.npy", wanted("uint8"))
    assert str(caught.value.hint).endswith(f"save {hint}") or str(caught.value.hint) == f"save it with {hint}"
    tifffile.imwrite(tmp_path / "a.tif", array.astype(np.float32))
    with pytest.raises(ImageError) as caught:
        images.read(tmp_path / "a.tif", wanted("uint8"))
    assert caught.value.hint == "scale its floats to 0..255, and pass them as .npy"


@pytest.mark.parametrize("name", ["a.png", "a16.png", "a.tif", "a16.tif", "a.jpg", "a.npy"])
def test_a_file_cut_short_is_refused_wherever_it_is_cut(tmp_path, name):
    path = tmp_path / name
    samples = integers((40, 60), np.uint16 if "16" in name else np.uint8)
    images.write(path, samples, ("x", "y"))
    whole = path.read_bytes()
    input_ = wanted("uint16" if "16" in name else "uint8")
    for length in {9, 20, 30, 60, len(whole) // 2, len(whole) * 9 // 10}:
        path.write_bytes(whole[:length])
        with pytest.raises(ImageError):
            images.read(path, input_)


def test_what_is_no_image_is_refused(tmp_path):
    for content, words in [(b"", "empty"), (b"hello world", "is not a .npy, .npz, PNG, TIFF or JPEG")]:
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(ImageError, match=words):
            images.read(tmp_path / "a.png", wanted())
    with pytest.raises(ImageError, match="no such file"):
        images.read(tmp_path / "missing.png", wanted())
    with pytest.raises(ImageError, match="is a directory"):
        images.read(tmp_path, wanted())


def png_of(width, height, bits):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("bits", [8, 16])
def test_a_small_file_that_claims_a_huge_picture_is_refused_unread(tmp_path, bits):
    (tmp_path / "bomb.png").write_bytes(png_of(60_000, 60_000, bits))
    with pytest.raises(ImageError) as caught:
        images.read(tmp_path / "bomb.png", wanted("uint8"))
    assert caught.value.code == "image_too_large"


@pytest.mark.parametrize(
    ("name", "dims", "type_", "words"),
    [
        ("a.bmp", "xy", "uint8", "not as .bmp"),
        ("a", "xy", "uint8", "without suffix"),
        ("missing/a.png", "xy", "uint8", "no directory"),
        ("a.png", "i", "uint8", "not a picture"),
        ("a.png", "xy", "int32", "not int32"),
        ("a.jpg", "xy", "uint16", "JPEG holds 8 bits"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_beforehand(tmp_path, name, dims, type_, words):
    with pytest.raises(ImageError, match=words):
        images.check_writable(tmp_path / name, tuple(dims), TYPES[type_])


def test_channels_that_no_picture_has(tmp_path):
    with pytest.raises(ImageError, match="5 channels"):
        images.write(tmp_path / "a.png", np.zeros((5, 2, 2), np.uint8), ("x", "y", "c"))
