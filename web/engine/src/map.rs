//! The map of the gallery on a canvas.

use akin_bridge::{Result, from_js, misuse};
use burn::tensor::wgpu::{WgpuSetup, wgpu};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use web_sys::{ImageBitmap, OffscreenCanvas};

use crate::graphics::unusable;
use crate::messages::MapView;

/// The number of pictures that the map can show at once.
const TILES: u32 = 128;
/// The vertices of a square: two triangles.
const VERTICES: u32 = 6;
/// The size of `View` in map.wgsl, in bytes.
const VIEW_BYTES: u64 = 64;

/// The map of a gallery, drawn by the graphics device on a canvas that the page has handed over.
///
/// The page gives it marks, items and pictures, and then frames: `draw` shows a part of the map.
#[wasm_bindgen]
pub struct MapCanvas {
    setup: WgpuSetup,
    surface: wgpu::Surface<'static>,
    configuration: wgpu::SurfaceConfiguration,
    layout: wgpu::BindGroupLayout,
    lines: wgpu::RenderPipeline,
    marks: wgpu::RenderPipeline,
    pictures: wgpu::RenderPipeline,
    tiles: wgpu::Texture,
    view: wgpu::Buffer,
    /// Of marks, items, lines and pictures, in the order of their bindings.
    tables: [Table; 4],
    mark_count: u32,
    bindings: Option<wgpu::BindGroup>,
}

/// The rows of a storage buffer.
struct Table {
    buffer: wgpu::Buffer,
    count: u32,
}

const MARKS: usize = 0;
const ITEMS: usize = 1;
const LINES: usize = 2;
const PICTURES: usize = 3;
/// The size of a row of each table in map.wgsl, in bytes.
const ROW_BYTES: [u64; 4] = [32, 16, 32, 24];

impl MapCanvas {
    /// A map whose pictures are squares of `tile` pixels.
    pub(crate) fn new(setup: WgpuSetup, canvas: OffscreenCanvas, tile: u32) -> Result<Self> {
        let device = &setup.device;
        let limits = device.limits();
        if tile == 0 || tile > limits.max_texture_dimension_2d {
            return Err(misuse(&format!("pictures of {tile} pixels do not fit into a texture")));
        }
        let no_surface = |why: String| {
            unusable(
                format!("the graphics device cannot draw on the canvas: {why}"),
                "draw the map without WebGPU",
            )
        };
        let surface = setup
            .instance
            .create_surface(wgpu::SurfaceTarget::OffscreenCanvas(canvas))
            .map_err(|error| no_surface(error.to_string()))?;
        let configuration = surface
            .get_default_config(&setup.adapter, 1, 1)
            .ok_or_else(|| no_surface("it supports no format of it".to_owned()))?;

        let shader = device.create_shader_module(wgpu::include_wgsl!("map.wgsl"));
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &layout_entries(),
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = |vertex: &str, fragment: &str| {
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some(vertex),
                layout: Some(&pipeline_layout),
                vertex: wgpu::VertexState {
                    module: &shader,
                    entry_point: Some(vertex),
                    compilation_options: Default::default(),
                    buffers: &[],
                },
                fragment: Some(wgpu::FragmentState {
                    module: &shader,
                    entry_point: Some(fragment),
                    compilation_options: Default::default(),
                    targets: &[Some(wgpu::ColorTargetState {
                        format: configuration.format,
                        blend: Some(wgpu::BlendState::ALPHA_BLENDING),
                        write_mask: wgpu::ColorWrites::ALL,
                    })],
                }),
                primitive: wgpu::PrimitiveState::default(),
                depth_stencil: None,
                multisample: wgpu::MultisampleState::default(),
                multiview_mask: None,
                cache: None,
            })
        };
        let tiles = device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d { width: tile, height: tile, depth_or_array_layers: TILES },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::Rgba8Unorm,
            // A picture of the browser is copied by drawing it.
            usage: wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::COPY_DST
                | wgpu::TextureUsages::RENDER_ATTACHMENT,
            view_formats: &[],
        });
        let view = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: VIEW_BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Ok(Self {
            lines: pipeline("line_vertex", "line_fragment"),
            marks: pipeline("mark_vertex", "mark_fragment"),
            pictures: pipeline("picture_vertex", "picture_fragment"),
            tables: ROW_BYTES.map(|size| Table { buffer: storage(device, size), count: 0 }),
            mark_count: 0,
            bindings: None,
            setup,
            surface,
            configuration,
            layout,
            tiles,
            view,
        })
    }

    /// Replaces the rows of a table.
    fn write(&mut self, table: usize, rows: &[u8]) -> Result<()> {
        let WgpuSetup { device, queue, .. } = &self.setup;
        let limits = device.limits();
        let largest = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let Table { buffer, count } = &mut self.tables[table];
        let size = rows.len() as u64;
        if size > largest {
            return Err(unusable(
                "the map has more points than a buffer of the graphics adapter holds".to_owned(),
                "draw the map without WebGPU",
            ));
        }
        if size > buffer.size() {
            *buffer = storage(device, size.next_power_of_two().min(largest));
            self.bindings = None;
        }
        queue.write_buffer(buffer, 0, rows);
        *count = (size / ROW_BYTES[table]) as u32;
        Ok(())
    }

    /// The number of a mark, which the page may only take from those that it has given.
    fn mark(&self, number: u32) -> Result<u32> {
        if number < self.mark_count {
            Ok(number)
        } else {
            Err(misuse(&format!("the map has no mark {number}")))
        }
    }

    fn bind(&self) -> wgpu::BindGroup {
        let device = &self.setup.device;
        let tiles = self.tiles.create_view(&wgpu::TextureViewDescriptor {
            dimension: Some(wgpu::TextureViewDimension::D2Array),
            ..Default::default()
        });
        let sampler = device.create_sampler(&wgpu::SamplerDescriptor {
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..Default::default()
        });
        let buffers = [&self.view].into_iter().chain(self.tables.iter().map(|table| &table.buffer));
        let mut entries: Vec<_> = buffers.map(wgpu::Buffer::as_entire_binding).collect();
        entries.push(wgpu::BindingResource::TextureView(&tiles));
        entries.push(wgpu::BindingResource::Sampler(&sampler));
        let entries: Vec<_> = (0..)
            .zip(entries)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &entries,
        })
    }
}

