//! cosine

/// Rows of unit length. A zero row stays zero, with a finite gradient.
#[cfg(feature = "tensor")]
pub fn normalise(rows: burn::tensor::Tensor<2>) -> burn::tensor::Tensor<2> {
    let squared_length = rows.clone().square().sum_dim(1);
    rows / (squared_length + 1e-24).sqrt()
}
