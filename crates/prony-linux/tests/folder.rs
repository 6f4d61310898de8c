//! The state of a folder changes with everything in it, and with nothing else.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::PathBuf;

use prony_linux::folder::state;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("prony-tree-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "text").unwrap();
        symlink("b/file", path.join("a/link")).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn every_entry_counts_and_twice_is_the_same() {
    let folder = Folder::new("same");
    let first = state(&folder.0).unwrap();
    // The folder itself, a, a/b, a/b/file, a/link.
    assert_eq!(first.entries, 5);
    assert_eq!(first, state(&folder.0).unwrap());
}

#[test]
fn reading_a_file_changes_nothing() {
    let folder = Folder::new("read");
    let before = state(&folder.0).unwrap();
    fs::read(folder.0.join("a/link")).unwrap();
    assert_eq!(before, state(&folder.0).unwrap());
}

#[test]
fn a_change_of_any_kind_is_seen() {
    let folder = Folder::new("change");
    let file = folder.0.join("a/b/file");
    let mut seen = vec![state(&folder.0).unwrap().lines];
    fs::write(&file, "txet").unwrap();
    seen.push(state(&folder.0).unwrap().lines);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    seen.push(state(&folder.0).unwrap().lines);
    fs::rename(&file, folder.0.join("a/b/other")).unwrap();
    seen.push(state(&folder.0).unwrap().lines);
    fs::create_dir(folder.0.join("a/b/empty")).unwrap();
    seen.push(state(&folder.0).unwrap().lines);
    fs::remove_file(folder.0.join("a/link")).unwrap();
    seen.push(state(&folder.0).unwrap().lines);
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn a_loop_of_links_is_not_followed() {
    let folder = Folder::new("loop");
    symlink(&folder.0, folder.0.join("a/up")).unwrap();
    assert_eq!(state(&folder.0).unwrap().entries, 6);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    assert!(state(&std::env::temp_dir().join("prony-tree-of-nothing")).is_err());
}
