//! Work on all threads with the feature `parallel`, and on one without it. No result depends on it.

/// Calls `work` with each chunk of some length, and its number. The last chunk may be shorter.
pub(crate) fn each_chunk<T: Send>(
    numbers: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if numbers.len() > length {
        use rayon::prelude::*;
        numbers.par_chunks_mut(length).enumerate().for_each(|(i, chunk)| work(i, chunk));
        return;
    }
    numbers.chunks_mut(length).enumerate().for_each(|(i, chunk)| work(i, chunk));
}

/// Calls `work` with each map of a result, of `length` numbers each, and its number: several in a row on a thread.
pub(crate) fn each_map(result: &mut [f32], length: usize, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
    let run = (result.len() / length).div_ceil(4 * count()).max(1);
    each_chunk(result, run * length, |i, maps| {
        for (j, map) in maps.chunks_exact_mut(length).enumerate() {
            work(i * run + j, map);
        }
    });
}

/// What `make` gives for 0, 1, …, `count` − 1.
pub(crate) fn collect<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        // Below some kilobytes another thread is not worth its start.
        let least = (1 << 14) / size_of::<T>().max(1) + 1;
        (0..count).into_par_iter().with_min_len(least).map(make).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        (0..count).map(make).collect()
    }
}

/// Zeros, which all threads write where they are many.
pub(crate) fn zeros(count: usize) -> Vec<f32> {
    const RUN: usize = 1 << 10;
    if count < 64 * RUN {
        return vec![0.0; count];
    }
    let mut zeros = collect(count.div_ceil(RUN), |_| [0.0; RUN]).into_flattened();
    zeros.truncate(count);
    zeros
}

/// The number of threads that work.
pub(crate) fn count() -> usize {
    #[cfg(feature = "parallel")]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "parallel"))]
    {
        1
    }
}
