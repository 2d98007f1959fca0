//! `akin`, the command line. The library of this package is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    native_trainer::main()
}
