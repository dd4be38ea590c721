//! A source that several hands hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Region, Source, SourceError};

/// A source that several hold: the policies that take from it, and who looks at what they took.
#[derive(Debug, Default)]
pub struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    /// The first handle of a source.
    pub fn new(source: S) -> Self {
        Self(Arc::new(Mutex::new(source)))
    }

    /// The source itself. Nobody else gets at it until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Source> Source for Shared<S> {
    fn granule_bytes(&self) -> u64 {
        self.lock().granule_bytes()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Region, SourceError> {
        self.lock().allocate(bytes)
    }

    fn release(&mut self, region: Region) -> Result<(), SourceError> {
        self.lock().release(region)
    }

    fn free_bytes(&self) -> u64 {
        self.lock().free_bytes()
    }

    fn reserve_addresses(&mut self, bytes: u64) -> Result<Region, SourceError> {
        self.lock().reserve_addresses(bytes)
    }

    fn map(&mut self, part: Region) -> Result<(), SourceError> {
        self.lock().map(part)
    }

    fn unmap(&mut self, part: Region) -> Result<(), SourceError> {
        self.lock().unmap(part)
    }

    fn release_addresses(&mut self, region: Region) -> Result<(), SourceError> {
        self.lock().release_addresses(region)
    }
}
