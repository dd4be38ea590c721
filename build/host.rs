//! The kernels for the host's processor, where there is a C++ compiler.

use std::io::ErrorKind;
use std::process::Command;

use super::folders::Folders;

/// Compiles `cuda/host*.cpp` and sets `cfg(fragbench_host)`; without a compiler it warns only.
pub fn build(folders: &Folders) -> Result<(), String> {
    println!("cargo::rustc-check-cfg=cfg(fragbench_host)");
    if !has_compiler() {
        println!(
            "cargo::warning=no C++ compiler was found: this build cannot measure the host \
             (--device host). GPUs are not affected. Install g++ or clang++, or set CXX"
        );
        return Ok(());
    }
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .opt_level(3)
        .file(folders.cuda.join("host.cpp"))
        .file(folders.cuda.join("host_varied.cpp"))
        .flag_if_supported("-fno-exceptions")
        .flag_if_supported("-fno-rtti")
        // Else g++ turns the plain copy loop into memcpy, and a stream and its packed arm are not
        // comparable.
        .flag_if_supported("-fno-tree-loop-distribute-patterns");
    build
        .try_compile("fragbench_host")
        .map_err(|error| format!("cuda/host*.cpp could not be compiled: {error}"))?;
    println!("cargo::rustc-cfg=fragbench_host");
    Ok(())
}

fn has_compiler() -> bool {
    let mut build = cc::Build::new();
    build.cpp(true).cargo_warnings(false);
    let Ok(compiler) = build.try_get_compiler() else { return false };
    match Command::new(compiler.path()).arg("--version").output() {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}
