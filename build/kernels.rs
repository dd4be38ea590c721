//! The PTX modules: checked in where their sources have not changed, compiled anew where they have.

use std::fmt::Write;
use std::fs;

use super::folders::Folders;
use super::manifest::Manifest;
use super::nvcc::{Environment, Nvcc};
use super::sources;

/// The kernels' modules, each made from `cuda/<name>.cu`.
const NAMES: [&str; 3] = ["access", "control", "verify"];

/// Turing is the oldest GPU that nvcc 13 compiles for. No `-lineinfo`: it puts paths into the PTX.
const FLAGS: [&str; 3] = ["--ptx", "-arch=compute_75", "-O3"];

/// The PTX version that every module is labelled with. nvcc labels PTX with its own, and a driver
/// refuses what is newer than itself; the instructions used here need no more than this, which
/// drivers from CUDA 11.0 on (2020) load.
const PTX_VERSION: &str = "7.0";

/// The text of each module, and what it was made from.
pub fn build(
    folders: &Folders,
    recorded: &Manifest,
    regenerate: bool,
    environment: Environment,
) -> Result<Manifest, String> {
    let mut made = Manifest::default();
    let mut nvcc = None;
    let mut listing = String::new();
    for name in NAMES {
        let hash = sources::sha256_of_unit(&folders.cuda, &format!("{name}.cu"))
            .map_err(|error| error.to_string())?;
        let ptx = if !regenerate && is_current(recorded, name, &hash) {
            sources::read_text(&folders.prebuilt.join(format!("{name}.ptx")))
                .map_err(|error| error.to_string())?
        } else {
            if nvcc.is_none() {
                nvcc = Some(
                    Nvcc::find(environment).map_err(|why| needs_nvcc(name, regenerate, &why))?,
                );
            }
            let nvcc = nvcc.as_ref().expect("it was found above");
            made.set(name, "nvcc", &nvcc.version);
            compile(folders, nvcc, name)?
        };
        made.set(name, "source_sha256", &hash);
        made.set(name, "flags", &FLAGS.join(" "));
        made.set(name, "ptx_version", PTX_VERSION);
        made.set(name, "ptx_sha256", &sources::sha256_of(&ptx));
        fs::write(folders.out.join(format!("{name}.ptx")), &ptx)
            .map_err(|error| format!("{name}.ptx: {error}"))?;
        listing.push_str(&entry(name, &ptx)?);
    }
    let text = format!(
        "/// Every module of the build, by name.\npub static MODULES: &[Module] = &[\n{listing}];\n"
    );
    fs::write(folders.out.join("modules.rs"), text)
        .map_err(|error| format!("modules.rs: {error}"))?;
    Ok(made)
}

fn is_current(recorded: &Manifest, name: &str, hash: &str) -> bool {
    recorded.get(name, "source_sha256") == Some(hash)
        && recorded.get(name, "flags") == Some(&FLAGS.join(" "))
        && recorded.get(name, "ptx_version") == Some(PTX_VERSION)
}

fn needs_nvcc(name: &str, regenerate: bool, why: &str) -> String {
    let cause = if regenerate {
        "the feature `regenerate` compiles every kernel anew".to_owned()
    } else {
        format!(
            "cuda/{name}.cu, a header that it includes, or its compiler flags differ from what \
             cuda/prebuilt/{name}.ptx was made from, so it has to be compiled anew"
        )
    };
    format!(
        "{cause}, but {why}. Install the CUDA toolkit or set NVCC to the path of nvcc, or take \
         the change back (git status cuda)"
    )
}

fn compile(folders: &Folders, nvcc: &Nvcc, name: &str) -> Result<String, String> {
    let raw = folders.out.join(format!("{name}.nvcc.ptx"));
    nvcc.compile(&folders.cuda, &format!("{name}.cu"), &FLAGS, &raw)?;
    let text = sources::read_text(&raw).map_err(|error| error.to_string())?;
    lower_version(&text).ok_or_else(|| format!("nvcc's PTX of {name}.cu has no `.version` line"))
}

fn lower_version(ptx: &str) -> Option<String> {
    let line = ptx.lines().find(|line| line.starts_with(".version "))?;
    Some(ptx.replacen(line, &format!(".version {PTX_VERSION}"), 1))
}

fn entry(name: &str, ptx: &str) -> Result<String, String> {
    let (major, minor) = version_of(ptx)
        .ok_or_else(|| format!("cuda/prebuilt/{name}.ptx has no readable `.version` line"))?;
    let mut text = String::new();
    writeln!(
        text,
        "    Module {{\n        name: \"{name}\",\n        \
         ptx: include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.ptx\")),\n        \
         sha256: \"{}\",\n        ptx_version: ({major}, {minor}),\n    }},",
        sources::sha256_of(ptx)
    )
    .expect("a string takes every text");
    Ok(text)
}

fn version_of(ptx: &str) -> Option<(u32, u32)> {
    let line = ptx.lines().find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = line.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
