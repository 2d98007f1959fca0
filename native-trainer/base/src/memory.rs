//! Memory that the program keeps for the next batch.

/// Lets the allocator keep what is freed, where it is glibc's.
///
/// A training frees and takes the same memory at each step. glibc gives large blocks back to the system at once, and the
/// system clears the pages of new ones: a quarter of the time of a step of SqueezeNet. It reads its settings when a program
/// begins, so the program begins again with them, before it has done anything. Settings that the user has made stay.
pub fn keep() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    {
        use std::env;
        use std::os::unix::process::CommandExt;
        use std::process::Command;

        const VARIABLE: &str = "GLIBC_TUNABLES";
        // 1 TiB: more than any block.
        const SETTINGS: &str =
            "glibc.malloc.mmap_threshold=1099511627776:glibc.malloc.trim_threshold=1099511627776";

        if env::var_os(VARIABLE).is_some() {
            return;
        }
        let mut arguments = env::args_os();
        let (Ok(program), Some(name)) = (env::current_exe(), arguments.next()) else { return };
        // Returns only if it fails. Then the program goes on, and is a little slower.
        let _ = Command::new(program).arg0(name).args(arguments).env(VARIABLE, SETTINGS).exec();
    }
}
