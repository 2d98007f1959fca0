// The map of the gallery: lines, marks and pictures, each as two triangles per line, mark or picture. They are not
// drawn as instances, because some drivers take as long for an instance of four corners as for a thousand corners.

struct View {
    // Upper and lower digits: one number of 32 bits is too coarse at a high zoom.
    centre: vec2f,
    centre_rest: vec2f,
    // In device pixels.
    size: vec2f,
    // Device pixels per unit of the plane, or the radius of the disk.
    scale: f32,
    // 1 − |centre|².
    from_rim: f32,
    // The radius of a mark in device pixels.
    radius: f32,
    // Device pixels per CSS pixel.
    ratio: f32,
    is_disk: f32,
    unused: f32,
    paper: vec4f,
}

struct Mark {
    colour: vec4f,
    shape: f32,
    size: f32,
}

struct Item {
    place: vec2f,
    // The faded marks come after all others.
    mark: u32,
}

// Places, sizes and widths of lines and pictures are in CSS pixels.
struct Line {
    ends: vec4f,
    width: f32,
    red: f32,
    green: f32,
    blue: f32,
}

struct Picture {
    middle: vec2f,
    mark: f32,
    // Negative while the picture loads.
    tile: f32,
    opacity: f32,
}

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> marks: array<Mark>;
@group(0) @binding(2) var<storage, read> items: array<Item>;
@group(0) @binding(3) var<storage, read> lines: array<Line>;
@group(0) @binding(4) var<storage, read> pictures: array<Picture>;
@group(0) @binding(5) var tiles: texture_2d_array<f32>;
@group(0) @binding(6) var smooth_sampler: sampler;

// The corner of a square from −1 to 1, for each of the six vertices of its two triangles.
fn corner(vertex: u32) -> vec2f {
    let number = (0xda4u >> (2u * (vertex % 6u))) & 3u;
    return vec2f(f32(number & 1u), f32(number >> 1u)) * 2.0 - 1.0;
}

// The position of a place in device pixels.
fn position(place: vec2f) -> vec4f {
    let unit = place / view.size * 2.0 - 1.0;
    return vec4f(unit.x, -unit.y, 0.0, 1.0);
}

// The share of a pixel that lies inside an edge at this distance.
fn coverage(distance: f32) -> f32 {
    return clamp(0.5 - distance, 0.0, 1.0);
}

// The place of a point of the map in device pixels.
fn project(point: vec2f) -> vec2f {
    let from_centre = (point - view.centre) - view.centre_rest;
    var seen = from_centre;
    if view.is_disk > 0.0 {
        // (p − c)/(1 − c̄p), where 1 − c̄p = 1 − |c|² − c̄(p − c) keeps its digits near the rim.
        let c = view.centre;
        let below = vec2f(
            view.from_rim - dot(c, from_centre),
            c.y * from_centre.x - c.x * from_centre.y,
        );
        seen = vec2f(dot(from_centre, below), from_centre.y * below.x - from_centre.x * below.y) / dot(below, below);
    }
    return view.size * 0.5 + vec2f(seen.x, -seen.y) * view.scale;
}

// --- Marks ---------------------------------------------------------------------------------------

fn box(at: vec2f, half: vec2f) -> f32 {
    let beyond = abs(at) - half;
    return length(max(beyond, vec2f(0.0))) + min(max(beyond.x, beyond.y), 0.0);
}

fn plus(at: vec2f, long: f32, wide: f32) -> f32 {
    return min(box(at, vec2f(long, wide)), box(at, vec2f(wide, long)));
}

fn triangle(at: vec2f) -> f32 {
    return max(at.y - 0.8, (abs(at.x) * 1.9 - (at.y + 1.1) * 1.05) / 2.171);
}

// The distance of a place to the edge of a shape of about radius 1: the shapes of marks.ts, in their order.
fn distance_to(shape: f32, at: vec2f) -> f32 {
    switch u32(shape) {
        case 1u: { return box(at, vec2f(0.85)); }
        case 2u: { return triangle(at); }
        case 3u: { return (abs(at.x) + abs(at.y) / 1.2 - 1.0) / 1.3017; }
        case 4u: { return plus(vec2f(at.x - at.y, at.x + at.y) * 0.70711, 1.202, 0.3536); }
        case 5u: { return triangle(vec2f(at.x, -at.y)); }
        case 6u: { return abs(length(at) - 0.75) - 0.25; }
        case 7u: { return plus(at, 1.1, 0.36); }
        default: { return length(at) - 0.95; }
    }
}

