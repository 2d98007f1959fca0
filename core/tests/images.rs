//! Decoding and preprocessing of image files, compared with Pillow and torchvision.
//!
//! The fixtures and the script that wrote them are in `images/`.

#![cfg(feature = "image")]

use std::io::Cursor;
use std::path::Path;

use akin_core::image::{
    Filter, MAX_PIXELS, Normalisation, Pixels, Preprocessing, PreprocessingConfig, decode, self_test_pattern,
};
use akin_core::{Error, Kind};
use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgb, RgbImage, Rgba};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn expected(name: &str) -> Pixels {
    decode(&fixture(&format!("{name}.expected.png"))).unwrap()
}

#[track_caller]
fn assert_within(levels: u8, got: &Pixels, wanted: &Pixels, what: &str) {
    assert_eq!((got.width(), got.height()), (wanted.width(), wanted.height()), "{what}");
    let worst = got.data().iter().zip(wanted.data()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst <= Some(levels), "{what}: a byte differs by {worst:?}");
}

fn encode(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.into().write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn refusal(bytes: &[u8]) -> Error {
    let error = decode(bytes).map(drop).expect_err("this image must be refused");
    assert_eq!(error.kind(), Kind::Image);
    error
}

#[test]
fn jpegs_decode_to_the_pixels_of_libjpeg_turbo() {
    let noise = ["whole", "half", "quarter"].map(|chroma| format!("noise-{chroma}.jpg"));
    let progressive = noise.clone().map(|name| name.replace(".jpg", "-progressive.jpg"));
    let smooth = ["rgb.jpg", "grey.jpg", "progressive.jpg", "turned.jpg"].map(String::from);
    for name in smooth.iter().chain(&noise).chain(&progressive) {
        assert_within(0, &decode(&fixture(name)).unwrap(), &expected(name), name);
    }
}

#[test]
fn webp_decodes_as_in_pillow() {
    assert_within(3, &decode(&fixture("lossy.webp")).unwrap(), &expected("lossy.webp"), "lossy.webp");
}

#[cfg(feature = "avif")]
#[test]
fn avif_decodes_as_in_pillow() {
    let turned = (2..9).map(|orientation| format!("turned-{orientation}.avif"));
    let plain = ["smooth.avif", "quarter.avif", "deep.avif", "lossless.avif", "grey.avif"].map(String::from);
    let fading = ["fading.avif", "fading-premultiplied.avif"].map(String::from);
    for name in turned.chain(plain).chain(fading) {
        // avifenc and Pillow round ten bits to eight by cutting them off.
        let levels = if name == "deep.avif" { 4 } else { 2 };
        assert_within(levels, &decode(&fixture(&name)).unwrap(), &expected(&name), &name);
    }
}

#[cfg(feature = "avif")]
#[test]
fn a_damaged_avif_never_panics() {
    let file = fixture("fading.avif");
    for position in 0..file.len() {
        let mut damaged = file.clone();
        damaged[position] ^= 0xFF;
        for bytes in [&damaged, &file[..position]] {
            if let Err(error) = decode(bytes) {
                assert_eq!(error.kind(), Kind::Image);
            }
        }
    }
    assert!(decode(&file[..file.len() - 1]).is_err(), "it is cut short");
}

#[test]
fn a_jpeg_beyond_the_pixel_limit_is_reduced_while_it_is_decoded() {
    let file = encode(ImageBuffer::from_pixel(16_001, 8_200, Luma([90u8])), ImageFormat::Jpeg);
    let image = decode(&file).unwrap();
    assert_eq!((image.width(), image.height()), (8_001, 4_100));
    assert!(image.data().iter().all(|value| value.abs_diff(90) <= 1));
}

#[test]
fn gif_bmp_and_tiff_decode_as_in_pillow() {
    for name in [
        "animated.gif",
        "palette.bmp",
        "colours.bmp",
        "plain.tif",
        "lzw.tif",
        "deflate.tif",
        "grey.tif",
        "turned.tif",
    ] {
        assert_within(0, &decode(&fixture(name)).unwrap(), &expected(name), name);
    }
}

#[test]
fn a_frame_that_does_not_fill_its_gif_stands_on_white() {
    // 2×2 pixels, of which one frame of 1×1 fills the last: two bits a code, the code to clear, pixel 1, and the end.
    let file = b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xFF\0\0\x2C\x01\0\x01\0\x01\0\x01\0\0\x02\x02\x4C\x01\0;";
    let white = [255; 9];
    assert_eq!(decode(file).unwrap().data(), [&white[..], &[255, 0, 0]].concat());
}

#[test]
fn a_gif_bmp_or_tiff_that_is_cut_is_refused_or_whole() {
    for name in ["animated.gif", "palette.bmp", "colours.bmp", "plain.tif", "lzw.tif", "deflate.tif"] {
        let file = fixture(name);
        let whole = decode(&file).unwrap();
        for length in 1..file.len() {
            match decode(&file[..length]) {
                Ok(pixels) => assert_eq!(pixels, whole, "{name} of {length} bytes"),
                Err(error) => assert_eq!(error.kind(), Kind::Image),
            }
        }
        refusal(&file[..file.len() / 3]);
    }
}

#[test]
fn a_camera_raw_file_is_not_read_as_its_preview() {
    // A directory with one entry: the kind of the picture, a preview.
    let file = b"MM\0*\0\0\0\x08\0\x01\0\xFE\0\x04\0\0\0\x01\0\0\0\x01\0\0\0\0";
    assert!(refusal(file).message().contains("camera raw"));
}

#[test]
fn cmyk_and_ycck_jpegs_have_the_right_colours() {
    for name in ["cmyk-adobe.jpg", "cmyk-plain.jpg", "ycck.jpg"] {
        assert_within(3, &decode(&fixture(name)).unwrap(), &expected(name), name);
    }
}

#[test]
fn the_orientation_tag_is_applied() {
    for name in ["turned.jpg", "turned.png", "turned.webp"] {
        assert_within(3, &decode(&fixture(name)).unwrap(), &expected(name), name);
    }
}

/// The oracle is the EXIF standard: for each tag, where the pixel shown at (x, y) is stored.
#[test]
fn all_eight_orientations_follow_the_standard() {
    let jpeg = fixture("rgb.jpg");
    let stored = decode(&jpeg).unwrap();
    let (w, h) = (stored.width() as usize, stored.height() as usize);
    let at = |x: usize, y: usize| &stored.data()[3 * (y * w + x)..][..3];
    for tag in 1..=8u8 {
        let mut turned = jpeg[..2].to_vec();
        turned.extend(b"\xFF\xE1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0");
        turned.extend([tag, 0, 0, 0, 0, 0, 0]);
        turned.extend(&jpeg[2..]);
        let shown = decode(&turned).unwrap();
        let (sw, sh) = if tag < 5 { (w, h) } else { (h, w) };
        assert_eq!((shown.width() as usize, shown.height() as usize), (sw, sh), "tag {tag}");
        for y in 0..sh {
            for x in 0..sw {
                let (u, v) = match tag {
                    1 => (x, y),
                    2 => (w - 1 - x, y),
                    3 => (w - 1 - x, h - 1 - y),
                    4 => (x, h - 1 - y),
                    5 => (y, x),
                    6 => (y, h - 1 - x),
                    7 => (w - 1 - y, h - 1 - x),
                    _ => (w - 1 - y, x),
                };
                assert_eq!(&shown.data()[3 * (y * sw + x)..][..3], at(u, v), "tag {tag} at ({x}, {y})");
            }
        }
    }
}

#[test]
fn grey_palettes_and_sixteen_bits_become_eight_bit_rgb() {
    let grey = ImageBuffer::from_fn(3, 1, |x, _| Luma([x as u8 * 100]));
    assert_eq!(
        decode(&encode(grey, ImageFormat::Png)).unwrap().data(),
        [0, 0, 0, 100, 100, 100, 200, 200, 200]
    );

    // Rounded, not truncated, from 65,535 levels to 255.
    let deep = ImageBuffer::from_fn(4, 1, |x, _| Rgb([[0u16, 128, 129, 65_535][x as usize]; 3]));
    let deep = decode(&encode(deep, ImageFormat::Png)).unwrap();
    assert_eq!(deep.data(), [0, 0, 0, 0, 0, 0, 1, 1, 1, 255, 255, 255]);

    let deep_grey = ImageBuffer::from_fn(1, 1, |_, _| Luma([0x8080u16]));
    assert_eq!(decode(&encode(deep_grey, ImageFormat::Png)).unwrap().data(), [128; 3]);

    // 2×1, palette of red and transparent blue.
    let palette = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x01\x01\x03\0\0\0";
    let mut file = palette.to_vec();
    file.extend(crc(b"IHDR\0\0\0\x02\0\0\0\x01\x01\x03\0\0\0"));
    for (name, data) in [
        (b"PLTE", &b"\xFF\0\0\0\0\xFF"[..]),
        (b"tRNS", b"\xFF\0"),
        // Stored, not compressed: filter 0, then one bit per pixel, 0 and 1.
        (b"IDAT", b"\x78\x01\x01\x02\0\xFD\xFF\0\x40\0\x42\0\x41"),
        (b"IEND", b""),
    ] {
        let chunk = [&name[..], data].concat();
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(&chunk);
        file.extend(crc(&chunk));
    }
    assert_eq!(decode(&file).unwrap().data(), [255, 0, 0, 255, 255, 255]);
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> [u8; 4] {
    let sum = bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(
            sum ^ u32::from(byte),
            |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 },
        )
    });
    (!sum).to_be_bytes()
}

