//! What stands between a process and its devices: MPS, and Windows.

use std::path::Path;

/// Whether anything suggests that an MPS server stands between this process and the device.
pub fn mps_is_running() -> bool {
    let pipe = std::env::var("CUDA_MPS_PIPE_DIRECTORY").unwrap_or("/tmp/nvidia-mps".to_owned());
    Path::new(&pipe).join("control").exists()
}

/// Whether the system is Linux under Windows; none where it does not tell its release.
pub fn is_wsl() -> Option<bool> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(is_wsl_release(&release))
}

/// The kernel of WSL has releases like `5.15.167.4-microsoft-standard-WSL2`.
fn is_wsl_release(release: &str) -> bool {
    release.to_ascii_lowercase().contains("microsoft")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_wsl_are_known_by_their_release() {
        assert!(is_wsl_release("5.15.167.4-microsoft-standard-WSL2\n"));
        assert!(is_wsl_release("4.4.0-19041-Microsoft"));
        assert!(!is_wsl_release("6.8.0-1031-azure\n"));
    }
}
