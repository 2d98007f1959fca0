//! Files of weights, written as safetensors and as torch do.

/// A tensor of a file: its name, shape and numbers.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

impl Stored {
    pub(crate) fn new(name: &str, shape: &[usize], values: Vec<f32>) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), values }
    }
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// The length of the header, the header in JSON, the numbers.
pub(crate) fn safetensors(tensors: &[Stored]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut numbers = Vec::new();
    for Stored { name, shape, values } in tensors {
        let start = numbers.len();
        numbers.extend(little_endian(values));
        let place =
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()] });
        header.insert(name.clone(), place);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &numbers].concat()
}

/// A zip as `torch.save` writes it: a pickle, and a file for the numbers of each tensor.
pub(crate) fn pth(tensors: &[Stored]) -> Vec<u8> {
    let storages: Vec<(String, Vec<u8>)> = tensors
        .iter()
        .enumerate()
        .map(|(i, tensor)| (format!("weights/data/{i}"), little_endian(&tensor.values)))
        .collect();
    let pickle = ("weights/data.pkl".to_owned(), pickle(tensors));
    zip(&[vec![pickle], storages].concat())
}

/// A pickle of an ordered dictionary of tensors.
fn pickle(tensors: &[Stored]) -> Vec<u8> {
    let mut out = b"\x80\x02ccollections\nOrderedDict\n)R(".to_vec();
    let text = |out: &mut Vec<u8>, text: &str| {
        out.push(b'X');
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text.as_bytes());
    };
    let number = |out: &mut Vec<u8>, number: usize| {
        out.push(b'J');
        out.extend((number as i32).to_le_bytes());
    };
    for (i, Stored { name, shape, values }) in tensors.iter().enumerate() {
        text(&mut out, name);
        out.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        text(&mut out, "storage");
        out.extend(b"ctorch\nFloatStorage\n");
        text(&mut out, &i.to_string());
        text(&mut out, "cpu");
        number(&mut out, values.len());
        out.extend(b"tQ");
        number(&mut out, 0);
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        for sizes in [shape, &strides] {
            out.push(b'(');
            sizes.iter().for_each(|&size| number(&mut out, size));
            out.push(b't');
        }
        out.extend(b"\x89ccollections\nOrderedDict\n)RtR");
    }
    out.extend(b"u.");
    out
}

/// A zip without compression. Nobody here reads its checksums.
pub(crate) fn zip(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut contents) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let place = (out.len() as u32).to_le_bytes();
        let size = (bytes.len() as u32).to_le_bytes();
        let lengths = [&(name.len() as u16).to_le_bytes()[..], &[0, 0]].concat();
        let common = [&[0; 4][..], &[0; 8], &size, &size, &lengths].concat();
        out.extend(
            [b"PK\x03\x04\x00\x00", &common[..8], &common[8..12], &common[12..], name.as_bytes(), bytes]
                .concat(),
        );
        contents
            .extend([b"PK\x01\x02\x00\x00\x00\x00", &common[..], &[0; 10], &place, name.as_bytes()].concat());
    }
    let (start, length) = ((out.len() as u32).to_le_bytes(), (contents.len() as u32).to_le_bytes());
    let count = (files.len() as u16).to_le_bytes();
    out.extend(contents);
    out.extend([b"PK\x05\x06\x00\x00\x00\x00", &count[..], &count, &length, &start, &[0, 0]].concat());
    out
}
