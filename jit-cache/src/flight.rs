//! Single flight: if several threads want the same key at the same time, one makes it. The others
//! wait for that key only.
//!
//! The leader tells all who wait how it ended: with an entry, with an error, or with nothing
//! because it panicked.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::entry::Entry;
use crate::key::Key;

/// The keys being made now.
#[derive(Default)]
pub(crate) struct Flights {
    running: Mutex<HashMap<Key, Arc<Flight>>>,
}

#[derive(Default)]
struct Flight {
    landing: Mutex<Option<Landing>>,
    landed: Condvar,
}

/// How a flight ended.
#[derive(Clone)]
pub(crate) enum Landing {
    /// With an entry.
    Entry(Arc<Entry>),
    /// With the leader's error, of whatever type the leader's is.
    Failed(Arc<dyn Any + Send + Sync>),
    /// The leader panicked. Somebody else may try.
    Abandoned,
}

/// What a thread is to the flight it asked for.
pub(crate) enum Boarding<'a> {
    /// Nobody was making the key: it is this thread's to make.
    Leader(Leader<'a>),
    /// Somebody was, this thread waited, and this came of it.
    Passenger(Landing),
}

impl Flights {
    /// Takes the lead for `key`, or waits for the one who has it.
    pub(crate) fn board(&self, key: Key) -> Boarding<'_> {
        // The lock of the map is held for this statement only.
        let flight = match self.running.lock().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Place::Occupied(place) => Arc::clone(place.get()),
            Place::Vacant(place) => {
                let flight = Arc::<Flight>::default();
                place.insert(Arc::clone(&flight));
                return Boarding::Leader(Leader {
                    flights: self,
                    key,
                    flight,
                    landing: Landing::Abandoned,
                });
            }
        };
        let mut landing = flight.landing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(landing) = landing.as_ref() {
                return Boarding::Passenger(landing.clone());
            }
            landing = flight.landed.wait(landing).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The right and the duty to make a key: dropping it, in whatever way, ends the flight.
pub(crate) struct Leader<'a> {
    flights: &'a Flights,
    key: Key,
    flight: Arc<Flight>,
    landing: Landing,
}

impl Leader<'_> {
    pub(crate) fn land(mut self, landing: Landing) {
        self.landing = landing;
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        // First, so that whoever comes from now on starts anew and does not get an old failure.
        let mut running = self.flights.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.key);
        drop(running);
        let landing = std::mem::replace(&mut self.landing, Landing::Abandoned);
        *self.flight.landing.lock().unwrap_or_else(PoisonError::into_inner) = Some(landing);
        self.flight.landed.notify_all();
    }
}
