//! Whether the driver and the device can take this build's kernels.

use super::{Finding, finding};
use crate::device::modules::Module;
use crate::record::DeviceFacts;

/// Versions as major and minor.
type Version = (u32, u32);

pub fn findings(facts: &DeviceFacts, modules: &[Module]) -> Vec<Finding> {
    let Some(least) = modules.iter().map(|module| module.least_capability).min() else {
        return Vec::new();
    };
    let capability = facts.compute_capability.as_deref().and_then(version);
    let Some(capability) = capability.filter(|own| *own >= least) else {
        return facts.compute_capability.iter().map(|own| too_old(own, least)).collect();
    };
    let driver = facts.cuda_driver.as_deref().and_then(version);
    let asked = |module: &Module| {
        let asked = cuda_of_ptx(module.ptx_version)?;
        (driver? < asked && module.least_capability <= capability).then_some(asked)
    };
    // Modules for newer devices only hold competitors; all else goes on without them.
    let is_needed = |module: &&Module| module.least_capability == least;
    let (needed, optional): (Vec<&Module>, Vec<&Module>) = modules.iter().partition(is_needed);
    let most = |modules: &[&Module]| modules.iter().filter_map(|module| asked(module)).max();
    let own = facts.cuda_driver.as_deref().unwrap_or_default();
    match (most(&needed), most(&optional)) {
        (Some((major, minor)), _) => vec![finding([
            &format!("the driver (CUDA {own}) is too old for this build's kernels"),
            "they cannot be loaded",
            &format!("update the NVIDIA driver to one of CUDA {major}.{minor} or newer"),
        ])],
        (None, Some((major, minor))) => vec![finding([
            &format!("the driver (CUDA {own}) is too old for the kernels of newer devices"),
            "those are left out",
            &format!("update the NVIDIA driver to one of CUDA {major}.{minor} or newer"),
        ])],
        (None, None) => Vec::new(),
    }
}

fn too_old(own: &str, (major, minor): Version) -> Finding {
    finding([
        &format!("the device has compute capability {own}"),
        &format!("the kernels need {major}.{minor}"),
        "choose another device",
    ])
}

fn version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first CUDA that knows a version of PTX (PTX ISA, "Release Notes"); none of versions that are not
/// known here.
fn cuda_of_ptx(ptx: Version) -> Option<Version> {
    match ptx {
        (6, minor @ 0..=2) => Some((9, minor)),
        (6, minor @ 3..=5) => Some((10, minor - 3)),
        (7, minor @ 0..=8) => Some((11, minor)),
        (8, minor @ 0..=5) => Some((12, minor)),
        // PTX 8.5 served CUDA 12.6 too.
        (8, minor @ 6..=8) => Some((12, minor + 1)),
        (9, minor @ 0..=1) => Some((13, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::modules::MODULES;
    use crate::record::DeviceKind;

    fn module(ptx_version: Version, least_capability: Version) -> Module {
        Module { name: "x", ptx: "", sha256: "", ptx_version, least_capability }
    }

    fn found(capability: &str, driver: &str) -> Vec<String> {
        let modules = [module((7, 0), (7, 5)), module((6, 3), (7, 5)), module((8, 0), (9, 0))];
        let facts = DeviceFacts {
            compute_capability: Some(capability.to_owned()),
            cuda_driver: Some(driver.to_owned()),
            ..DeviceFacts::new(DeviceKind::Cuda)
        };
        findings(&facts, &modules).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn drivers_have_to_know_the_newest_ptx_that_the_device_needs() {
        assert_eq!(found("7.5", "11.0"), [""; 0]);
        assert_eq!(
            found("7.5", "10.2"),
            ["the driver (CUDA 10.2) is too old for this build's kernels: they cannot be loaded; \
             update the NVIDIA driver to one of CUDA 11.0 or newer"]
        );
        assert!(found("7.5", "9.2")[0].contains("one of CUDA 11.0"));
        assert_eq!(found("8.9", "11.8"), [""; 0]);
        let left_out = found("9.0", "11.8");
        assert_eq!(left_out.len(), 1);
        assert!(left_out[0].contains("left out") && left_out[0].contains("CUDA 12.0"));
        assert_eq!(found("10.0", "12.0"), [""; 0]);
        assert_eq!(found("7.5", "unreadable"), [""; 0]);
    }

    #[test]
    fn devices_older_than_every_module_are_told_so() {
        assert_eq!(
            found("7.0", "13.0"),
            ["the device has compute capability 7.0: the kernels need 7.5; choose another device"]
        );
    }

    #[test]
    fn every_module_of_this_build_has_a_known_version() {
        for module in MODULES {
            assert!(cuda_of_ptx(module.ptx_version).is_some(), "{}", module.name);
        }
        assert_eq!(cuda_of_ptx((8, 8)), Some((12, 9)));
        assert_eq!(cuda_of_ptx((6, 5)), Some((10, 2)));
    }
}
