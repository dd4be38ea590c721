//! nvcc: where it is, and from a kernel's source to PTX.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What decides which nvcc is taken and what it does.
const VARIABLES: [&str; 7] = [
    "NVCC",
    "CUDA_HOME",
    "CUDA_PATH",
    "PATH",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
];

const USUAL_ROOTS: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];

/// How a variable is looked up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A found nvcc.
pub struct Nvcc {
    program: PathBuf,
    /// The compiler's version, as `13.0.88`.
    pub version: String,
}

impl Nvcc {
    /// Finds nvcc. A program that `NVCC` names is taken or refused, never passed over.
    pub fn find(environment: Environment) -> Result<Self, String> {
        // Told only where nvcc is needed: else each change of PATH would build the crate anew.
        for name in VARIABLES {
            println!("cargo::rerun-if-env-changed={name}");
        }
        if let Some(named) = variable(environment, "NVCC") {
            let program = PathBuf::from(named);
            return Self::ask(&program)
                .map_err(|why| format!("NVCC names {}, but {why}", program.display()));
        }
        candidates(environment).iter().find_map(|program| Self::ask(program).ok()).ok_or_else(
            || {
                "nvcc was not found through NVCC, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda or \
             /opt/cuda"
                    .to_owned()
            },
        )
    }

    fn ask(program: &Path) -> Result<Self, String> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .map_err(|error| format!("it does not start: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix('V').filter(|rest| rest.contains('.')))
            .ok_or("it does not tell its version as nvcc does")?;
        Ok(Self { program: program.to_owned(), version: version.to_owned() })
    }

    /// Compiles `source` in `folder` to PTX.
    pub fn compile(
        &self,
        folder: &Path,
        source: &str,
        flags: &[&str],
        to: &Path,
    ) -> Result<(), String> {
        // From within the folder and by its bare name, so that no path can reach the PTX.
        let output = Command::new(&self.program)
            .current_dir(folder)
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(to)
            .output()
            .map_err(|error| format!("{} does not start: {error}", self.program.display()))?;
        if output.status.success() { Ok(()) } else { Err(failure(source, &output)) }
    }
}

fn failure(source: &str, output: &Output) -> String {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("nvcc could not compile cuda/{source}:\n{}{}", said[0], said[1])
}

fn candidates(environment: Environment) -> Vec<PathBuf> {
    let name = format!("nvcc{}", env::consts::EXE_SUFFIX);
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter();
    let homes = homes.filter_map(|name| variable(environment, name)).map(PathBuf::from);
    let path = environment("PATH").unwrap_or_default();
    let roots = USUAL_ROOTS.into_iter().map(PathBuf::from);
    homes
        .map(|home| home.join("bin"))
        .chain(env::split_paths(&path))
        .chain(roots.map(|root| root.join("bin")))
        .map(|folder| folder.join(&name))
        .collect()
}

fn variable(environment: Environment, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}
