//! How long the control groups of this process were throttled by a quota of CPU (kernel documentation, admin-guide/cgroup-v2.rst and
//! scheduler/sched-bwc.rst).
//!
//! Where neither version of control groups is mounted there is nothing to read, and a thread's wait for its CPU shows it alone.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The statistics of the groups of the calling thread, from its own up to the root, held open.
#[derive(Debug, Default)]
pub struct Throttle(Vec<File>);

impl Throttle {
    /// The groups that this thread is in now.
    pub fn of_this_thread() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (groups, mounts) = (
            read("/proc/thread-self/cgroup"),
            read("/proc/thread-self/mountinfo"),
        );
        let folders = folders(&groups, &mounts);
        let files = folders
            .iter()
            .filter_map(|folder| File::open(folder.join("cpu.stat")).ok());
        Self(files.filter(|file| throttled_in(file).is_some()).collect())
    }

    /// Throttled so long since the groups were made, the one that was so longest; null where no group can be.
    pub fn total_ns(&self) -> Option<u64> {
        self.0.iter().filter_map(throttled_in).max()
    }
}

fn throttled_in(file: &File) -> Option<u64> {
    let mut buffer = [0; 1024];
    let length = file.read_at(&mut buffer, 0).ok()?;
    throttled_ns(std::str::from_utf8(&buffer[..length]).ok()?)
}

/// `throttled_usec` of version 2, or `throttled_time` in nanoseconds of version 1.
fn throttled_ns(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(name, value)| match name {
        "throttled_usec" => Some(value.parse::<u64>().ok()?.saturating_mul(1_000)),
        "throttled_time" => value.parse().ok(),
        _ => None,
    })
}

/// The folders of the groups that hold the CPU's quota, from the innermost outwards.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let of_cpu = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let is_cpu = controllers.is_empty() || controllers.split(',').any(|one| one == "cpu");
        is_cpu.then_some((controllers, path))
    });
    of_cpu
        .filter_map(|(controllers, path)| place(controllers, path, mounts))
        .flat_map(|(mount, below)| {
            let up: Vec<_> = below.ancestors().map(|part| mount.join(part)).collect();
            up
        })
        .collect()
}

/// Where a group's hierarchy is mounted, and the group's path below.
fn place(controllers: &str, path: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let (mut place, mut kind) = (place.split(' ').skip(3), kind.split(' '));
        let (root, point) = (place.next()?, place.next()?);
        let is_it = match kind.next()? {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => !controllers.is_empty() && kind.nth(1)?.split(',').any(|one| one == "cpu"),
            _ => false,
        };
        let below = Path::new(path).strip_prefix(root).ok()?;
        is_it.then(|| (PathBuf::from(point), below.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_for_how_long() {
        assert_eq!(
            throttled_ns("usage_usec 5\nnr_throttled 2\nthrottled_usec 70\n"),
            Some(70_000)
        );
        assert_eq!(
            throttled_ns("nr_periods 9\nnr_throttled 2\nthrottled_time 81\n"),
            Some(81)
        );
        assert_eq!(throttled_ns("usage_usec 5\n"), None);
    }

    #[test]
    fn the_groups_are_those_of_the_thread_and_all_around_them() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = folders("3:cpuset:/x\n1:cpu,cpuacct:/a/b\n0::/c\n", mounts);
        let expected = [
            "/sys/fs/cgroup/cpu/a/b",
            "/sys/fs/cgroup/cpu/a",
            "/sys/fs/cgroup/cpu/",
            "/sys/fs/cgroup/unified/c",
            "/sys/fs/cgroup/unified/",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn without_control_groups_there_is_nothing_to_read() {
        assert_eq!(folders("0::/a\n", ""), Vec::<PathBuf>::new());
        assert_eq!(Throttle::default().total_ns(), None);
    }
}
