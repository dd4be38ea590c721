//! What the build script embeds: that the checked-in kernels and bindings are those of their
//! sources, and what happens where they are not. Nothing here needs nvcc, libclang or a GPU.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fragbench::device::Entry;
use fragbench::device::modules::{FAULT, MODULES, Module};

#[cfg(not(feature = "regenerate"))]
#[path = "../build/bindings.rs"]
mod bindings;
#[path = "../build/folders.rs"]
mod folders;
#[path = "../build/kernels.rs"]
mod kernels;
#[path = "../build/manifest.rs"]
mod manifest;
#[path = "../build/nvcc.rs"]
mod nvcc;
#[path = "../build/sources.rs"]
mod sources;

use folders::Folders;
use manifest::Manifest;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    sources::read_text(&root().join(path)).unwrap()
}

fn recorded() -> Manifest {
    Manifest::parse(&read(Path::new("cuda/prebuilt").join(manifest::FILE)))
}

/// A copy of the package's `cuda/`, which a test may change.
struct Package {
    // While one thread writes a program, no other may fork: its child would hold the file open for
    // writing, and starting the program would fail ("text file busy").
    _alone: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    folders: Folders,
}

impl Package {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        copy_files(&root().join("cuda"), &folder.path().join("cuda"));
        copy_files(&root().join("cuda/prebuilt"), &folder.path().join("cuda/prebuilt"));
        Self { folders: Folders::of_package(folder.path(), out), folder, _alone: alone }
    }

    fn append(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        let old = fs::read_to_string(&path).unwrap();
        fs::write(path, old + text).unwrap();
    }

    fn build(&self, variables: &[(&str, PathBuf)]) -> Result<Manifest, String> {
        let environment = |name: &str| -> Option<OsString> {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        };
        kernels::build(&self.folders, &recorded(), false, &environment)
    }

    fn made(&self, name: &str) -> String {
        fs::read_to_string(self.folders.out.join(name)).unwrap()
    }
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// An nvcc that cannot be there, so that no test finds one of the machine's.
fn no_nvcc() -> [(&'static str, PathBuf); 1] {
    [("NVCC", PathBuf::from("no-such-folder/nvcc"))]
}

/// Every module, the one that faults included.
fn all_modules() -> impl Iterator<Item = &'static Module> {
    MODULES.iter().chain([&FAULT])
}

/// The source of a module: its name without the compute capability that it is built for.
fn source_of(module: &str) -> &str {
    module.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_')
}

#[test]
fn checked_in_files_are_made_from_the_sources_beside_them() {
    let cuda = root().join("cuda");
    let manifest = recorded();
    for module in all_modules() {
        let hash =
            sources::sha256_of_unit(&cuda, &format!("{}.cu", source_of(module.name))).unwrap();
        assert_eq!(manifest.get(module.name, "source_sha256"), Some(&*hash), "{}", module.name);
        let ptx = read(format!("cuda/prebuilt/{}.ptx", module.name));
        let hash = sources::sha256_of(&ptx);
        assert_eq!(manifest.get(module.name, "ptx_sha256"), Some(&*hash), "{}", module.name);
        assert_eq!(manifest.get(module.name, "nvcc"), Some("13.0.88"), "{}", module.name);
    }
    let hash = sources::sha256_of_unit(&cuda, "fragment.h").unwrap();
    assert_eq!(manifest.get(manifest::BINDINGS, "source_sha256"), Some(&*hash));
}

#[test]
fn modules_embed_the_checked_in_files() {
    let sources: BTreeSet<String> = fs::read_dir(root().join("cuda"))
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".cu").map(Into::into)
        })
        .collect();
    let modules: BTreeSet<String> =
        all_modules().map(|module| source_of(module.name).into()).collect();
    assert_eq!(modules, sources);
    // What measures nothing is none of the modules that a journal names.
    assert!(MODULES.iter().all(|module| module.name != FAULT.name));
    for module in all_modules() {
        // Not assert_eq: nobody reads two modules in a failure's message.
        let same = module.ptx == read(format!("cuda/prebuilt/{}.ptx", module.name));
        assert!(same, "{}: run examples/refresh_prebuilt", module.name);
        assert_eq!(module.sha256, sources::sha256_of(module.ptx), "{}", module.name);
    }
}

