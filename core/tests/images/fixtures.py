"""Writes the fixtures of ../images.rs into this directory, with Pillow 13.0 and numpy: `python3 fixtures.py`.

`X.expected.png` is what Pillow makes of `X`.
"""

import os
import struct
import subprocess

import numpy as np
from PIL import Image, ImageOps

W, H = 24, 16
y, x = np.mgrid[0:H, 0:W]
# Smooth, so that JPEG and WebP stay within a few levels.
smooth = Image.fromarray(np.stack([x * 8 + 20, y * 12 + 30, 200 - x * 4 - y * 3], -1).astype(np.uint8))


def expect(name, image=None):
    image = image or Image.open(name)
    image.convert("RGB").save(f"{name}.expected.png", optimize=True)


def save(name, image, **options):
    image.save(name, **options)
    expect(name)


save("rgb.jpg", smooth, quality=95, subsampling=0)
save("progressive.jpg", smooth, quality=95, subsampling=2, progressive=True)
save("grey.jpg", smooth.convert("L"), quality=95)
save("lossy.webp", smooth, quality=90)
# The page reads it with the browser.
save("smooth.avif", smooth, quality=90, subsampling="4:4:4")
save("quarter.avif", smooth, quality=90, subsampling="4:2:0", range="limited")
save("grey.avif", smooth.convert("L"), quality=90, subsampling="4:0:0")
fading = smooth.convert("RGBA")
fading.putalpha(Image.fromarray((x * 11).astype(np.uint8)))
for name, premultiplied in [("fading.avif", False), ("fading-premultiplied.avif", True)]:
    fading.save(name, quality=90, subsampling="4:4:4", alpha_premultiplied=premultiplied)
    expect(name, Image.alpha_composite(Image.new("RGBA", (W, H), "white"), Image.open(name).convert("RGBA")))
# By avifenc 0.11, because Pillow writes 8 bits: 10 bits, and green, blue and red.
smooth.save("smooth.png")
for name, options in [("deep.avif", "-d 10 -y 422 -r limited --min 2 --max 6"), ("lossless.avif", "-l")]:
    subprocess.run(["avifenc", *options.split(), "smooth.png", name], check=True)
    expect(name)
os.remove("smooth.png")

# Strong noise shows each rounding. The sides are no multiples of the blocks.
noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (29, 37, 3), dtype=np.uint8))
for name, subsampling in [("whole", "4:4:4"), ("half", "4:2:2"), ("quarter", "4:2:0")]:
    save(f"noise-{name}.jpg", noise, quality=90, subsampling=subsampling)
    save(f"noise-{name}-progressive.jpg", noise, quality=90, subsampling=subsampling, progressive=True)

# Pillow writes CMYK as Adobe does: inks inverted, an APP14 marker with transform 0.
inks = np.stack([x * 8, y * 12, 180 - x * 5, x * 2 + y * 3], -1).astype(np.uint8)
save("cmyk-adobe.jpg", Image.fromarray(inks, "CMYK"), quality=97, subsampling=0)


def adobe_marker(data):
    start = data.index(b"\xff\xee")
    return start, start + 2 + struct.unpack(">H", data[start + 2 : start + 4])[0]


# Without the marker inks are stored as they are. Pillow inverts when it writes and reads, marker or not.
Image.fromarray(255 - inks, "CMYK").save("cmyk-plain.jpg", quality=97, subsampling=0)
data = open("cmyk-plain.jpg", "rb").read()
start, end = adobe_marker(data)
open("cmyk-plain.jpg", "wb").write(data[:start] + data[end:])
expect("cmyk-plain.jpg", Image.fromarray(255 - np.asarray(Image.open("cmyk-plain.jpg")), "CMYK"))

# Transform 2 makes the four planes Y, Cb, Cr and K (inverted).
planes = np.stack([60 + x * 6, 100 + y * 4, 160 - x * 3, 250 - x * 2], -1).astype(np.uint8)
Image.fromarray(255 - planes, "CMYK").save("ycck.jpg", quality=97, subsampling=0)
data = bytearray(open("ycck.jpg", "rb").read())
data[adobe_marker(bytes(data))[1] - 1] = 2
open("ycck.jpg", "wb").write(data)
expect("ycck.jpg")

# The camera was held upright: 90° clockwise to turn.
exif = Image.Exif()
# AVIF says it by two boxes of its own, one for a turn and one for a mirror.
for orientation in range(2, 9):
    exif[0x0112] = orientation
    name = f"turned-{orientation}.avif"
    smooth.save(name, exif=exif, quality=90, subsampling="4:4:4")
    expect(name, ImageOps.exif_transpose(Image.open(name)))
exif[0x0112] = 6
for name, options in [("turned.jpg", dict(quality=95, subsampling=0)), ("turned.png", {}), ("turned.webp", dict(lossless=True))]:
    smooth.save(name, exif=exif, **options)
    expect(name, ImageOps.exif_transpose(Image.open(name)))

# The formats without a quality: GIF and BMP in a palette, whose colours differ from those of `smooth`, and TIFF.
save("animated.gif", smooth.quantize(32), save_all=True, append_images=[smooth.rotate(180).quantize(32)])
save("palette.bmp", smooth.quantize(32))
save("colours.bmp", smooth)
for name, options in [("plain.tif", {}), ("lzw.tif", dict(compression="tiff_lzw")), ("deflate.tif", dict(compression="tiff_adobe_deflate"))]:
    save(name, smooth, **options)
save("grey.tif", smooth.convert("L"))
smooth.save("turned.tif", exif=exif)
expect("turned.tif", ImageOps.exif_transpose(Image.open("turned.tif")))

# Resampling of an image full of detail, whole and a region, down and up.
y, x = np.mgrid[0:23, 0:31]
detail = np.stack([(x * 37 + y * 11) % 256, (x * x + y * 3) % 256, (x // 5 + y // 7) % 2 * 255], -1)
detail = Image.fromarray(detail.astype(np.uint8))
detail.save("detail.png", optimize=True)
for name, filter in [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC), ("lanczos", Image.LANCZOS)]:
    for left, top, width, height in [(0, 0, 31, 23), (7, 5, 20, 13)]:
        for size in [(8, 6), (36, 30)]:
            part = detail.crop((left, top, left + width, top + height))
            out = f"detail-{name}-{left}-{top}-{width}-{height}-{size[0]}-{size[1]}.expected.png"
            part.resize(size, filter).save(out, optimize=True)

# torchvision's Resize (shorter side, the longer one rounded down), then CenterCrop (round half to even).
for image, name in [(detail, "wide"), (detail.transpose(Image.TRANSPOSE), "high")]:
    for resize, crop in [(12, 9), (40, 33), (23, 20)]:
        w, h = image.size
        short, long = min(w, h), int(resize * max(w, h) / min(w, h))
        full = image if short == resize else image.resize((resize, long) if w <= h else (long, resize), Image.BILINEAR)
        left, top = (int(round((side - crop) / 2)) for side in full.size)
        full.crop((left, top, left + crop, top + crop)).save(f"view-{name}-{resize}-{crop}.expected.png", optimize=True)
