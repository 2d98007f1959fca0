//! Colours: palettes in the style of hand-coloured plates.

/// A colour in sRGB, 0 … 1.
pub(crate) type Rgb = [f32; 3];

/// The colours of body, belly, marks, and of limbs, fins and horns (accent).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) body: Rgb,
    pub(crate) belly: Rgb,
    pub(crate) mark: Rgb,
    pub(crate) accent: Rgb,
}

/// All palettes as 0xRRGGBB: body, belly, marks, accent.
pub(crate) const PALETTES: [[u32; 4]; 24] = [
    [0xE8735A, 0xF9D8B8, 0x8C2F39, 0x2F6F73],
    [0x7A9A4B, 0xE4E3B0, 0x3E5A2B, 0xC9803A],
    [0x3F5FA8, 0xC9D8EE, 0xF2C14E, 0x22325E],
    [0xD9A441, 0xF6E7BE, 0x7A4A1E, 0x8E3B2E],
    [0x7B4B8A, 0xE6CDE6, 0xF0A6B8, 0x43285A],
    [0x7CC4A8, 0xEAF6E0, 0x2E6E63, 0xE58F65],
    [0x3A3A44, 0xB9B4A8, 0xF2C230, 0x6B6B78],
    [0xE49BB0, 0xFBE7E3, 0xA83E5E, 0x6C5B7B],
    [0x7DB7DD, 0xEFF6F4, 0xFFFFFF, 0x3D6A94],
    [0xB5532D, 0xF0CFA0, 0xF4E3C1, 0x4E2A1E],
    [0x6B6A35, 0xD8D3A0, 0x26261C, 0xB8A13A],
    [0xA79BD0, 0xEFEAF8, 0x5B4E91, 0xF3C98B],
    [0xB8323E, 0xF4C7B0, 0x2A1A24, 0xE9A23B],
    [0x2FA6A0, 0xD5F1E4, 0xF57F5B, 0x14595C],
    [0xEAD7A8, 0xFBF4DE, 0x9A5B2C, 0x6E4423],
    [0x6D8196, 0xDDE3E6, 0xE88B8B, 0x3B4A5A],
    [0xB4C84A, 0xF3F6CF, 0x4B7A3A, 0xD2553F],
    [0x2B3A55, 0xC9CFD9, 0xF5F0E6, 0x8AA0C0],
    [0xF0A868, 0xFCE9CF, 0xC65A3A, 0x5F7F73],
    [0x3F6B52, 0xCFE0C5, 0xD9473F, 0x22402F],
    [0xB9B6B0, 0xF1EEE8, 0x5A5550, 0xD39A6A],
    [0x6A4434, 0xD9BFA6, 0x8FD0B5, 0x3E261D],
    [0xB54A82, 0xF5CFDD, 0xF3C557, 0x6A2350],
    [0xD8C29A, 0xF5ECD6, 0x2F7F86, 0x9C6B4A],
];

impl Palette {
    /// Body, belly, marks, accent.
    pub(crate) fn colours(&self) -> [Rgb; 4] {
        [self.body, self.belly, self.mark, self.accent]
    }

    /// The palette `index`, with its hue rotated by `hue` turns and its colours lightened by `lightness`
    /// (−1 … 1). `contrast` (0 … 1) mixes the marks from the body colour to their own.
    pub(crate) fn new(index: usize, hue: f32, lightness: f32, contrast: f32) -> Self {
        let [body, belly, mark, accent] = PALETTES[index].map(|c| lighten(turn(hex(c), hue), lightness));
        Self { body, belly, mark: mix(body, mark, contrast), accent }
    }
}

/// A colour from 0xRRGGBB.
pub(crate) fn hex(code: u32) -> Rgb {
    [16, 8, 0].map(|shift| ((code >> shift) & 0xFF) as f32 / 255.0)
}

/// `a` at 0, `b` at 1.
pub(crate) fn mix(a: Rgb, b: Rgb, t: f32) -> Rgb {
    [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * t)
}

/// Mixes towards white (`by` above 0) or black (below 0).
pub(crate) fn lighten(colour: Rgb, by: f32) -> Rgb {
    if by > 0.0 { mix(colour, [1.0; 3], by) } else { mix(colour, [0.05, 0.03, 0.06], -by) }
}

/// The luma of a colour (Rec. 601).
pub(crate) fn luma([r, g, b]: Rgb) -> f32 {
    0.299 * r + 0.587 * g + 0.114 * b
}

/// Rotates the hue by a share of a full turn and keeps the luma (a rotation in YIQ).
fn turn(colour: Rgb, turns: f32) -> Rgb {
    let [r, g, b] = colour;
    let y = luma(colour);
    let i = 0.596 * r - 0.274 * g - 0.322 * b;
    let q = 0.211 * r - 0.523 * g + 0.312 * b;
    let (sin, cos) = (turns * std::f32::consts::TAU).sin_cos();
    let (i, q) = (i * cos - q * sin, i * sin + q * cos);
    [y + 0.956 * i + 0.621 * q, y - 0.272 * i - 0.647 * q, y - 1.106 * i + 1.703 * q]
        .map(|c| c.clamp(0.0, 1.0))
}
