//! Small pictures of the items of a gallery, made when they are asked for, and kept in memory.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use akin_core::digest;
use akin_core::image::decode;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, RgbImage};
use lru::LruCache;

use crate::commands::export::tile;

/// The most that are kept: of 192 pixels, about 40 MB.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// The JPEG quality.
const QUALITY: u8 = 85;

/// Thumbnails that are kept.
pub struct Thumbnails(Mutex<LruCache<Key, Arc<Vec<u8>>>>);

/// The SHA-256 of a picture, and the size of its thumbnail.
type Key = (String, Size);

/// The size of a thumbnail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// The pixels of the longer side, if the picture has as many.
    pub side: u32,
    /// Whether it shows only the central square of the picture, and is exactly `side` pixels wide.
    pub is_square: bool,
}

impl Default for Thumbnails {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

impl Thumbnails {
    /// The thumbnail of the picture with this SHA-256, as JPEG. `None` if `read` returns nothing or the bytes of another
    /// picture, or if the bytes cannot be decoded.
    pub fn get(
        &self,
        sha256: &str,
        size: Size,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Arc<Vec<u8>>> {
        let key = (sha256.to_owned(), size);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().get(&key) {
            return Some(Arc::clone(kept));
        }
        // Only what was indexed is shown, whatever stands there now.
        let bytes = read().filter(|bytes| digest::sha256(bytes) == sha256)?;
        let made = Arc::new(make(&bytes, size)?);
        lock().put(key, Arc::clone(&made));
        Some(made)
    }
}

fn make(bytes: &[u8], Size { side, is_square }: Size) -> Option<Vec<u8>> {
    let pixels = decode(bytes).ok()?;
    let pixels = if is_square { tile(&pixels, side).ok()? } else { pixels };
    let (width, height) = (pixels.width(), pixels.height());
    let picture = DynamicImage::from(RgbImage::from_raw(width, height, pixels.into_data())?);
    let small = if width.max(height) > side { picture.thumbnail(side, side) } else { picture };
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, QUALITY).encode_image(&small).ok()?;
    Some(jpeg)
}
