//! What goes wrong while the program runs, as it goes wrong for people: processes that are killed or
//! hang, a disk that is full, Ctrl-C in the middle. Everything runs on the host, in small cases.

mod disk;
mod fault;
mod hang;
mod kills;
#[path = "../process/mod.rs"]
mod process;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A case of tens of seconds, of which nearly all is the ageing of its heap.
const AGES: &str = "bandwidth/kernel=gather_read/pattern=aged.live/policy=best_fit/\
                    sizes=log_normal/occupancy=90/hole=64KiB/footprint=1GiB";

/// A case of less than a second.
fn quick(fragment: &str) -> String {
    format!("bandwidth/kernel=gather_read/pattern=shuffled/fragment={fragment}/footprint=64KiB")
}

fn fragbench() -> String {
    assert_cmd::cargo::cargo_bin("fragbench").to_str().unwrap().to_owned()
}

/// The arguments of a run on the host.
fn run_of(cases: &[String]) -> Vec<String> {
    let mut arguments =
        ["run", "--device", "host", "--out", "run.jsonl"].map(str::to_owned).to_vec();
    arguments.extend(cases.iter().map(|case| format!("--case={case}")));
    arguments
}

/// Starts the program, with all that it says kept.
fn start(folder: &Path, program: &str, arguments: &[String]) -> Child {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the program's end, and ends it where that does not come in time.
#[track_caller]
fn ended(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > process::PATIENCE {
            let _ = child.kill();
            panic!("it did not end: {:?}", child.wait_with_output());
        }
        sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}
