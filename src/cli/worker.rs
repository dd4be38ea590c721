//! The hidden verb `worker`: the process that holds the device.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::device::{self, DeviceError};
use crate::experiment::{AllocationPlan, Heap, Plan, Session};
use crate::measure::limit::{MemoryLimit, memory_limit};
use crate::measure::worker::serve;
use crate::record::{Allocation, ClockTest, DeviceFacts, Group};
use crate::selftest::{self, Subject, Tested};

/// What the parent tells its worker at the start.
#[derive(Debug, Args)]
pub struct Arguments {
    /// `cuda:N` or `host`.
    #[arg(long)]
    pub device: String,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub memory_limit: Option<u64>,
    #[arg(long)]
    pub allow_fill: bool,
    #[arg(long)]
    pub parent: u32,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// The device is open.
    Ready(Box<Ready>),
    /// The device cannot be used: a sentence for the user.
    Refused {
        /// The sentence.
        message: String,
    },
    /// A group was measured.
    Measured(Box<Group>),
    /// An allocator was measured.
    Allocated(Box<Allocation>),
    /// A kernel was tested.
    Tested(Box<Tested>),
    /// The clock was tested.
    Clock(Box<ClockTest>),
}

/// An opened device.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Its facts.
    pub device: DeviceFacts,
    /// The memory limit in force, in bytes.
    pub memory_limit_bytes: u64,
    /// Why it is what it is.
    pub memory_limit_reason: String,
    /// Whether launches can be held.
    pub held: bool,
}

/// What a parent asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// To measure a group.
    Measure {
        /// The group.
        plan: Box<Plan>,
        /// Aged heaps that groups behind it will ask for.
        ahead: Vec<Heap>,
        /// Whether the device has to fault first.
        after_fault: bool,
    },
    /// To measure an allocator.
    Allocate {
        /// The case.
        plan: Box<AllocationPlan>,
    },
    /// To test the device's clock.
    Clock,
    /// To test a kernel.
    Selftest {
        /// Its name.
        kernel: String,
        /// Layouts to test it on.
        layouts: u64,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    device::end_with_parent(arguments.parent);
    let mut session = match open(arguments) {
        Ok((ready, session)) => Ok((ready, session)),
        Err(error) => Err(Message::Refused { message: error.to_string() }),
    };
    let answered = match &mut session {
        Ok((ready, session)) => {
            serve(ready, |request: Request| answer(session, arguments.seed, request))
        }
        Err(refused) => serve(refused, |_: Request| Message::Refused { message: String::new() }),
    };
    answered.map_err(Failure::request)
}

fn answer(session: &mut Session, seed: u64, request: Request) -> Message {
    match request {
        Request::Measure { plan, ahead, after_fault } => {
            session.age_ahead(&ahead);
            Message::Measured(Box::new(match after_fault {
                true => session.perform_after_fault(&plan),
                false => session.perform(&plan),
            }))
        }
        Request::Allocate { plan } => {
            Message::Allocated(Box::new(session.perform_allocation(&plan)))
        }
        Request::Clock => match selftest::clock::test(session.device()) {
            Ok(found) => Message::Clock(Box::new(found)),
            Err(error) => Message::Refused { message: error.to_string() },
        },
        Request::Selftest { kernel, layouts } => match Subject::named(&kernel) {
            Some(subject) => {
                Message::Tested(Box::new(selftest::test(session.device(), subject, seed, layouts)))
            }
            None => Message::Refused { message: format!("there is no kernel `{kernel}`") },
        },
    }
}

fn open(arguments: &Arguments) -> Result<(Message, Session), DeviceError> {
    let device = device::open(&arguments.device)?;
    let facts = device.facts().clone();
    let MemoryLimit { bytes, reason } = memory_limit(&facts, arguments.memory_limit);
    let ready = Message::Ready(Box::new(Ready {
        device: facts,
        memory_limit_bytes: bytes,
        memory_limit_reason: reason,
        held: device.is_held(),
    }));
    let session = Session::new(device, arguments.seed, bytes);
    Ok((ready, session.allowing_fill(arguments.allow_fill)))
}
