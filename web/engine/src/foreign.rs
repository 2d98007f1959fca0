//! An engine in JavaScript that runs the ONNX file of an encoder.

use akin_bridge::{Result, misuse};
use akin_core::bundle::{InputType, Layout, OnnxEntry};
use akin_core::image::{Pixels, Preprocessing};
use akin_core::models::ForeignOutput;
use half::f16;
use js_sys::{Float32Array, Function, Promise, Reflect, Uint8Array, Uint16Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Runs an ONNX file by a function of JavaScript, `run(image, shape)`. It gets one image as a `Float32Array`, or in half
/// precision as a `Uint16Array` of its bits, or as a `Uint8Array`, with the lengths of its axes, and promises `{ shape, values }` of the output,
/// with values of one of these types.
pub(crate) struct ForeignEngine {
    run: Function,
    layout: Layout,
    element_type: InputType,
}

impl ForeignEngine {
    pub(crate) fn new(entry: &OnnxEntry, run: Function) -> Self {
        Self { run, layout: entry.layout, element_type: entry.element_type }
    }

    /// What the network computes of some views, one after another.
    pub(crate) async fn run(&self, preprocessing: &Preprocessing, views: &[Pixels]) -> Result<ForeignOutput> {
        let mut all = ForeignOutput { shape: Vec::new(), values: Vec::new() };
        for view in views {
            let ForeignOutput { mut shape, values } = self.run_one(preprocessing, view).await?;
            // A network that gives one result for one image may do so without an axis for it, and core says so.
            if let [1, ..] = shape[..] {
                shape[0] = views.len();
            }
            all.shape = shape;
            all.values.extend(values);
        }
        Ok(all)
    }

    async fn run_one(&self, preprocessing: &Preprocessing, view: &Pixels) -> Result<ForeignOutput> {
        let side = preprocessing.side() as usize;
        let image = self.layout.arrange(preprocessing.normalise(view).into_iter().collect(), side);
        let image: JsValue = match self.element_type {
            InputType::F32 => Float32Array::from(&image[..]).into(),
            InputType::F16 => {
                let bits: Vec<u16> =
                    image.into_iter().map(|number| f16::from_f32(number).to_bits()).collect();
                Uint16Array::from(&bits[..]).into()
            }
            InputType::U8 => {
                let bytes: Vec<u8> = image.into_iter().map(|number| number.round() as u8).collect();
                Uint8Array::from(&bytes[..]).into()
            }
        };
        let shape = match self.layout {
            Layout::ChannelsFirst => [1, 3, side, side],
            Layout::ChannelsLast => [1, side, side, 3],
        };
        let shape = js_sys::Array::from_iter(shape.map(|length| JsValue::from(length as u32)));
        let promise = self.run.call2(&JsValue::NULL, &image, &shape)?;
        let output = JsFuture::from(Promise::from(promise)).await?;
        let field = |name: &str| Reflect::get(&output, &name.into());
        let shape = js_sys::Array::from(&field("shape")?);
        let shape = shape.iter().map(|length| length.as_f64().map(|length| length as usize));
        let shape =
            shape.collect::<Option<_>>().ok_or_else(|| misuse("the shape of the output has no numbers"))?;
        let values = field("values")?;
        let values = match values.dyn_ref::<Uint16Array>() {
            Some(bits) => bits.to_vec().into_iter().map(|bits| f16::from_bits(bits).to_f32()).collect(),
            None => Float32Array::from(values).to_vec(),
        };
        Ok(ForeignOutput { shape, values })
    }
}
