//! Random numbers from one seed, split into named streams.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

/// The random stream of a name and a position (epoch, step, image …) under one seed.
///
/// Equal arguments give equal numbers, on every platform and whatever was drawn elsewhere. A resumed run asks for the
/// stream of its epoch and step, and so continues the same sequence.
///
/// ```
/// use akin_core::random::stream;
/// use rand::Rng;
///
/// let mut sampler = stream(42, "sampler", &[3, 0]);
/// assert_eq!(sampler.next_u64(), stream(42, "sampler", &[3, 0]).next_u64());
/// assert_ne!(sampler.next_u64(), stream(42, "sampler", &[3, 1]).next_u64());
/// ```
pub fn stream(seed: u64, name: &str, position: &[u64]) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    // The length distinguishes a name from a shorter name followed by a position.
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    for number in position {
        hash.update(number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// `count` numbers from the uniform distribution over low … high.
pub fn uniform(rng: &mut ChaCha8Rng, count: usize, low: f32, high: f32) -> Vec<f32> {
    (0..count).map(|_| low + (high - low) * rng.random::<f32>()).collect()
}

/// `count` numbers from the normal distribution with mean 0 and this standard deviation.
pub fn normal(rng: &mut ChaCha8Rng, count: usize, deviation: f32) -> Vec<f32> {
    (0..count).map(|_| deviation * rng.sample::<f32, _>(StandardNormal)).collect()
}

/// `count` vectors of unit length that are orthogonal to each other, each of `length` ≥ `count` numbers, one after the
/// other: those that Gram and Schmidt's method makes of vectors from the normal distribution. All directions are equally
/// likely.
pub fn orthonormal(rng: &mut ChaCha8Rng, count: usize, length: usize) -> Vec<f32> {
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut vector: Vec<f64> = (0..length).map(|_| rng.sample(StandardNormal)).collect();
        for earlier in &vectors {
            let part: f64 = earlier.iter().zip(&vector).map(|(one, other)| one * other).sum();
            vector.iter_mut().zip(earlier).for_each(|(number, along)| *number -= part * along);
        }
        let norm = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|number| *number /= norm);
        vectors.push(vector);
    }
    vectors.into_iter().flatten().map(|number| number as f32).collect()
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::Rng;

    use super::*;

    #[test]
    fn streams_never_change() {
        // A later version can resume the runs of this one only if these numbers stay the same.
        assert_eq!(stream(7, "sampler", &[]).next_u64(), 14_855_297_808_542_846_980);
        assert_eq!(stream(7, "sampler", &[0]).next_u64(), 11_942_066_226_116_196_716);
    }
}