#[test]
fn ptx_loads_on_old_drivers_and_old_gpus() {
    // What the instructions of each module need, and no more.
    let needs = |name: &str| match name {
        "access_80" | "varied_80" | "windows_80" => ((7, 4), (8, 0)),
        "bulk" => ((8, 0), (9, 0)),
        _ => ((7, 0), (7, 5)),
    };
    for Module { name, ptx, ptx_version, least_capability, .. } in all_modules() {
        assert_eq!((*ptx_version, *least_capability), needs(name), "{name}");
        let ((version, minor), (major, capability)) = needs(name);
        let has = |wanted: String| ptx.lines().any(|line| line == wanted);
        assert!(has(format!(".version {version}.{minor}")), "{name}");
        assert!(has(format!(".target sm_{major}{capability}")), "{name}");
        assert_eq!(ptx.matches("\n.version ").count(), 1, "{name}");
    }
}

#[test]
fn ptx_has_an_entry_for_every_kernel() {
    for Module { name, ptx, .. } in all_modules() {
        let kernels: BTreeSet<String> = match *name {
            "control" => ["hold", "stamp"].map(|kernel| format!("fragbench_{kernel}")).into(),
            "duel" => ["duel", "who"].map(|kernel| format!("fragbench_{kernel}")).into(),
            "fault" => BTreeSet::from(["fragbench_fault".to_owned()]),
            _ => Entry::all()
                .into_iter()
                .filter(|entry| entry.modules().contains(name))
                .map(|entry| format!("fragbench_{}", entry.name()))
                .collect(),
        };
        let entries: BTreeSet<String> = ptx
            .lines()
            .filter_map(|line| line.strip_prefix(".visible .entry "))
            .map(|rest| rest.trim_end_matches('(').to_owned())
            .collect();
        assert_eq!(entries, kernels, "{name}");
    }
}

#[test]
fn ptx_holds_nothing_of_the_machine_that_made_it() {
    for Module { name, ptx, .. } in all_modules() {
        for line in ptx.lines() {
            let text = line.trim_start();
            assert!(!text.starts_with(".file"), "{name}: {line}");
            assert!(!text.starts_with(".loc"), "{name}: {line}");
            // Comments apart, a slash or a backslash occurs in paths only.
            let code = text.strip_prefix("//").unwrap_or(text);
            assert!(!code.contains(['/', '\\']), "{name}: {line}");
        }
    }
}

#[test]
fn ptx_defines_no_variables_outside_its_kernels() {
    // Those of internal linkage get a name with a hash of the source's path.
    for Module { name, ptx, .. } in all_modules() {
        for line in ptx.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(
                !words.iter().any(|word| [".global", ".const"].contains(word)),
                "{name}: {line}"
            );
        }
    }
}

#[test]
fn manifest_renders_what_it_reads() {
    let text = read("cuda/prebuilt/manifest.txt");
    assert_eq!(Manifest::parse(&text).render(), text);
}

#[test]
fn source_hash_is_of_this_checkout() {
    let hash = sources::sha256_of_trees(root(), &["src", "cuda"]).unwrap();
    assert_eq!(env!("FRAGBENCH_SOURCE_SHA256"), hash);
}

#[test]
fn hashes_ignore_line_endings_and_scratch_files_but_no_change() {
    let package = Package::new();
    let root = package.folder.path();
    let hash = || {
        let unit = sources::sha256_of_unit(&package.folders.cuda, "access.cu").unwrap();
        (unit, sources::sha256_of_trees(root, &["cuda"]).unwrap())
    };
    let before = hash();
    let header = package.folders.cuda.join("fragment.h");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, text.replace('\n', "\r\n")).unwrap();
    fs::write(package.folders.cuda.join(".access.cu.swp"), "scratch").unwrap();
    assert_eq!(hash(), before);

    // A header that access.cu includes only through another one.
    fs::write(&header, text + "\n").unwrap();
    let after = hash();
    assert_ne!(after.0, before.0);
    assert_ne!(after.1, before.1);
}

#[test]
fn unchanged_sources_need_no_nvcc() {
    let package = Package::new();
    let made = package.build(&no_nvcc()).unwrap();
    assert_eq!(made.get("access", "nvcc"), None);
    assert_eq!(package.made("access.ptx"), read("cuda/prebuilt/access.ptx"));
}

