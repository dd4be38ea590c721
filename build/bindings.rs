//! Rust's view of `cuda/fragment.h`: checked in, made anew only with the feature `regenerate`.

use std::fs;

use super::folders::Folders;
use super::manifest::{BINDINGS, Manifest};
use super::sources;

const HEADER: &str = "fragment.h";

/// The bindings' text in `OUT_DIR`, and what it was made from.
pub fn build(folders: &Folders, recorded: &Manifest, made: &mut Manifest) -> Result<(), String> {
    let hash = sources::sha256_of_unit(&folders.cuda, HEADER).map_err(|error| error.to_string())?;
    let text = text(folders, recorded.get(BINDINGS, "source_sha256") == Some(&hash))?;
    made.set(BINDINGS, "source_sha256", &hash);
    fs::write(folders.out.join("bindings.rs"), text)
        .map_err(|error| format!("bindings.rs: {error}"))
}

#[cfg(not(feature = "regenerate"))]
fn text(folders: &Folders, current: bool) -> Result<String, String> {
    if current {
        let path = folders.prebuilt.join("bindings.rs");
        return sources::read_text(&path).map_err(|error| error.to_string());
    }
    Err("cuda/fragment.h differs from what cuda/prebuilt/bindings.rs was made from. Make the \
         bindings anew with the feature `regenerate` (it needs libclang and nvcc): \
         cargo run --features regenerate --example refresh_prebuilt; or take the change back \
         (git status cuda)"
        .to_owned())
}

#[cfg(feature = "regenerate")]
fn text(folders: &Folders, _current: bool) -> Result<String, String> {
    println!("cargo::rerun-if-env-changed=LIBCLANG_PATH");
    // bindgen itself panics where libclang is missing.
    if clang_sys::load().is_err() {
        return Err("the feature `regenerate` needs libclang, which was not found. Install it \
             (libclang-dev, or the wheel `libclang` from PyPI) and set LIBCLANG_PATH to the \
             folder that holds it"
            .to_owned());
    }
    let header = sources::read_text(&folders.cuda.join(HEADER)).map_err(|e| e.to_string())?;
    let bindings = bindgen::Builder::default()
        .header_contents(HEADER, &header)
        .allowlist_type("fragment_task|varied_task|window_table|duel_task")
        .allowlist_var("FRAGBENCH_.*")
        .derive_copy(true)
        .derive_debug(true)
        .derive_default(true)
        .use_core()
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()
        .map_err(|error| format!("bindgen could not read cuda/{HEADER}: {error}"))?;
    document_constants(&bindings.to_string(), &header)
}

/// Carries the comments of macros over, which clang does not attach to them.
#[cfg(feature = "regenerate")]
fn document_constants(bindings: &str, header: &str) -> Result<String, String> {
    let mut text = String::new();
    for line in bindings.lines() {
        if let Some(rest) = line.strip_prefix("pub const ") {
            let name = rest.split(':').next().unwrap_or_default();
            let comment = comment_of(header, name).ok_or_else(|| {
                format!("cuda/{HEADER}: {name} needs a `/** ... */` on the line above it")
            })?;
            text.push_str(&format!("/// {comment}\n"));
        }
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(feature = "regenerate")]
fn comment_of<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let definition = format!("#define {name} ");
    let mut above = "";
    for line in header.lines() {
        if line.starts_with(&definition) {
            return above.strip_prefix("/** ")?.strip_suffix(" */");
        }
        above = line;
    }
    None
}
