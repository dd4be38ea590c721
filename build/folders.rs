//! Where things are.

use std::path::{Path, PathBuf};

/// The folders that the build reads, and the one that it writes.
pub struct Folders {
    /// The kernels' sources.
    pub cuda: PathBuf,
    /// What is checked in, made from them.
    pub prebuilt: PathBuf,
    /// `OUT_DIR`.
    pub out: PathBuf,
}

impl Folders {
    /// The folders of the package at `root`.
    pub fn of_package(root: &Path, out: PathBuf) -> Self {
        let cuda = root.join("cuda");
        Self { prebuilt: cuda.join("prebuilt"), cuda, out }
    }
}
