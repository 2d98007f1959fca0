//! The machine that this program runs on, its memory, and the date.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::quantities::rounded_bytes;

/// The peak memory of this process so far, in bytes. Known only on Linux.
pub fn peak_memory() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// The memory that this process has now, in bytes. Known only on Linux.
pub fn resident_memory() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS:")
}

/// The memory of this machine, and how much of it programs can still have, in bytes. Known only on Linux.
pub fn memory() -> Option<(u64, u64)> {
    Some((kilobytes("/proc/meminfo", "MemTotal:")?, kilobytes("/proc/meminfo", "MemAvailable:")?))
}

/// The memory that this process can still have, in bytes: what the machine has left, within the limits of its control
/// groups and of `ulimit -v`. Known only on Linux.
pub fn free_memory() -> Option<u64> {
    let free = memory().map(|(_, free)| free);
    [free, free_addresses(), free_in_control_groups()].into_iter().flatten().min()
}

/// What `ulimit -v` leaves, if it is set.
fn free_addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// What the limits of this process's control groups leave, if there are any.
fn free_in_control_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(groups.lines().find_map(|line| line.strip_prefix("0::/"))?);
    own.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(free_in_control_group).min()
}

/// What the limit of the control group in this folder leaves. Pages of files do not count: the system gives them back.
fn free_in_control_group(folder: &Path) -> Option<u64> {
    let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let limit: u64 = text("memory.max")?.trim().parse().ok()?;
    let used: u64 = text("memory.current")?.trim().parse().ok()?;
    let statistics = text("memory.stat")?;
    let entries = statistics.lines().filter_map(|line| line.split_once(' '));
    let file_pages = entries.filter(|(name, _)| ["active_file", "inactive_file"].contains(name));
    let file_bytes: u64 = file_pages.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
    Some(limit.saturating_sub(used.saturating_sub(file_bytes)))
}

/// The memory of each NVIDIA GPU that programs can still have, in bytes, in the order of the driver; empty without one.
/// `CUDA_VISIBLE_DEVICES` chooses among the GPUs, as for CUDA.
pub fn free_gpu_memory() -> Vec<u64> {
    let answer = program("nvidia-smi").and_then(|program| {
        let mut command = Command::new(program);
        command.args(["--query-gpu=memory.free", "--format=csv,noheader,nounits"]);
        if let Some(visible) = env::var_os("CUDA_VISIBLE_DEVICES") {
            command.arg("-i").arg(visible);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()
    });
    let text = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse::<u64>().ok()).map(|megabytes| megabytes << 20).collect()
}

/// The free space of the disk that a folder is on, in bytes. Known only on Unix.
pub fn free_disk(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// The number of threads that run at the same time.
pub fn cores() -> usize {
    available_parallelism().map_or(1, |cores| cores.get())
}

/// The path of a program, if it is in one of the folders of `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|path| path.is_file())
}

/// Cores, memory and system, for example "2 cores, 16.8 GB of memory, linux on x86_64".
pub fn describe() -> String {
    let cores = cores();
    let memory = kilobytes("/proc/meminfo", "MemTotal:")
        .map(|bytes| format!(", {} of memory", rounded_bytes(bytes)))
        .unwrap_or_default();
    let cores = if cores == 1 { "1 core".into() } else { format!("{cores} cores") };
    format!("{cores}{memory}, {} on {}", std::env::consts::OS, std::env::consts::ARCH)
}

/// The name of this machine in its network, where the system tells it.
pub fn host() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| env::var("COMPUTERNAME").ok());
    host.map_or("this machine".into(), |host| host.trim().to_owned())
}

/// The date in UTC: `2026-11-21`.
pub fn today() -> String {
    date(seconds_since_1970() / 86_400)
}

/// The date and the time of the day in UTC: `2026-11-21 14:05 UTC`.
pub fn now() -> String {
    let minutes = seconds_since_1970() / 60;
    format!("{} {:02}:{:02} UTC", date(minutes / 1_440), minutes / 60 % 24, minutes % 60)
}

/// Seconds since 1970.
pub fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn seconds_since_1970() -> u64 {
    unix_time() as u64
}

/// The date `day` days after 1970-01-01.
fn date(mut day: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, day + 1)
}

/// The bytes that a line `name  1234 kB` in a file of the kernel gives.
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kilobytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(
            [0, 59, 11_016, 20_778].map(date),
            ["1970-01-01", "1970-03-01", "2000-02-29", "2026-11-21"]
        );
    }

    #[test]
    fn the_limit_of_a_control_group_counts_without_pages_of_files() {
        let group = tempfile::tempdir().unwrap();
        let free = |limit: &str| {
            fs::write(group.path().join("memory.max"), limit).unwrap();
            free_in_control_group(group.path())
        };
        fs::write(group.path().join("memory.current"), "700\n").unwrap();
        fs::write(group.path().join("memory.stat"), "anon 400\nactive_file 100\ninactive_file 200\n")
            .unwrap();
        assert_eq!([free("1000\n"), free("300\n"), free("max\n")], [Some(600), Some(0), None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_the_peak_memory() {
        let block = vec![1_u8; 64 << 20];
        assert!(peak_memory().unwrap() > block.iter().map(|&byte| u64::from(byte)).sum());
    }
}
