//! Reads the state of everything below a folder, quickly enough to do so before each study.
//!
//! [`state`] returns a line for each entry: its name, mode, owner, group, size, and the times of its last modification
//! and of its last change. It opens no file and follows no link. It does not know what is in a folder, and what is made
//! of the lines.
//!
//! ```
//! let state = prony_linux::folder::state(std::path::Path::new("src"))?;
//! assert!(state.entries >= 2 && !state.lines.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Source*: inode(7).

use std::fs::{self, Metadata};
use std::io;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// More threads than this wait for the same locks of the kernel's.
const MOST_THREADS: usize = 4;

/// The state of a folder: the same bytes as long as nothing in it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// How many entries there are, with the folder itself.
    pub entries: usize,
    /// The folders in the order of their paths, each with its entries in the order of their names.
    pub lines: Vec<u8>,
}

/// A folder, by its path below the first one, with the lines of its entries and their number.
type Listed = (PathBuf, Vec<u8>, usize);

#[derive(Default)]
struct Work {
    waiting: Vec<PathBuf>,
    busy: usize,
    listed: Vec<Listed>,
    failed: Option<io::Error>,
}

/// Returns the state of `folder`.
///
/// # Errors
///
/// An entry that cannot be read, or that goes meanwhile.
pub fn state(folder: &Path) -> io::Result<State> {
    let mut lines = Vec::new();
    push_line(&mut lines, b"", &fs::symlink_metadata(folder)?)?;
    let work = Mutex::new(Work {
        waiting: vec![PathBuf::new()],
        ..Work::default()
    });
    let changed = Condvar::new();
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_THREADS);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| list_all(folder, &work, &changed));
        }
    });
    let mut work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = work.failed {
        return Err(error);
    }
    work.listed.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let mut entries = 1;
    for (path, inner, count) in work.listed {
        lines.extend_from_slice(path.as_os_str().as_bytes());
        lines.extend_from_slice(b"\0\0");
        lines.extend_from_slice(&inner);
        entries += count;
    }
    Ok(State { entries, lines })
}

/// Lists waiting folders until none waits and none is being listed.
fn list_all(root: &Path, work: &Mutex<Work>, changed: &Condvar) {
    let mut own = work.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(path) = own.waiting.pop() {
            own.busy += 1;
            drop(own);
            let found = list(root, &path);
            own = work.lock().unwrap_or_else(PoisonError::into_inner);
            own.busy -= 1;
            match found {
                Ok((listed, inner)) => {
                    own.listed.push(listed);
                    own.waiting.extend(inner);
                }
                Err(error) => {
                    own.waiting.clear();
                    own.failed = Some(error);
                }
            }
            changed.notify_all();
        } else if own.busy == 0 {
            return;
        } else {
            own = changed.wait(own).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Returns the lines of one folder's entries, and the folders among them.
fn list(root: &Path, path: &Path) -> io::Result<(Listed, Vec<PathBuf>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(path))? {
        let entry = entry?;
        // Of the entry itself, not of what a link leads to.
        found.push((entry.file_name(), entry.metadata()?));
    }
    found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let mut lines = Vec::with_capacity(found.len() * 96);
    let mut folders = Vec::new();
    for (name, metadata) in &found {
        push_line(&mut lines, name.as_bytes(), metadata)?;
        if metadata.is_dir() {
            folders.push(path.join(name));
        }
    }
    Ok(((path.to_owned(), lines, found.len()), folders))
}

/// Adds an entry's line. A name has no null byte, and the numbers no space: two states never give the same bytes.
fn push_line(lines: &mut Vec<u8>, name: &[u8], of: &Metadata) -> io::Result<()> {
    lines.extend_from_slice(name);
    writeln!(
        lines,
        "\0{} {} {} {} {}.{:09} {}.{:09}",
        of.mode(),
        of.uid(),
        of.gid(),
        of.size(),
        of.mtime(),
        of.mtime_nsec(),
        of.ctime(),
        of.ctime_nsec(),
    )
}