#[test]
fn transparent_pixels_are_blended_with_white() {
    let see_through = ImageBuffer::from_fn(3, 1, |x, _| Rgba([200, 0, 0, [0u8, 51, 255][x as usize]]));
    let on_white = [255, 255, 255, 244, 204, 204, 200, 0, 0];
    for format in [ImageFormat::Png, ImageFormat::WebP] {
        assert_eq!(decode(&encode(see_through.clone(), format)).unwrap().data(), on_white, "{format:?}");
    }
    let deep = see_through.clone();
    let deep = DynamicImage::ImageRgba8(deep).into_rgba16();
    assert_eq!(decode(&encode(deep, ImageFormat::Png)).unwrap().data(), on_white);

    let grey = ImageBuffer::from_fn(1, 1, |_, _| LumaA([0u8, 51]));
    assert_eq!(decode(&encode(grey, ImageFormat::Png)).unwrap().data(), [204; 3]);
    let deep_grey = ImageBuffer::from_fn(1, 1, |_, _| LumaA([0u16, 51 * 257]));
    assert_eq!(decode(&encode(deep_grey, ImageFormat::Png)).unwrap().data(), [204; 3]);
}

#[test]
fn a_single_pixel_is_an_image() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let image = decode(&encode(RgbImage::from_pixel(1, 1, Rgb([10, 10, 10])), format)).unwrap();
        assert_eq!((image.width(), image.height()), (1, 1));
        let view = Preprocessing::new(Normalisation::Imagenet, 64).unwrap().view(&image).unwrap();
        assert_eq!((view.width(), view.height()), (64, 64));
        assert!(view.data().iter().all(|value| value.abs_diff(10) <= 1));
    }
}

