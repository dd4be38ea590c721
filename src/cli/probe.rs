//! The hidden verb `probe`: a process of its own lists the devices, under the environment that the
//! worker will have, so that `cuda:N` means the same device to both.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Failure, print};
use crate::device::{self, DeviceRequest, nvidia_hint};
use crate::measure::worker::Worker;
use crate::record::DeviceFacts;

/// How long the driver may take to list its devices.
const LISTING: Duration = Duration::from_secs(60);

/// The devices of this machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Probe {
    /// Every device that can be measured, the host last.
    pub devices: Vec<DeviceFacts>,
    /// Why there is no GPU among them.
    pub error: Option<String>,
}

/// Lists the devices: the child's side.
pub fn run() -> Result<(), Failure> {
    let (devices, error) = device::list();
    let probe = Probe { devices, error: error.map(|error| error.to_string()) };
    print(&(serde_json::to_string(&probe).map_err(Failure::request)? + "\n"))
}

/// Lists the devices: the parent's side.
pub fn probe() -> Result<Probe, Failure> {
    let case =
        |error| Failure { code: Failure::CASE, message: format!("{error}, listing devices") };
    let mut child = Worker::start(&["probe".to_owned()], &device::environment()).map_err(case)?;
    child.receive(LISTING, &|| false).map_err(case)
}

/// The device that is meant. `auto` without a usable device is no bad request.
pub fn resolve(request: &str) -> Result<DeviceFacts, Failure> {
    let request: DeviceRequest = request.parse().map_err(Failure::request)?;
    let Probe { devices, error } = probe()?;
    let hint = nvidia_hint().filter(|_| request == DeviceRequest::Auto);
    device::choose(&request, &devices, error.as_deref(), hint.as_deref()).map_err(|message| {
        let code = match request {
            DeviceRequest::Auto => Failure::CASE,
            _ => Failure::REQUEST,
        };
        Failure { code, message }
    })
}