// A mark with an edge of the colour of the paper. `at` is in device pixels from its middle.
fn draw_mark(colour: vec3f, shape: f32, radius: f32, at: vec2f) -> vec4f {
    let distance = distance_to(shape, at / radius) * radius;
    if shape == 6.0 {
        return vec4f(colour, coverage(distance));
    }
    let edge = coverage(abs(distance) - 0.15 * radius);
    let inside = coverage(distance) * (1.0 - edge);
    let alpha = edge + inside;
    return vec4f(mix(view.paper.rgb, colour, inside / max(alpha, 0.001)), alpha);
}

struct MarkVertex {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
    @location(1) @interpolate(flat) colour: vec3f,
    @location(2) @interpolate(flat) shape: f32,
    @location(3) @interpolate(flat) radius: f32,
}

@vertex
fn mark_vertex(@builtin(vertex_index) vertex: u32) -> MarkVertex {
    let item = items[vertex / 6u];
    let mark = marks[item.mark];
    let radius = view.radius * mark.size;
    let at = corner(vertex) * (radius * 1.4 + 1.0);
    return MarkVertex(position(project(item.place) + at), at, mark.colour.rgb, mark.shape, radius);
}

@fragment
fn mark_fragment(vertex: MarkVertex) -> @location(0) vec4f {
    return draw_mark(vertex.colour, vertex.shape, vertex.radius, vertex.at);
}

// --- Lines ---------------------------------------------------------------------------------------

struct LineVertex {
    @builtin(position) position: vec4f,
    // Along the line and across it, in device pixels from its first end.
    @location(0) at: vec2f,
    @location(1) @interpolate(flat) length_and_width: vec2f,
    @location(2) @interpolate(flat) colour: vec3f,
}

@vertex
fn line_vertex(@builtin(vertex_index) vertex: u32) -> LineVertex {
    let line = lines[vertex / 6u];
    let first = line.ends.xy * view.ratio;
    let span = line.ends.zw * view.ratio - first;
    let long = max(length(span), 1e-3);
    let along = span / long;
    let across = vec2f(-along.y, along.x);
    let half = line.width * view.ratio * 0.5;
    let side = corner(vertex);
    let at = vec2f(select(-half - 1.0, long + half + 1.0, side.x > 0.0), side.y * (half + 1.0));
    return LineVertex(
        position(first + along * at.x + across * at.y),
        at,
        vec2f(long, half),
        vec3f(line.red, line.green, line.blue),
    );
}

@fragment
fn line_fragment(vertex: LineVertex) -> @location(0) vec4f {
    let ends = vec2f(0.0, vertex.length_and_width.x);
    let nearest = vec2f(clamp(vertex.at.x, ends.x, ends.y), 0.0);
    return vec4f(vertex.colour, coverage(distance(vertex.at, nearest) - vertex.length_and_width.y));
}

// --- Pictures ------------------------------------------------------------------------------------

// Half the side of a picture, of its frame, and the square in its corner with the mark.
const HALF: f32 = 22.0;
const FRAME: f32 = 24.0;
const CORNER: f32 = 10.0;
const CORNER_MARK: f32 = 17.0;
const CORNER_RADIUS: f32 = 4.5;

struct PictureVertex {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
    @location(1) @interpolate(flat) number: u32,
}

@vertex
fn picture_vertex(@builtin(vertex_index) vertex: u32) -> PictureVertex {
    let number = vertex / 6u;
    let at = corner(vertex) * FRAME;
    return PictureVertex(position((pictures[number].middle + at) * view.ratio), at, number);
}

@fragment
fn picture_fragment(vertex: PictureVertex) -> @location(0) vec4f {
    let picture = pictures[vertex.number];
    let mark = marks[u32(picture.mark)];
    var colour = mark.colour.rgb;
    if picture.tile >= 0.0 && max(abs(vertex.at.x), abs(vertex.at.y)) < HALF {
        let texture_at = vertex.at / (2.0 * HALF) + 0.5;
        colour = textureSampleLevel(tiles, smooth_sampler, texture_at, i32(picture.tile), 0.0).rgb;
    }
    if min(vertex.at.x, vertex.at.y) > CORNER {
        let at = (vertex.at - CORNER_MARK) * view.ratio;
        let drawn = draw_mark(mark.colour.rgb, mark.shape, CORNER_RADIUS * mark.size * view.ratio, at);
        colour = mix(view.paper.rgb, drawn.rgb, drawn.a);
    }
    return vec4f(colour, picture.opacity);
}