#[test]
fn an_image_that_is_cut_short_is_refused() {
    for name in ["rgb.jpg", "progressive.jpg", "cmyk-adobe.jpg", "turned.png", "turned.webp", "lossy.webp"] {
        let file = fixture(name);
        for length in 0..file.len() {
            let error = refusal(&file[..length]);
            assert!(!error.hint().is_empty(), "{name} cut to {length} bytes");
        }
        let error = refusal(&file[..file.len() - 2]);
        assert!(error.message().contains("cut short"), "{name}: {error}");
    }
}

#[test]
fn a_jpeg_with_another_picture_in_the_middle_of_its_data_is_refused() {
    let noise = RgbImage::from_fn(64, 64, |x, y| Rgb([x * 37, y * 91, x * y].map(|v| (v % 251) as u8)));
    let file = encode(noise, ImageFormat::Jpeg);
    refusal(&[&file[..file.len() / 2], &file[..]].concat());
}

#[test]
fn damaged_images_never_panic() {
    for name in [
        "rgb.jpg",
        "progressive.jpg",
        "ycck.jpg",
        "grey.jpg",
        "turned.png",
        "turned.webp",
        "lossy.webp",
        "animated.gif",
        "palette.bmp",
        "lzw.tif",
        "deflate.tif",
        "grey.tif",
    ] {
        let file = fixture(name);
        for position in 0..file.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut damaged = file.clone();
                damaged[position] ^= change;
                if let Err(error) = decode(&damaged) {
                    assert_eq!(error.kind(), Kind::Image);
                }
            }
        }
    }
}

