//! The places of a server, shared by its threads: taken by whoever is served, given back when that ends.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::access::{Denied, Occupancy, PlaceLimits};

/// How much of a server is taken.
pub(super) struct Places {
    limits: PlaceLimits,
    taken: Mutex<Occupancy>,
}

/// The place of a session; given back when this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    peer: IpAddr,
}

/// The places of some streams; given back when this is dropped.
pub(super) struct StreamPlaces {
    places: Arc<Places>,
    peer: IpAddr,
    streams: u32,
}

impl Places {
    pub(super) fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Takes a place for a session, of whatever protocol.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Result<Place, Denied> {
        self.taken().enter(peer, &self.limits)?;
        Ok(Place { places: Arc::clone(self), peer })
    }

    /// Whether no session more can be served.
    pub(super) fn is_full(&self) -> bool {
        self.taken().sessions() >= self.limits.sessions
    }

    /// Most sessions at once.
    pub(super) fn sessions(&self) -> u32 {
        self.limits.sessions
    }

    fn taken(&self) -> MutexGuard<'_, Occupancy> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes places for streams of this session, all or none.
    pub(super) fn take_streams(&self, streams: u32) -> Result<StreamPlaces, Denied> {
        self.places.taken().take_streams(self.peer, streams, &self.places.limits)?;
        Ok(StreamPlaces { places: Arc::clone(&self.places), peer: self.peer, streams })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().leave(self.peer);
    }
}

impl Drop for StreamPlaces {
    fn drop(&mut self) {
        self.places.taken().give_streams(self.peer, self.streams);
    }
}
