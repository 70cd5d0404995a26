//! Single flight: if several threads want the same key at the same time, one of them creates the
//! entry. The others wait for that key only.
//!
//! The leader reports the outcome to all waiters: an entry, an error, or nothing because it
//! panicked.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::entry::Entry;
use crate::key::Key;

/// The keys that are being created now.
#[derive(Default)]
pub(crate) struct Flights {
    running: Mutex<HashMap<Key, Arc<Flight>>>,
}

#[derive(Default)]
struct Flight {
    landing: Mutex<Option<Landing>>,
    landed: Condvar,
}

/// The outcome of a flight.
#[derive(Clone)]
pub(crate) enum Landing {
    /// The leader has the entry.
    Entry(Arc<Entry>),
    /// The leader's error, of whatever type it is.
    Failed(Arc<dyn Any + Send + Sync>),
    /// The leader panicked or has no outcome to share. Another thread may try.
    Abandoned,
}

/// The role of a thread in the flight that it asked for.
pub(crate) enum Boarding<'a> {
    /// No thread was creating the key, so this thread has to.
    Leader(Leader<'a>),
    /// Another thread was creating the key; this thread waited for this outcome.
    Passenger(Landing),
}

impl Flights {
    /// Takes the lead for `key`, or waits for the thread that has it.
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

/// The right and the duty to create a key: dropping it, in whatever way, ends the flight.
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
        // The flight is removed before its outcome is published, so that a thread that comes from
        // now on starts a new flight and does not get an old failure.
        let mut running = self.flights.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.key);
        drop(running);
        let landing = std::mem::replace(&mut self.landing, Landing::Abandoned);
        *self.flight.landing.lock().unwrap_or_else(PoisonError::into_inner) = Some(landing);
        self.flight.landed.notify_all();
    }
}