#[test]
fn other_formats_are_refused_by_name() {
    let files: [(&[u8], &str); 8] = [
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypavif\0\0\0\0mif1miaf", "AVIF"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0avifmiaf", "AVIF"),
        (b"\0\0\0\x18ftypisom\0\0\0\0mp42", "video"),
        (b"%PDF-1.7", "PDF"),
        (b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "SVG"),
        (b"\xFF\x0A\xFA\x7F", "JPEG XL"),
    ];
    for (bytes, name) in files {
        let error = refusal(bytes);
        assert!(error.message().contains(name), "{error}");
        assert!(error.hint().contains("JPEG or PNG"), "{error}");
    }
    assert!(refusal(b"<!DOCTYPE html><html>").message().contains("web page"));
    assert!(refusal(b"").message().contains("empty"));
    assert!(refusal(b"hello").hint().contains("JPEG, PNG, WebP"));
}

/// The first chunks of a PNG that states this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let header = [&b"IHDR"[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\r".to_vec();
    file.extend(&header);
    file.extend(crc(&header));
    file.extend(b"\0\0\0\0IDAT\x35\xAF\x06\x1E\0\0\0\0IEND\xAE\x42\x60\x82");
    file
}

#[test]
fn an_image_beyond_the_pixel_limit_is_refused_before_it_is_decoded() {
    let error = refusal(&png(60_000, 60_000));
    assert!(error.message().contains("60000×60000"), "{error}");
    assert!(error.message().contains("128 million"), "{error}");
    const { assert!(12_000 * 9_000 <= MAX_PIXELS) };
}

#[test]
fn twelve_thousand_by_nine_thousand_pixels_are_accepted() {
    // A plain JPEG with one grey channel is quick to encode.
    let file = encode(ImageBuffer::from_pixel(12_000, 9_000, Luma([90u8])), ImageFormat::Jpeg);
    let image = decode(&file).unwrap();
    assert_eq!((image.width(), image.height()), (12_000, 9_000));
    let view = Preprocessing::new(Normalisation::Imagenet, 128).unwrap().view(&image).unwrap();
    assert!(view.data().iter().all(|value| value.abs_diff(90) <= 1));
}

#[test]
fn resampling_agrees_with_pillow_within_a_level_or_two() {
    let detail = decode(&fixture("detail.png")).unwrap();
    for (name, filter, levels) in
        [("bilinear", Filter::Bilinear, 1), ("bicubic", Filter::Bicubic, 1), ("lanczos", Filter::Lanczos, 2)]
    {
        for [x, y, w, h] in [[0, 0, 31, 23], [7, 5, 20, 13]] {
            for [out_w, out_h] in [[8, 6], [36, 30]] {
                let case = format!("detail-{name}-{x}-{y}-{w}-{h}-{out_w}-{out_h}");
                let [x, y, w, h] = [x, y, w, h].map(f64::from);
                let got = detail.resize_region(x, y, w, h, out_w, out_h, filter).unwrap();
                assert_within(levels, &got, &expected(&case), &case);
            }
        }
    }
}

#[test]
fn a_view_agrees_with_torchvision_within_one_level() {
    let wide = decode(&fixture("detail.png")).unwrap();
    let mut high = vec![];
    for x in 0..wide.width() as usize {
        for y in 0..wide.height() as usize {
            high.extend(&wide.data()[3 * (y * wide.width() as usize + x)..][..3]);
        }
    }
    let high = Pixels::new(wide.height(), wide.width(), high).unwrap();
    for (image, name) in [(wide, "wide"), (high, "high")] {
        for (resize, crop) in [(12, 9), (40, 33), (23, 20)] {
            let mut numbers = Preprocessing::new(Normalisation::Imagenet, crop).unwrap().numbers().clone();
            numbers.resize = resize;
            let view = Preprocessing::try_from(numbers).unwrap().view(&image).unwrap();
            let case = format!("view-{name}-{resize}-{crop}");
            assert_within(1, &view, &expected(&case), &case);
        }
    }
}

