//! The part `clock`: the device's timer.

use std::time::Duration;

use super::super::Failure;
use super::super::bench::OUT_OF_TURN;
use super::super::worker::{Message, Request};
use super::{Arguments, Ground, not_kept, unsound};
use crate::report;

/// How long a worker may take for it.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut ground = Ground::open(arguments)?;
    let record = match ground.bench.ask(&Request::Clock, PATIENCE)? {
        Ok(Message::Clock(record)) => *record,
        Ok(Message::Refused { message }) => return Err(unsound(message)),
        Ok(_) => return Err(unsound(OUT_OF_TURN.to_owned())),
        Err(error) => return Err(ground.bench.failure(&error)),
    };
    if let Some(journal) = &mut ground.journal {
        journal.write_clock(&record).map_err(not_kept)?;
    }
    ground.show(arguments.format, &record, || report::clock_text(&ground.run, &record))?;
    match report::clock_complaint(&ground.run, &record) {
        Some(complaint) => Err(unsound(complaint)),
        None => Ok(()),
    }
}