#[test]
fn changed_source_without_nvcc_names_the_change_and_the_cure() {
    let package = Package::new();
    package.append("cuda/control.cu", "/* changed */\n");
    let message = package.build(&no_nvcc()).unwrap_err();
    for part in ["cuda/control.cu", "no-such-folder", "Install the CUDA toolkit", "NVCC"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn changed_header_concerns_each_module_that_includes_it() {
    // index.h is included by access and verify, not by control.
    let package = Package::new();
    package.append("cuda/index.h", "/* changed */\n");
    let cuda = &package.folders.cuda;
    let changed = |name: &str| {
        let hash = sources::sha256_of_unit(cuda, &format!("{name}.cu")).unwrap();
        recorded().get(name, "source_sha256") != Some(&*hash)
    };
    assert!(changed("access") && changed("verify"));
    assert!(!changed("control"));
}

#[cfg(not(feature = "regenerate"))]
#[test]
fn changed_header_without_the_feature_names_the_feature() {
    let package = Package::new();
    let mut made = Manifest::default();
    bindings::build(&package.folders, &recorded(), &mut made).unwrap();
    assert_eq!(package.made("bindings.rs"), read("cuda/prebuilt/bindings.rs"));

    package.append("cuda/fragment.h", "/* changed */\n");
    let message = bindings::build(&package.folders, &recorded(), &mut made).unwrap_err();
    assert!(message.contains("cuda/fragment.h differs"), "{message}");
    assert!(message.contains("--features regenerate"), "{message}");
}

#[cfg(unix)]
mod with_a_stand_in_for_nvcc {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Puts a script that answers as nvcc does into `folder`.
    fn install(folder: &Path, version: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let script = format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --version ]; then echo 'Cuda compilation tools, V{version}'; exit; fi\n\
             grep -q 'syntax error' \"$4\" && {{ echo \"$4(1): error\" >&2; exit 2; }}\n\
             printf '// %s\\n.version 9.0\\n.target sm_75\\n' \"$*\" | sed 's/ -o .*//' >\"$6\"\n"
        );
        let program = folder.join("nvcc");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn changed_source_is_compiled_and_its_version_lowered() {
        let package = Package::new();
        package.append("cuda/control.cu", "/* changed */\n");
        let program = install(&package.folder.path().join("toolkit"), "12.8.93");
        let made = package.build(&[("NVCC", program)]).unwrap();
        assert_eq!(
            package.made("control.ptx"),
            "// --ptx -arch=compute_75 -O3 control.cu\n.version 7.0\n.target sm_75\n"
        );
        assert_eq!(made.get("control", "nvcc"), Some("12.8.93"));
        assert_eq!(made.get("access", "nvcc"), None, "access.cu has not changed");
        let hash = sources::sha256_of(&package.made("control.ptx"));
        assert!(package.made("modules.rs").contains(&hash));
    }

    #[test]
    fn variables_go_before_the_path() {
        let package = Package::new();
        package.append("cuda/control.cu", "/* changed */\n");
        let folder = |name: &str| package.folder.path().join(name);
        let named = install(&folder("named"), "1.0.1");
        install(&folder("home/bin"), "1.0.2");
        install(&folder("cuda-path/bin"), "1.0.3");
        install(&folder("path"), "1.0.4");
        let variables = [
            ("NVCC", named),
            ("CUDA_HOME", folder("home")),
            ("CUDA_PATH", folder("cuda-path")),
            ("PATH", folder("path")),
        ];
        for (skipped, version) in ["1.0.1", "1.0.2", "1.0.3", "1.0.4"].into_iter().enumerate() {
            let made = package.build(&variables[skipped..]).unwrap();
            assert_eq!(made.get("control", "nvcc"), Some(version));
        }
    }

    #[test]
    fn failing_compiler_is_quoted() {
        let package = Package::new();
        package.append("cuda/control.cu", "syntax error\n");
        let program = install(&package.folder.path().join("toolkit"), "13.0.88");
        let message = package.build(&[("NVCC", program)]).unwrap_err();
        assert!(message.contains("could not compile cuda/control.cu"), "{message}");
        assert!(message.contains("control.cu(1): error"), "{message}");
    }

    #[test]
    fn program_that_is_no_nvcc_is_refused() {
        let package = Package::new();
        package.append("cuda/control.cu", "/* changed */\n");
        let message = package.build(&[("NVCC", PathBuf::from("/bin/sh"))]).unwrap_err();
        assert!(message.contains("does not tell its version"), "{message}");
    }
}
