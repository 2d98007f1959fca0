//! Work on all threads with the feature `parallel`, and on one without it. No result depends on it.

/// The results of `work` for 0 … `count` − 1, in this order, whatever order they run in.
pub(crate) fn in_order<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        (0..count).into_par_iter().map(work).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        (0..count).map(work).collect()
    }
}

/// The results of `work` for each of the items, in their order, whatever order they run in.
pub(crate) fn each_in_order<I: Send, T: Send>(items: Vec<I>, work: impl Fn(I) -> T + Sync + Send) -> Vec<T> {
    each_in_order_with(items, |(): &mut (), item| work(item))
}

/// As [`each_in_order`], with memory that one thread uses for one item after another. `work` finds in it what it left.
pub(crate) fn each_in_order_with<I: Send, M: Default, T: Send>(
    items: Vec<I>,
    work: impl Fn(&mut M, I) -> T + Sync + Send,
) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        items.into_par_iter().map_init(M::default, work).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        let mut memory = M::default();
        items.into_iter().map(|item| work(&mut memory, item)).collect()
    }
}

/// The results of two pieces of work, which may run at the same time.
pub(crate) fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "parallel")]
    {
        rayon::join(first, second)
    }
    #[cfg(not(feature = "parallel"))]
    {
        (first(), second())
    }
}

/// The number of threads that work.
pub(crate) fn threads() -> usize {
    #[cfg(feature = "parallel")]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "parallel"))]
    {
        1
    }
}
