//! The CUDA runtime, loaded where it is installed.

use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use super::home::Failure;

/// The runtime's name by version: of CUDA 13, 12 and 11, and of whatever a toolkit links to.
const NAMES: [&str; 4] =
    ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"];

/// Variables that name the folder of a CUDA toolkit.
const ROOT_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];

/// `cudaErrorMemoryAllocation`.
const OUT_OF_MEMORY: c_int = 2;

type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
type SetDevice = unsafe extern "C" fn(c_int) -> c_int;
type GetLastError = unsafe extern "C" fn() -> c_int;
type GetErrorName = unsafe extern "C" fn(c_int) -> *const c_char;

/// What is called of the runtime.
pub(super) struct Cudart {
    malloc: Malloc,
    free: Free,
    set_device: SetDevice,
    get_last_error: GetLastError,
    get_error_name: GetErrorName,
    // The functions above are in it. It is never unloaded: the runtime has threads of its own.
    _library: Library,
}

impl Cudart {
    /// The first runtime that loads and takes the device; loaded once. The error says why there is
    /// none and what to do.
    pub fn get(ordinal: u32) -> Result<&'static Cudart, String> {
        static LOADED: OnceLock<Result<Cudart, String>> = OnceLock::new();
        let load = || {
            let files = candidates(|variable| std::env::var_os(variable));
            first(&files, |file| Cudart::open(file, ordinal))
        };
        LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    fn open(file: &PathBuf, ordinal: u32) -> Result<Cudart, NotTaken> {
        // SAFETY: the runtime's library may be loaded at any time; what it runs then is its own.
        let library = unsafe { Library::new(file) }.map_err(|_| NotTaken::Absent)?;
        let lacks = |_| NotTaken::Refused("lacks a function of the runtime".to_owned());
        // SAFETY: the types are those of cuda_runtime_api.h, the same since CUDA 11 (also below).
        let cudart = unsafe {
            Cudart {
                malloc: *library.get::<Malloc>(c"cudaMalloc").map_err(lacks)?,
                free: *library.get::<Free>(c"cudaFree").map_err(lacks)?,
                set_device: *library.get::<SetDevice>(c"cudaSetDevice").map_err(lacks)?,
                get_last_error: *library.get::<GetLastError>(c"cudaGetLastError").map_err(lacks)?,
                get_error_name: *library.get::<GetErrorName>(c"cudaGetErrorName").map_err(lacks)?,
                _library: library,
            }
        };
        // Newer than the driver is told only now.
        match cudart.set_device(ordinal) {
            Ok(()) => Ok(cudart),
            Err(Failure::OutOfMemory) => Err(NotTaken::Refused("has no memory left".to_owned())),
            Err(Failure::Call { call, code }) => {
                Err(NotTaken::Refused(format!("{call} failed with {code}")))
            }
        }
    }

    /// Makes the device the thread's current one, in its primary context.
    pub fn set_device(&self, ordinal: u32) -> Result<(), Failure> {
        // SAFETY: takes any number.
        self.told("cudaSetDevice", unsafe { (self.set_device)(ordinal as c_int) })
    }

    pub fn malloc(&self, bytes: u64) -> Result<u64, Failure> {
        let mut address = std::ptr::null_mut();
        // SAFETY: writes one address.
        self.told("cudaMalloc", unsafe { (self.malloc)(&mut address, bytes as usize) })?;
        Ok(address as u64)
    }

    /// # Safety
    ///
    /// The address is from [`Cudart::malloc`] and was not freed since.
    pub unsafe fn free(&self, address: u64) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        self.told("cudaFree", unsafe { (self.free)(address as *mut c_void) })
    }

    fn told(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        // It would be told again by whichever call asks for it next.
        // SAFETY: takes nothing.
        unsafe { (self.get_last_error)() };
        if code == OUT_OF_MEMORY {
            return Err(Failure::OutOfMemory);
        }
        // SAFETY: gives a text that is never freed, for any number.
        let name = unsafe { (self.get_error_name)(code) };
        let code = match name.is_null() {
            true => format!("error {code}"),
            // SAFETY: not null, and ends with a NUL.
            false => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
        };
        Err(Failure::Call { call, code })
    }
}

