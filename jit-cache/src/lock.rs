//! One creation per key among all processes that share a directory: each key has a lock file.
//!
//! The lock is the kernel's (`flock`). It ends with the process that holds it, however that process
//! ends. The holder removes the file before it releases the lock. So a lock counts only while the
//! file still has its name.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::Arc;

use crate::directory::Directory;

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    directory: Arc<Directory>,
    file: File,
    name: String,
}

impl Lock {
    /// Acquires the lock, or returns `None` if another holder has it. Never waits.
    pub(crate) fn try_acquire(directory: &Arc<Directory>, name: String) -> io::Result<Option<Self>> {
        // Each further iteration means that another process held the lock and has released it
        // since.
        for _ in 0..16 {
            let file = directory.open_lock(&name)?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other(format!("{name} is not a file")));
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if directory.is_named(&file, &name)? {
                return Ok(Some(Self {
                    directory: Arc::clone(directory),
                    file,
                    name,
                }));
            }
        }
        Ok(None)
    }

    /// Returns whether a process holds the lock now; true also if that cannot be found out.
    pub(crate) fn is_held(directory: &Arc<Directory>, name: &str) -> bool {
        !matches!(Self::try_acquire(directory, name.to_owned()), Ok(Some(_)))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while the lock is still held, so that no other holder's lock loses its name. If
        // removing fails, the leftover file works as a lock file as well as a new one.
        if self.directory.is_named(&self.file, &self.name).unwrap_or(false) {
            let _ = self.directory.remove(&self.name);
        }
        // Closing would not be enough if the process was forked meanwhile: the child has the
        // descriptor too.
        let _ = self.file.unlock();
    }
}