#[test]
fn a_squeezed_image_shows_its_centre_whatever_its_shape() {
    let image = self_test_pattern(96).unwrap();
    let wide = image.resize_region(0.0, 0.0, 96.0, 48.0, 96, 48, Filter::Bilinear).unwrap();
    let config = r#"{ "crop": 28, "resize": 30, "squeeze": true }"#;
    let config: PreprocessingConfig = serde_json::from_str(config).unwrap();
    let squeezed = config.resolve(&Preprocessing::new(Normalisation::Imagenet, 32).unwrap()).unwrap();
    let whole = wide.resize_region(0.0, 0.0, 96.0, 48.0, 30, 30, Filter::Bilinear).unwrap();
    let centre = whole.resize_region(1.0, 1.0, 28.0, 28.0, 28, 28, Filter::Bilinear).unwrap();
    assert_within(1, &squeezed.view(&wide).unwrap(), &centre, "squeezed");
    assert_eq!(squeezed.region(&wide), [1.0 / 30.0, 1.0 / 30.0, 28.0 / 30.0, 28.0 / 30.0]);
    // What does not squeeze is written as before.
    let saved = serde_json::to_value(Preprocessing::new(Normalisation::Imagenet, 32).unwrap()).unwrap();
    assert_eq!(saved.get("squeeze"), None);
}

#[test]
fn an_image_of_the_right_size_is_not_changed() {
    let image = self_test_pattern(96).unwrap();
    assert_eq!(Preprocessing::new(Normalisation::Caffe, 96).unwrap().view(&image).unwrap(), image);
    assert_eq!(image.resize_region(0.0, 0.0, 96.0, 96.0, 96, 96, Filter::Lanczos).unwrap(), image);
}

#[test]
fn a_long_thin_image_is_not_resized_as_a_whole() {
    // The resized image would have 224 × 14,680,064 pixels.
    let thin = Pixels::new(1, 65_536, (0..3 * 65_536).map(|i| (i % 256) as u8).collect()).unwrap();
    let view = Preprocessing::new(Normalisation::Imagenet, 224).unwrap().view(&thin).unwrap();
    assert_eq!((view.width(), view.height()), (224, 224));
}

#[test]
fn a_region_outside_the_image_is_refused() {
    let image = self_test_pattern(8).unwrap();
    let nan = f64::NAN;
    for [x, y, w, h] in [
        [-0.1, 0.0, 4.0, 4.0],
        [0.0, 0.0, 8.1, 4.0],
        [8.0, 0.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, nan, 1.0, 1.0],
        [0.0, 0.0, f64::INFINITY, 1.0],
    ] {
        let error = image.resize_region(x, y, w, h, 4, 4, Filter::Bilinear).unwrap_err();
        assert_eq!(error.kind(), Kind::Image);
    }
    assert!(image.resize_region(0.0, 0.0, 1.0, 1.0, 0, 4, Filter::Bilinear).is_err());
    assert!(image.resize_region(0.0, 0.0, 1.0, 1.0, 4, u32::MAX, Filter::Bilinear).is_err());
    assert!(image.resize_region(7.5, 3.0, 1e-300, 0.5, 2, 2, Filter::Lanczos).is_err());
    let tiny = image.resize_region(7.999, 3.0, 0.001, 0.5, 2, 2, Filter::Lanczos).unwrap();
    assert_eq!(tiny.width(), 2);
}

#[test]
fn pixels_outside_a_region_have_no_influence() {
    // White on the left, black on the right: the black half stays black up to its border.
    let halves = (0..16 * 8).flat_map(|i| [if i % 16 < 8 { 255u8 } else { 0 }; 3]).collect();
    let halves = Pixels::new(16, 8, halves).unwrap();
    for out in [4, 8, 20] {
        let black = halves.resize_region(8.0, 0.0, 8.0, 8.0, out, out, Filter::Bilinear).unwrap();
        assert!(black.data().iter().all(|&value| value == 0), "to {out} pixels");
    }
}

#[test]
fn mirroring_twice_gives_the_same_image() {
    let image = decode(&fixture("detail.png")).unwrap();
    let mirrored = image.flip_horizontal();
    assert_eq!(mirrored.data()[..3], image.data()[3 * 30..3 * 31]);
    assert_eq!(mirrored.flip_horizontal(), image);
}

