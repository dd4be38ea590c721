//! Embeds the kernels and the bindings, and compiles the host's kernels.
//!
//! Writes to `OUT_DIR` only. What is checked in under `cuda/prebuilt` is taken as it is while its
//! sources are unchanged, so that everybody measures the same kernels and needs no CUDA toolkit.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "build/bindings.rs"]
mod bindings;
#[path = "build/folders.rs"]
mod folders;
#[path = "build/host.rs"]
mod host;
#[path = "build/kernels.rs"]
mod kernels;
#[path = "build/manifest.rs"]
mod manifest;
#[path = "build/nvcc.rs"]
mod nvcc;
#[path = "build/sources.rs"]
mod sources;

use folders::Folders;
use manifest::Manifest;

fn main() {
    if let Err(message) = build() {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn build() -> Result<(), String> {
    let root = folder("CARGO_MANIFEST_DIR");
    let folders = Folders::of_package(&root, folder("OUT_DIR"));
    tell_inputs();
    let recorded = recorded(&folders.prebuilt);
    let regenerate = cfg!(feature = "regenerate");
    let mut made = kernels::build(&folders, &recorded, regenerate, &|name| env::var_os(name))?;
    bindings::build(&folders, &recorded, &mut made)?;
    fs::write(folders.out.join(manifest::FILE), made.render())
        .map_err(|error| format!("{}: {error}", manifest::FILE))?;
    host::build(&folders)?;
    tell_source_hash(&root)
}

fn folder(variable: &str) -> PathBuf {
    env::var_os(variable).expect("cargo sets it").into()
}

fn tell_inputs() {
    for path in ["build.rs", "build", "src", "cuda"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// An absent manifest records nothing: then everything counts as changed.
fn recorded(prebuilt: &Path) -> Manifest {
    sources::read_text(&prebuilt.join(manifest::FILE))
        .map(|text| Manifest::parse(&text))
        .unwrap_or_default()
}

fn tell_source_hash(root: &Path) -> Result<(), String> {
    let hash =
        sources::sha256_of_trees(root, &["src", "cuda"]).map_err(|error| error.to_string())?;
    println!("cargo::rustc-env=FRAGBENCH_SOURCE_SHA256={hash}");
    Ok(())
}