/// Why a file is not the runtime that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NotTaken {
    /// There is none, or none that loads.
    Absent,
    /// It loads, and then this.
    Refused(String),
}

/// The files that are tried, in order: first where the system looks, `LD_LIBRARY_PATH` included,
/// then in toolkits.
fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let roots = ROOT_VARIABLES.iter().filter_map(|name| variable(name));
    let roots = roots.filter(|root| !root.is_empty()).map(PathBuf::from);
    // `lib` is where packages of Python and Conda have it.
    let folders = roots.flat_map(|root| [root.join("lib64"), root.join("lib")]);
    let mut files: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    for folder in folders.chain([PathBuf::from("/usr/local/cuda/lib64")]) {
        for name in NAMES {
            let file = folder.join(name);
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// The first that is taken; else a sentence that says what was tried and what to do.
fn first<T>(
    files: &[PathBuf],
    open: impl Fn(&PathBuf) -> Result<T, NotTaken>,
) -> Result<T, String> {
    let mut refused = Vec::new();
    for file in files {
        match open(file) {
            Ok(taken) => return Ok(taken),
            Err(NotTaken::Absent) => {}
            Err(NotTaken::Refused(why)) => refused.push(format!("{} {why}", file.display())),
        }
    }
    if !refused.is_empty() {
        return Err(format!(
            "the CUDA runtime cannot be used ({}); install one that is no newer than the driver, or \
             choose cu_mem_alloc",
            refused.join("; ")
        ));
    }
    Err(format!(
        "the CUDA runtime could not be loaded (tried {}, there and in lib64 and lib of CUDA_HOME, \
         CUDA_PATH and /usr/local/cuda); install it, or let CUDA_HOME or LD_LIBRARY_PATH name its \
         folder, or choose cu_mem_alloc",
        NAMES.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_looked_for_where_the_system_and_the_user_say() {
        let plain = candidates(|_| None);
        let texts: Vec<&str> = plain.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(texts[..4], NAMES);
        assert_eq!(texts[4], "/usr/local/cuda/lib64/libcudart.so.13");
        assert_eq!(texts.len(), 8);

        let home = |variable: &str| (variable == "CUDA_HOME").then(|| "/opt/cuda".into());
        let with_home = candidates(home);
        assert_eq!(with_home[4], PathBuf::from("/opt/cuda/lib64/libcudart.so.13"));
        assert_eq!(with_home[8], PathBuf::from("/opt/cuda/lib/libcudart.so.13"));
        assert_eq!(with_home.len(), 16);
        // The same folder twice is tried once, and an empty one not at all.
        assert_eq!(candidates(|_| Some("/opt/cuda".into())), with_home);
        assert_eq!(candidates(|_| Some(OsString::new())), plain);
    }

    #[test]
    fn the_first_that_is_taken_is_used() {
        let files: Vec<PathBuf> = ["a", "b", "c"].map(PathBuf::from).to_vec();
        let absent = |_: &PathBuf| Err::<(), _>(NotTaken::Absent);
        let taken = first(&files, |file| match file.to_str() {
            Some("a") => Err(NotTaken::Refused("is too new".to_owned())),
            name => Ok(name.map(str::to_owned)),
        });
        assert_eq!(taken, Ok(Some("b".to_owned())));
        let none = first(&files, absent).unwrap_err();
        for named in NAMES.iter().chain(&["CUDA_HOME", "LD_LIBRARY_PATH", "install it"]) {
            assert!(none.contains(named), "{none}");
        }
        let refused = first(&files, |file| match file.to_str() {
            Some("b") => Err::<(), _>(NotTaken::Refused("is too new".to_owned())),
            _ => Err(NotTaken::Absent),
        });
        let refused = refused.unwrap_err();
        assert!(refused.contains("(b is too new); install one that is no newer"), "{refused}");
    }
}
