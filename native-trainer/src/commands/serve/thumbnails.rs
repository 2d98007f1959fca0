//! Small pictures of the items of a gallery, made when they are asked for, and kept in memory.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use akin_base::files::read_regular_file;
use akin_core::digest::sha256;
use akin_core::image::decode;
use akin_gallery::Row;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, RgbImage};
use lru::LruCache;

/// The most that are kept: of 192 pixels, about 40 MB.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// The JPEG quality.
const QUALITY: u8 = 85;

/// Thumbnails that are kept.
pub struct Thumbnails(Mutex<LruCache<Key, Arc<Vec<u8>>>>);

/// The SHA-256 of a picture, and the side of its thumbnail.
type Key = (String, u32);

impl Default for Thumbnails {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

impl Thumbnails {
    /// The thumbnail of a picture as JPEG, whose longer side has so many pixels. None if its file is gone, is another than was
    /// indexed, or cannot be read.
    pub fn get(&self, row: &Row, side: u32) -> Option<Arc<Vec<u8>>> {
        let key = (row.sha256.clone(), side);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().get(&key) {
            return Some(Arc::clone(kept));
        }
        let made = Arc::new(make(row, side)?);
        lock().put(key, Arc::clone(&made));
        Some(made)
    }
}

fn make(row: &Row, side: u32) -> Option<Vec<u8>> {
    let bytes = read_regular_file(&row.file()).ok()?;
    // Only what was indexed is shown, whatever stands there now.
    if sha256(&bytes) != row.sha256 {
        return None;
    }
    let pixels = decode(&bytes).ok()?;
    let (width, height) = (pixels.width(), pixels.height());
    let picture = DynamicImage::from(RgbImage::from_raw(width, height, pixels.into_data())?);
    let small = if width.max(height) > side { picture.thumbnail(side, side) } else { picture };
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, QUALITY).encode_image(&small).ok()?;
    Some(jpeg)
}
