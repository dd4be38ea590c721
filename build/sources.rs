//! Hashes of source texts: the same on every machine, whatever the line endings of the checkout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The file's text with line endings normalised.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(text.replace("\r\n", "\n"))
}

/// SHA-256 of a text, in hexadecimal.
pub fn sha256_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// SHA-256 over a source and each header that it includes with quotes, directly or not.
pub fn sha256_of_unit(folder: &Path, source: &str) -> io::Result<String> {
    let mut names = vec![source.to_owned()];
    let mut next = 0;
    while next < names.len() {
        for header in quoted_includes(&read_text(&folder.join(&names[next]))?) {
            if !names.contains(&header) {
                names.push(header);
            }
        }
        next += 1;
    }
    names.sort();
    sha256_of_files(names.into_iter().map(|name| (folder.join(&name), name)))
}

/// SHA-256 over every file under the folders, sorted by their paths relative to `root`.
pub fn sha256_of_trees(root: &Path, folders: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    for folder in folders {
        collect_files(&root.join(folder), folder, &mut files)?;
    }
    files.sort_by(|a, b| a.1.cmp(&b.1));
    sha256_of_files(files)
}

fn sha256_of_files(files: impl IntoIterator<Item = (PathBuf, String)>) -> io::Result<String> {
    let mut hash = Sha256::new();
    for (path, name) in files {
        let text = read_text(&path)?;
        // Name and length delimit each file: moving text from one file to the next is a change.
        hash.update(format!("{name}\n{}\n", text.len()));
        hash.update(text);
    }
    Ok(hex(&hash.finalize()))
}

fn collect_files(
    folder: &Path,
    prefix: &str,
    files: &mut Vec<(PathBuf, String)>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_scratch(&name) {
            continue;
        }
        let relative = format!("{prefix}/{name}");
        if entry.file_type()?.is_dir() {
            collect_files(&entry.path(), &relative, files)?;
        } else {
            files.push((entry.path(), relative));
        }
    }
    Ok(())
}

/// Whether the name is one that editors and snapshot tests leave behind.
fn is_scratch(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || name.ends_with(".snap.new")
}

fn quoted_includes(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix("#include \""))
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
