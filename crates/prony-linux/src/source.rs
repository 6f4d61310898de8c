//! Reads files under `/proc` into one buffer, and knows the kernel's units.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read as _};
use std::str;

use crate::error::Error;

/// A path and a buffer, reused for every file.
#[derive(Debug, Default)]
pub(crate) struct Source {
    path: String,
    content: Vec<u8>,
}

/// Most files under `/proc` that are read here are shorter. One that is not is read in several calls.
const USUAL_BYTES: usize = 4096;

impl Source {
    /// The content of a file of a process, `None` when the process has ended (or may not be read: then it is
    /// another user's, and no descendant whose figures could be read).
    pub(crate) fn of_process(&mut self, path: fmt::Arguments) -> Result<Option<&str>, Error> {
        match self.fill(path) {
            Ok(()) => self.text().map(Some),
            Err(error) if means_gone(&error) => Ok(None),
            Err(source) => Err(Error::Read {
                path: self.path.clone(),
                source,
            }),
        }
    }

    /// The content of a file that must exist.
    pub(crate) fn of_machine(&mut self, path: fmt::Arguments) -> Result<&str, Error> {
        match self.fill(path) {
            Ok(()) => self.text(),
            Err(source) => Err(Error::Read {
                path: self.path.clone(),
                source,
            }),
        }
    }

    /// An error about the file that was read last.
    pub(crate) fn unknown_form(&self, line: &str) -> Error {
        Error::Form {
            path: self.path.clone(),
            line: line.to_owned(),
        }
    }

    fn fill(&mut self, path: fmt::Arguments) -> io::Result<()> {
        self.path.clear();
        self.path.write_fmt(path).map_err(io::Error::other)?;
        let mut file = File::open(&self.path)?;
        self.content.resize(self.content.capacity().max(USUAL_BYTES), 0);
        let mut length = 0;
        // A read that leaves room has reached the end: files under /proc give all they have up to the page.
        loop {
            let read = file.read(&mut self.content[length..])?;
            length += read;
            if length < self.content.len() {
                break;
            }
            self.content.resize(length * 2, 0);
        }
        self.content.truncate(length);
        Ok(())
    }

    /// The content as text. Names of processes may be any bytes; bytes that are not UTF-8 are replaced first.
    fn text(&mut self) -> Result<&str, Error> {
        if str::from_utf8(&self.content).is_err() {
            self.content = String::from_utf8_lossy(&self.content).into_owned().into_bytes();
        }
        str::from_utf8(&self.content).map_err(|error| Error::Form {
            path: self.path.clone(),
            line: error.to_string(),
        })
    }
}

/// ENOENT when it is opened, ESRCH when it is read after the process has ended.
fn means_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    ) || error.raw_os_error() == Some(libc::ESRCH)
}

/// The kernel's units, which are constant while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) tick_ns: u64,
    pub(crate) page_bytes: u64,
}

impl Units {
    pub(crate) fn of_kernel() -> Units {
        // SAFETY: the call takes no pointer.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        // SAFETY: the call takes no pointer.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Units {
            tick_ns: 1_000_000_000 / ticks_per_s.max(1) as u64,
            page_bytes: page_bytes.max(1) as u64,
        }
    }
}
