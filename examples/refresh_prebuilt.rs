//! Brings `cuda/prebuilt` up to date with `cuda/`.
//!
//! ```text
//! cargo run --features regenerate --example refresh_prebuilt
//! cargo run --features regenerate --example refresh_prebuilt -- --check
//! ```
//!
//! The build script has made every file anew in `OUT_DIR` by the time this runs; what is left is to
//! copy them, or with `--check` to compare them and write nothing. Exit code 1: something differs;
//! 2: bad usage.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

const FILES: [&str; 14] = [
    "access.ptx",
    "access_80.ptx",
    "bindings.rs",
    "bulk.ptx",
    "control.ptx",
    "duel.ptx",
    "fault.ptx",
    "manifest.txt",
    "varied.ptx",
    "varied_80.ptx",
    "verify.ptx",
    "verify_varied.ptx",
    "windows.ptx",
    "windows_80.ptx",
];

fn main() -> ExitCode {
    if !cfg!(feature = "regenerate") {
        eprintln!(
            "refresh_prebuilt needs the feature `regenerate`, with nvcc and libclang: \
             cargo run --features regenerate --example refresh_prebuilt"
        );
        return ExitCode::from(2);
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => refresh(&made(), &prebuilt()),
        ["--check"] => check(&made(), &prebuilt()),
        _ => {
            eprintln!("usage: refresh_prebuilt [--check]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn made() -> PathBuf {
    env!("OUT_DIR").into()
}

fn prebuilt() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda/prebuilt")
}

fn refresh(made: &Path, prebuilt: &Path) -> io::Result<bool> {
    fs::create_dir_all(prebuilt)?;
    for name in FILES {
        let text = fs::read(made.join(name))?;
        if fs::read(prebuilt.join(name)).is_ok_and(|old| old == text) {
            println!("unchanged  cuda/prebuilt/{name}");
        } else {
            fs::write(prebuilt.join(name), text)?;
            println!("written    cuda/prebuilt/{name}");
        }
    }
    Ok(true)
}

fn check(made: &Path, prebuilt: &Path) -> io::Result<bool> {
    let mut same = true;
    for name in FILES {
        let text = fs::read(made.join(name))?;
        match fs::read(prebuilt.join(name)) {
            Ok(old) if old == text => println!("same       cuda/prebuilt/{name}"),
            Ok(_) => {
                same = false;
                println!("DIFFERENT  cuda/prebuilt/{name}");
            }
            Err(error) => {
                same = false;
                println!("UNREADABLE cuda/prebuilt/{name}: {error}");
            }
        }
    }
    if !same {
        eprintln!(
            "error: what is checked in is not what cuda/ gives with this nvcc and bindgen; \
             run this again without --check and commit the result"
        );
    }
    Ok(same)
}