#[test]
fn normalising_gives_planes_in_the_order_of_the_channels() {
    let image = Pixels::new(2, 1, vec![255, 0, 51, 0, 102, 255]).unwrap();
    assert_eq!(
        Preprocessing::new(Normalisation::Caffe, 1).unwrap().normalise(&image),
        [51.0 - 104.0, 255.0 - 104.0, -117.0, 102.0 - 117.0, 255.0 - 123.0, -123.0]
    );
    let close = |got: Vec<f32>, wanted: [f32; 6]| {
        assert!(got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} is not {wanted:?}");
    };
    close(
        Preprocessing::new(Normalisation::Inception, 1).unwrap().normalise(&image),
        [1.0, -1.0, -1.0, -0.2, -0.6, 1.0],
    );
    let wanted = [(1.0, 0), (0.0, 0), (0.0, 1), (0.4, 1), (0.2, 2), (1.0, 2)]
        .map(|(v, c)| (v - [0.485, 0.456, 0.406][c]) / [0.229, 0.224, 0.225][c]);
    close(Preprocessing::new(Normalisation::Imagenet, 1).unwrap().normalise(&image), wanted);
}

#[test]
fn preprocessing_that_makes_no_sense_is_refused_wherever_it_comes_from() {
    assert_eq!(Preprocessing::new(Normalisation::Imagenet, 0).unwrap_err().kind(), Kind::Config);
    let good = serde_json::to_value(Preprocessing::new(Normalisation::Caffe, 128).unwrap()).unwrap();
    assert_eq!(good["channels"], "bgr");
    assert_eq!(good["filter"], "bilinear");
    assert_eq!(
        serde_json::from_value::<Preprocessing>(good.clone()).unwrap(),
        Preprocessing::new(Normalisation::Caffe, 128).unwrap()
    );
    for (field, value) in [
        ("resize", 0.into()),
        ("crop", 129.into()),
        ("crop", 5000.into()),
        ("scale", 0.0.into()),
        ("scale", 1e300.into()),
        ("deviation", serde_json::json!([1.0, 0.0, 1.0])),
        ("mean", serde_json::json!([1.0, 0.0])),
        ("gamma", 2.2.into()),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(serde_json::from_value::<Preprocessing>(bad).is_err(), "{field}");
    }
}

#[test]
fn a_config_names_its_preprocessing_or_gives_all_numbers() {
    let default = Preprocessing::new(Normalisation::Inception, 96).unwrap();
    let resolve = |json: &str| serde_json::from_str::<PreprocessingConfig>(json).unwrap().resolve(&default);
    let caffe = Preprocessing::new(Normalisation::Caffe, 128).unwrap();
    assert_eq!(resolve("{}").unwrap(), default);
    assert_eq!(resolve(r#""inception""#).unwrap(), default);
    assert_eq!(resolve(r#"{ "name": "caffe", "crop": 128 }"#).unwrap(), caffe);
    assert_eq!(resolve(&serde_json::to_string(&caffe).unwrap()).unwrap(), caffe);
    let larger = resolve(r#"{ "crop": 64, "resize": 72, "filter": "bicubic" }"#).unwrap();
    assert_eq!((larger.numbers().resize, larger.side(), larger.numbers().filter), (72, 64, Filter::Bicubic));
    assert_eq!(larger.numbers().mean, default.numbers().mean);

    let refusal = |json: &str| resolve(json).unwrap_err().message().to_owned();
    assert_eq!(refusal(r#"{ "name": "caffe", "scale": 1.0 }"#), "preprocessing has a name and also scale");
    assert_eq!(
        refusal(r#"{ "channels": "bgr", "mean": [0, 0, 0] }"#),
        "preprocessing has channels, mean but not scale, deviation"
    );
    assert!(refusal(r#"{ "crop": 0 }"#).contains("crops to 0 pixels"));
}

#[test]
fn the_self_test_pattern_is_the_same_everywhere() {
    let pattern = self_test_pattern(64).unwrap();
    let sum = pattern.data().iter().fold(0u64, |sum, &value| sum.wrapping_mul(31).wrapping_add(value.into()));
    assert_eq!(
        sum, 11_683_604_388_445_521_428,
        "the pattern is part of the bundle format: old bundles hold embeddings of it"
    );
    assert!(self_test_pattern(0).is_err());
    assert!(self_test_pattern(1).is_ok());
}
