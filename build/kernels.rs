//! The PTX modules: checked in where their sources have not changed, compiled anew where they have.

use std::fmt::Write;
use std::fs;

use super::folders::Folders;
use super::manifest::Manifest;
use super::nvcc::{Environment, Nvcc};
use super::sources;

/// A module of kernels, made from `cuda/<file>`.
struct Source {
    name: &'static str,
    file: &'static str,
    /// No `-lineinfo`: it puts paths into the PTX.
    flags: [&'static str; 3],
    /// The lowest compute capability that the module runs on.
    capability: (u32, u32),
    /// The PTX version that the module is labelled with. nvcc labels PTX with its own, and a driver
    /// refuses what is newer than itself.
    ptx_version: &'static str,
}

/// Turing is the oldest GPU that nvcc 13 compiles for. The instructions need no more than PTX 7.0,
/// which drivers from CUDA 11.0 on (2020) load.
const fn for_all(name: &'static str, file: &'static str) -> Source {
    let flags = ["--ptx", "-arch=compute_75", "-O3"];
    Source { name, file, flags, capability: (7, 5), ptx_version: "7.0" }
}

/// The same kernels with hints to the caches: Ampere and later, drivers from CUDA 11.4 on (2021).
const fn with_hints(name: &'static str, file: &'static str) -> Source {
    let flags = ["--ptx", "-arch=compute_80", "-O3"];
    Source { name, file, flags, capability: (8, 0), ptx_version: "7.4" }
}

const SOURCES: [Source; 11] = [
    for_all("access", "access.cu"),
    with_hints("access_80", "access.cu"),
    // Bulk asynchronous copies: Hopper and later, drivers from CUDA 12.0 on.
    Source {
        name: "bulk",
        file: "bulk.cu",
        flags: ["--ptx", "-arch=compute_90", "-O3"],
        capability: (9, 0),
        ptx_version: "8.0",
    },
    for_all("control", "control.cu"),
    for_all("duel", "duel.cu"),
    for_all("varied", "varied.cu"),
    with_hints("varied_80", "varied.cu"),
    for_all("verify", "verify.cu"),
    for_all("verify_varied", "verify_varied.cu"),
    for_all("windows", "windows.cu"),
    with_hints("windows_80", "windows.cu"),
];

/// The kernel that faults on purpose. It measures nothing, and is none of the modules that a run is told
/// by.
const FAULT: Source = for_all("fault", "fault.cu");

/// The text of each module, and what it was made from.
pub fn build(
    folders: &Folders,
    recorded: &Manifest,
    regenerate: bool,
    environment: Environment,
) -> Result<Manifest, String> {
    let mut made = Manifest::default();
    let mut nvcc = None;
    let mut entries = Vec::new();
    for source in SOURCES.iter().chain([&FAULT]) {
        let name = source.name;
        let hash = sources::sha256_of_unit(&folders.cuda, source.file)
            .map_err(|error| error.to_string())?;
        let ptx = if !regenerate && is_current(recorded, source, &hash) {
            sources::read_text(&folders.prebuilt.join(format!("{name}.ptx")))
                .map_err(|error| error.to_string())?
        } else {
            if nvcc.is_none() {
                nvcc = Some(
                    Nvcc::find(environment).map_err(|why| needs_nvcc(source, regenerate, &why))?,
                );
            }
            let nvcc = nvcc.as_ref().expect("it was found above");
            made.set(name, "nvcc", &nvcc.version);
            compile(folders, nvcc, source)?
        };
        made.set(name, "source_sha256", &hash);
        made.set(name, "flags", &source.flags.join(" "));
        made.set(name, "ptx_version", source.ptx_version);
        made.set(name, "ptx_sha256", &sources::sha256_of(&ptx));
        fs::write(folders.out.join(format!("{name}.ptx")), &ptx)
            .map_err(|error| format!("{name}.ptx: {error}"))?;
        entries.push(entry(source, &ptx)?);
    }
    let fault = entries.pop().expect("it is the last of them");
    let text = format!(
        "/// Every module that measures or verifies, by name.\n\
         pub static MODULES: &[Module] = &[\n{}];\n\n\
         /// The kernel that faults on purpose.\npub static FAULT: Module =\n{};\n",
        entries.iter().map(|entry| format!("{entry},\n")).collect::<String>(),
        fault
    );
    fs::write(folders.out.join("modules.rs"), text)
        .map_err(|error| format!("modules.rs: {error}"))?;
    Ok(made)
}

fn is_current(recorded: &Manifest, source: &Source, hash: &str) -> bool {
    recorded.get(source.name, "source_sha256") == Some(hash)
        && recorded.get(source.name, "flags") == Some(&source.flags.join(" "))
        && recorded.get(source.name, "ptx_version") == Some(source.ptx_version)
}

fn needs_nvcc(source: &Source, regenerate: bool, why: &str) -> String {
    let Source { name, file, .. } = source;
    let cause = if regenerate {
        "the feature `regenerate` compiles every kernel anew".to_owned()
    } else {
        format!(
            "cuda/{file}, a header that it includes, or its compiler flags differ from what \
             cuda/prebuilt/{name}.ptx was made from, so it has to be compiled anew"
        )
    };
    format!(
        "{cause}, but {why}. Install the CUDA toolkit or set NVCC to the path of nvcc, or take \
         the change back (git status cuda)"
    )
}

fn compile(folders: &Folders, nvcc: &Nvcc, source: &Source) -> Result<String, String> {
    let name = source.name;
    let raw = folders.out.join(format!("{name}.nvcc.ptx"));
    nvcc.compile(&folders.cuda, source.file, &source.flags, &raw)?;
    let text = sources::read_text(&raw).map_err(|error| error.to_string())?;
    lower_version(&text, source.ptx_version)
        .ok_or_else(|| format!("nvcc's PTX of {name} has no `.version` line"))
}

fn lower_version(ptx: &str, version: &str) -> Option<String> {
    let line = ptx.lines().find(|line| line.starts_with(".version "))?;
    Some(ptx.replacen(line, &format!(".version {version}"), 1))
}

fn entry(source: &Source, ptx: &str) -> Result<String, String> {
    let Source { name, capability, .. } = source;
    let (major, minor) = version_of(ptx)
        .ok_or_else(|| format!("cuda/prebuilt/{name}.ptx has no readable `.version` line"))?;
    let mut text = String::new();
    write!(
        text,
        "    Module {{\n        name: \"{name}\",\n        \
         ptx: include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.ptx\")),\n        \
         sha256: \"{}\",\n        ptx_version: ({major}, {minor}),\n        \
         least_capability: ({}, {}),\n    }}",
        sources::sha256_of(ptx),
        capability.0,
        capability.1
    )
    .expect("a string takes every text");
    Ok(text)
}

fn version_of(ptx: &str) -> Option<(u32, u32)> {
    let line = ptx.lines().find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = line.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