#[wasm_bindgen]
impl MapCanvas {
    /// The number of pictures that the map keeps; their tiles count from 0.
    pub fn tiles(&self) -> u32 {
        TILES
    }

    /// Sets the marks: red, green, blue (from 0 to 1), shape and size of each.
    ///
    /// # Errors
    ///
    /// Numbers are missing, or there are too many marks for a buffer.
    pub fn set_marks(&mut self, marks: &[f32]) -> Result<()> {
        let (rows, rest) = marks.as_chunks::<5>();
        if !rest.is_empty() {
            return Err(misuse("a mark of the map has five numbers"));
        }
        let padded = rows
            .iter()
            .flat_map(|&[red, green, blue, shape, size]| [red, green, blue, 1.0, shape, size, 0.0, 0.0]);
        self.mark_count = rows.len() as u32;
        self.write(MARKS, &bytes(padded))
    }

    /// Sets the items: the points of the map, `[N, 2]`, and the mark of each. Items with `above` cover all others.
    ///
    /// # Errors
    ///
    /// The arrays do not fit each other, a mark is unknown, or there are too many items for a buffer.
    pub fn set_items(&mut self, points: &[f32], marks: &[u16], above: &[u8]) -> Result<()> {
        let (points, rest) = points.as_chunks::<2>();
        if !rest.is_empty() || points.len() != marks.len() || points.len() != above.len() {
            return Err(misuse("the map has another number of points than of marks"));
        }
        let mut rows = Vec::with_capacity(points.len() * ROW_BYTES[ITEMS] as usize);
        for on_top in [false, true] {
            for ((&[x, y], &mark), _) in
                points.iter().zip(marks).zip(above).filter(|(_, above)| (**above != 0) == on_top)
            {
                rows.extend_from_slice(&x.to_le_bytes());
                rows.extend_from_slice(&y.to_le_bytes());
                rows.extend_from_slice(&self.mark(mark.into())?.to_le_bytes());
                rows.extend_from_slice(&[0; 4]);
            }
        }
        self.write(ITEMS, &rows)
    }

    /// Puts a picture into a tile.
    ///
    /// # Errors
    ///
    /// There is no such tile, or the picture has another size.
    pub fn set_tile(&self, tile: u32, picture: ImageBitmap) -> Result<()> {
        let side = self.tiles.width();
        if tile >= TILES || picture.width() != side || picture.height() != side {
            return Err(misuse(&format!("the map has {TILES} tiles of {side} × {side} pixels")));
        }
        self.setup.queue.copy_external_image_to_texture(
            &wgpu::CopyExternalImageSourceInfo {
                source: wgpu::ExternalImageSource::ImageBitmap(picture),
                origin: wgpu::Origin2d::ZERO,
                flip_y: false,
            },
            wgpu::CopyExternalImageDestInfo {
                texture: &self.tiles,
                mip_level: 0,
                origin: wgpu::Origin3d { x: 0, y: 0, z: tile },
                aspect: wgpu::TextureAspect::All,
                color_space: wgpu::PredefinedColorSpace::Srgb,
                premultiplied_alpha: false,
            },
            wgpu::Extent3d { width: side, height: side, depth_or_array_layers: 1 },
        );
        Ok(())
    }

