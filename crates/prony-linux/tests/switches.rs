//! The watch of context switches on real threads; where the kernel refuses it, the reason is said and nothing tested.

#![allow(clippy::unwrap_used)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prony_linux::{StackWatch, SwitchWatch, ThreadSchedule};

const ALL_CPUS: std::ops::Range<u32> = 0..256;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(script: &str) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    Ended(command.spawn().unwrap())
}

/// Waits until a process is `sleep`, and asleep: on a busy machine its start takes a while.
fn until_asleep(process: &Ended) {
    let stat = format!("/proc/{}/stat", process.0.id());
    while !std::fs::read_to_string(&stat).unwrap().contains("(sleep) S") {
        std::thread::yield_now();
    }
}

fn cpus() -> Vec<u32> {
    ALL_CPUS
        .filter(|cpu| std::fs::exists(format!("/sys/devices/system/cpu/cpu{cpu}")).unwrap())
        .collect()
}

/// What the threads of a process did until `enough`, and how long that was; `None` where the kernel refuses.
fn watched(
    process: &Ended,
    enough: impl Fn(Duration) -> bool,
) -> Option<(Vec<ThreadSchedule>, u64, Duration)> {
    let mut watch = SwitchWatch::new(&cpus());
    match watch.add(process.0.id()) {
        Err(refused) => {
            println!("not tested: {refused}");
            return None;
        }
        added => assert_eq!(added.unwrap(), 1),
    }
    assert_eq!(watch.add(process.0.id()).unwrap(), 0, "it is watched already");
    watch.begin();
    let began = Instant::now();
    while !enough(began.elapsed()) {
        watch.drain();
    }
    let length = began.elapsed();
    let (threads, lost) = watch.finish();
    Some((threads, lost, length))
}

fn share(part_ns: u64, of: Duration) -> f64 {
    part_ns as f64 / of.as_nanos() as f64
}

#[test]
fn a_sleeping_process_is_blocked_all_the_time() {
    let process = start("exec sleep 100");
    until_asleep(&process);
    let Some((threads, lost, length)) = watched(&process, |passed| passed > Duration::from_millis(200))
    else {
        return;
    };
    let [one] = &threads[..] else {
        panic!("{threads:?}")
    };
    assert_eq!((one.pid, lost), (process.0.id(), 0));
    assert!(share(one.blocked_ns, length) > 0.95, "{one:?} in {length:?}");
}

#[test]
fn a_busy_process_runs_or_is_preempted_and_its_times_add_up() {
    let process = start("while :; do :; done");
    let Some((threads, _, length)) = watched(&process, |passed| passed > Duration::from_millis(200)) else {
        return;
    };
    let one = &threads[0];
    let sum_ns = one.running_ns + one.preempted_ns + one.blocked_ns + one.unknown_ns;
    assert!(share(one.running_ns + one.preempted_ns, length) > 0.95, "{one:?}");
    assert!(
        (share(sum_ns, length) - 1.0).abs() < 0.05,
        "{one:?} in {length:?}"
    );
    assert!(one.running_ns > 0 && one.name == "sh", "{one:?}");
}

#[test]
fn what_a_process_starts_is_watched_from_its_begin_to_its_end() {
    let process = start("while :; do sleep 0.01; done");
    let Some((threads, ..)) = watched(&process, |passed| passed > Duration::from_millis(300)) else {
        return;
    };
    let parent = threads.iter().find(|one| one.pid == process.0.id()).unwrap();
    let children: Vec<_> = threads.iter().filter(|one| one.pid != process.0.id()).collect();
    assert!(children.len() > 3, "{threads:?}");
    assert!(children.iter().all(|one| one.running_ns > 0), "{children:?}");
    assert!(parent.waits as usize >= children.len() - 1, "{parent:?}");
}

#[test]
fn the_stacks_of_a_busy_process_are_sampled_in_its_cpu_time() {
    let process = start("while :; do :; done");
    let mut watch = StackWatch::new(&cpus());
    match watch.add(process.0.id()) {
        Err(refused) => return println!("not tested: {refused}"),
        added => assert_eq!(added.unwrap(), 1),
    }
    std::thread::sleep(Duration::from_millis(500));
    let (stacks, lost) = watch.finish();
    assert_eq!(lost, 0);
    // One each 10 ms that it had a CPU.
    assert!((3..=60).contains(&stacks.len()), "{}", stacks.len());
    assert!(stacks
        .iter()
        .all(|one| one.pid == process.0.id() && !one.addresses.is_empty()));
}

#[test]
fn a_process_that_has_ended_adds_no_thread() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    assert_eq!(SwitchWatch::new(&[0]).add(child.id()).unwrap(), 0);
}
