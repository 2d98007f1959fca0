//! Workers: devices that share the images of a batch. Each has threads of its own.

use akin_base::problem::Advise;
use akin_base::threads::RAISE_LIMIT;
use anyhow::Result;
use burn::tensor::Device;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::config::device::is_cpu;

/// See the [module](self).
pub(super) struct Workers {
    /// With gradients; at least one.
    devices: Vec<Device>,
    /// One for each device; none for a single device, whose work is done in the thread that asks for it.
    threads: Vec<ThreadPool>,
}

impl Workers {
    /// A worker for each of at least one device. The weights, the loss and the optimisers are on the first.
    ///
    /// # Errors
    ///
    /// A system that starts no more threads.
    pub(super) fn new(devices: &[Device]) -> Result<Self> {
        let count = devices.len();
        let pool = |device: &Device| {
            // Workers of the CPU share its cores. A GPU keeps memory apart for every thread that gives it work.
            let threads = if is_cpu(device) { rayon::current_num_threads() / count } else { 1 };
            ThreadPoolBuilder::new().num_threads(threads.max(1)).build().advise(
                || format!("the threads of {count} workers cannot be started"),
                &format!("lower run.workers, or {RAISE_LIMIT}"),
            )
        };
        let shared = if count > 1 { devices } else { &[] };
        Ok(Self {
            devices: devices.iter().map(|device| device.clone().autodiff()).collect(),
            threads: shared.iter().map(pool).collect::<Result<_>>()?,
        })
    }

    /// The number of workers.
    pub(super) fn count(&self) -> usize {
        self.devices.len()
    }

    /// The device of the weights, the loss and the optimisers, with gradients.
    pub(super) fn first(&self) -> &Device {
        &self.devices[0]
    }

    /// Does `work` for each part of a batch, at the same time: the first part on the first device, and so on. Returns the
    /// results in the same order. There are at most as many parts as workers.
    pub(super) fn run<P: Send, T: Send>(
        &self,
        parts: Vec<P>,
        work: impl Fn(&Device, P) -> T + Sync,
    ) -> Vec<T> {
        if self.threads.is_empty() {
            return parts.into_iter().map(|part| work(self.first(), part)).collect();
        }
        let work = &work;
        let jobs = self.devices.iter().zip(parts).map(|(device, part)| move || work(device, part));
        let mut results = Vec::new();
        run_together(&mut self.threads.iter().zip(jobs), &mut results);
        results.reverse();
        results
    }
}

/// Does the first job in its threads and, at the same time, the others in theirs. Adds the results, that of the last job
/// first.
fn run_together<'a, T: Send, J: FnOnce() -> T + Send>(
    jobs: &mut impl Iterator<Item = (&'a ThreadPool, J)>,
    results: &mut Vec<T>,
) {
    let Some((threads, job)) = jobs.next() else { return };
    let mut result = None;
    threads.in_place_scope(|scope| {
        scope.spawn(|_| result = Some(job()));
        run_together(jobs, results);
    });
    results.extend(result);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_parts() {
        for count in [1, 2, 3] {
            let workers = Workers::new(&vec![Device::flex(); count]).unwrap();
            for parts in 1..=count {
                let results = workers.run((0..parts).collect(), |_, part| 10 * part);
                assert_eq!(results, (0..parts).map(|part| 10 * part).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_worker_keeps_its_threads() {
        let workers = Workers::new(&[Device::flex(), Device::flex()]).unwrap();
        let mut seen = HashSet::new();
        for _ in 0..20 {
            seen.extend(workers.run(vec![(), ()], |_, ()| thread::current().id()));
        }
        assert!(seen.len() <= 2.max(rayon::current_num_threads()), "{seen:?}");
        assert!(!seen.contains(&thread::current().id()));
    }
}
