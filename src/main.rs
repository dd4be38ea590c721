//! `fragbench`: see `fragbench --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fragbench::cli::main()
}