    /// Draws a frame. `lines` are their ends, their width, and red, green and blue; `pictures`, which stand in the
    /// place of the items if there are any, are their middle, mark, tile (negative for none) and opacity; all in CSS
    /// pixels. The promise resolves when the device has drawn it.
    ///
    /// # Errors
    ///
    /// Numbers are missing, a mark is unknown, or the canvas is gone.
    pub fn draw(&mut self, view: JsValue, lines: &[f32], pictures: &[f32]) -> Result<Promise> {
        let view: MapView = from_js("view of the map", view)?;
        let limits = self.setup.device.limits();
        let side = 1..=limits.max_texture_dimension_2d;
        if !side.contains(&view.width) || !side.contains(&view.height) {
            return Err(misuse(&format!("the map cannot be {} × {} pixels", view.width, view.height)));
        }
        let (pictures, rest) = pictures.as_chunks::<5>();
        if !rest.is_empty() || !lines.len().is_multiple_of(8) {
            return Err(misuse("a line of the map has eight numbers, and a picture five"));
        }
        for &[_, _, mark, ..] in pictures {
            self.mark(mark as u32)?;
        }
        let padded =
            pictures.iter().flat_map(|&[x, y, mark, tile, opacity]| [x, y, mark, tile, opacity, 0.0]);
        self.write(PICTURES, &bytes(padded))?;
        self.write(LINES, &bytes(lines.iter().copied()))?;
        let WgpuSetup { device, queue, .. } = &self.setup;
        queue.write_buffer(&self.view, 0, &bytes(view.numbers()));
        if (self.configuration.width, self.configuration.height) != (view.width, view.height)
            || self.bindings.is_none()
        {
            self.configuration.width = view.width;
            self.configuration.height = view.height;
            self.surface.configure(device, &self.configuration);
        }
        if self.bindings.is_none() {
            self.bindings = Some(self.bind());
        }
        let texture = match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(texture)
            | wgpu::CurrentSurfaceTexture::Suboptimal(texture) => texture,
            other => {
                return Err(unusable(format!("the canvas of the map is gone: {other:?}"), "reload the page"));
            }
        };
        let target = texture.texture.create_view(&wgpu::TextureViewDescriptor::default());
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let [red, green, blue] = view.paper.map(f64::from);
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color { r: red, g: green, b: blue, a: 1.0 }),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_bind_group(0, self.bindings.as_ref(), &[]);
        let (things, pipeline) = if pictures.is_empty() {
            (self.tables[ITEMS].count, &self.marks)
        } else {
            (self.tables[PICTURES].count, &self.pictures)
        };
        for (count, pipeline) in [(self.tables[LINES].count, &self.lines), (things, pipeline)] {
            pass.set_pipeline(pipeline);
            pass.draw(0..count * VERTICES, 0..1);
        }
        drop(pass);
        queue.submit([encoder.finish()]);
        queue.present(texture);
        Ok(Promise::new(&mut |resolve, _| {
            queue.on_submitted_work_done(move || {
                // A promise always takes its value.
                let _ = resolve.call0(&JsValue::UNDEFINED);
            });
        }))
    }
}

impl MapView {
    /// The numbers of `View` in map.wgsl.
    fn numbers(&self) -> [f32; 16] {
        let [x, y] = self.centre;
        let [upper_x, upper_y] = [x as f32, y as f32];
        let rest = |whole: f64, upper: f32| (whole - f64::from(upper)) as f32;
        let [red, green, blue] = self.paper;
        [
            upper_x,
            upper_y,
            rest(x, upper_x),
            rest(y, upper_y),
            self.width as f32,
            self.height as f32,
            self.scale,
            (1.0 - x * x - y * y) as f32,
            self.radius,
            self.ratio,
            f32::from(u8::from(self.is_disk)),
            0.0,
            red,
            green,
            blue,
            1.0,
        ]
    }
}

fn storage(device: &wgpu::Device, size: u64) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// The bindings of map.wgsl.
fn layout_entries() -> [wgpu::BindGroupLayoutEntry; 7] {
    let buffer = |ty| wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None };
    std::array::from_fn(|binding| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::VERTEX_FRAGMENT,
        ty: match binding {
            0 => buffer(wgpu::BufferBindingType::Uniform),
            5 => wgpu::BindingType::Texture {
                sample_type: wgpu::TextureSampleType::Float { filterable: true },
                view_dimension: wgpu::TextureViewDimension::D2Array,
                multisampled: false,
            },
            6 => wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering),
            _ => buffer(wgpu::BufferBindingType::Storage { read_only: true }),
        },
        count: None,
    })
}

fn bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}
