//! The driver itself: whether it is there, its version, and the facts of its devices.

use std::sync::OnceLock;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{result, sys};

use super::super::nvml::Monitor;
use super::super::system;
use super::DeviceError;
use crate::record::{DeviceFacts, DeviceKind};

/// Turns the driver's error into ours. The code's name comes from the enum: asking the driver for
/// it would be one more call that can fail.
pub(super) trait Check<T> {
    fn check(self, call: &'static str) -> Result<T, DeviceError>;
}

impl<T> Check<T> for Result<T, DriverError> {
    fn check(self, call: &'static str) -> Result<T, DeviceError> {
        self.map_err(|error| DeviceError::Call { call, code: format!("{:?}", error.0) })
    }
}

/// Loads and starts the driver, once.
fn start() -> Result<(), DeviceError> {
    static STARTED: OnceLock<Result<(), DeviceError>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            // SAFETY: only tries to open the library; cudarc panics on a missing one later.
            if !unsafe { sys::is_culib_present() } {
                return Err(DeviceError::NoDriver);
            }
            match result::init() {
                Ok(()) => Ok(()),
                Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => {
                    Err(DeviceError::NoDevice)
                }
                Err(error) => Err(DeviceError::DriverBroken(format!("{:?}", error.0))),
            }
        })
        .clone()
}

/// The CUDA version that the driver implements, as `13.0`.
pub(super) fn cuda_version() -> Option<String> {
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok()?;
    Some(format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// Whether a compute capability `major.minor` is below another; unreadable ones are.
pub(super) fn is_older(capability: &str, than: (u32, u32)) -> bool {
    let parts = capability
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    parts.is_none_or(|parts| parts < than)
}

/// Facts of every CUDA device. Creates no context.
///
/// # Errors
///
/// [`DeviceError`] says why there is none.
pub fn list() -> Result<Vec<DeviceFacts>, DeviceError> {
    start()?;
    let count = result::device::get_count().check("cuDeviceGetCount")?;
    if count == 0 {
        return Err(DeviceError::NoDevice);
    }
    (0..count).map(facts).collect()
}

fn facts(ordinal: i32) -> Result<DeviceFacts, DeviceError> {
    let device = result::device::get(ordinal).check("cuDeviceGet")?;
    // SAFETY: `device` was just given by the driver (also below).
    let attribute = |what| unsafe { result::device::get_attribute(device, what) }.ok();
    // The driver says 0 for what it does not know.
    let known = |what| attribute(what).filter(|value| *value > 0).map(|value| value as u64);
    let uuid = result::device::get_uuid(device).check("cuDeviceGetUuid")?;
    let uuid = format_uuid(uuid.bytes.map(|byte| byte as u8));
    let capability = |what| attribute(what).unwrap_or(0);
    let mut facts = DeviceFacts {
        id: format!("cuda:{ordinal}"),
        name: result::device::get_name(device).check("cuDeviceGetName")?,
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }.check("cuDeviceTotalMem")?
            as u64,
        l2_bytes: known(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        multiprocessors: known(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map(|count| count as u32),
        compute_capability: Some(format!(
            "{}.{}",
            capability(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            capability(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        )),
        memory_clock_khz: known(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        bus_width_bits: known(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        sm_clock_khz: known(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        ecc: attribute(Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED).map(|on| on != 0),
        cuda_driver: cuda_version(),
        pci_bus_id: attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID).map(|bus| {
            let domain = capability(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
            let slot = capability(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
            format!("{domain:04x}:{bus:02x}:{slot:02x}.0")
        }),
        integrated: attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED).map(|on| on != 0),
        uuid: Some(uuid),
        mps: Some(system::mps_is_running()),
        wsl: system::is_wsl(),
        ..DeviceFacts::new(DeviceKind::Cuda)
    };
    if let Some(monitor) = facts.uuid.as_deref().and_then(Monitor::open) {
        monitor.complete(&mut facts);
    }
    Ok(facts)
}

/// The UUID as nvidia-smi prints it.
fn format_uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_read_like_nvidia_smi() {
        let bytes = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(format_uuid(bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn capabilities_compare_by_number() {
        assert!(is_older("7.0", (7, 5)));
        assert!(!is_older("7.5", (7, 5)));
        assert!(!is_older("10.0", (7, 5)));
        assert!(is_older("", (7, 5)));
    }
}
