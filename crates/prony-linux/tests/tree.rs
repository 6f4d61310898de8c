//! The sampler on trees of real processes.

#![allow(clippy::unwrap_used)]
// Rust 1.85 takes the `?` of a closure for an early return of the function around it.
#![allow(clippy::zombie_processes)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prony_linux::{detail, machine_cpu, memory, ProcessSample, Sampler};

/// A shell that runs a script, says one line when it is ready, and ends (with its children) when it is dropped.
struct Shell {
    child: Child,
}

impl Shell {
    fn start(script: &str) -> Shell {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = Shell {
            child: command.spawn().unwrap(),
        };
        let mut line = String::new();
        BufReader::new(shell.child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        shell
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn sampler(&self) -> Sampler {
        Sampler::new(self.pid())
    }

    fn send(&mut self, line: &str) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Three sleeping grandchildren under two shells, ended when the script's input is.
const TREE: &str = r#"
    (sleep 100 & a=$!; sleep 100 & b=$!; trap "kill $a $b" TERM; wait; wait) & shell=$!
    sleep 100 & last=$!
    echo ready; read line; kill $shell $last; wait
"#;

fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < deadline, "nothing within 10 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn names(samples: &[ProcessSample]) -> Vec<&str> {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn all_descendants_are_found_and_parents_come_first() {
    let shell = Shell::start(TREE);
    let mut sampler = shell.sampler();
    let samples = until(|| {
        sampler
            .sample()
            .ok()
            .filter(|samples| names(samples) == ["sh", "sleep", "sleep", "sleep"])
    });
    for (index, sample) in samples.iter().enumerate() {
        let earlier = samples[..index]
            .iter()
            .any(|other| other.identity.pid == sample.parent_pid);
        assert!(sample.parent_pid == shell.pid() || earlier, "{sample:?}");
    }
}

#[test]
fn the_root_is_sampled_when_asked_and_is_first() {
    let shell = Shell::start("echo ready; read line");
    assert_eq!(shell.sampler().sample().unwrap(), []);
    let samples = shell.sampler().including_root().sample().unwrap();
    assert_eq!((samples.len(), samples[0].identity.pid), (1, shell.pid()));
    assert_eq!(samples[0].parent_pid, std::process::id());
}

#[test]
fn cpu_time_of_a_busy_child_is_its_own_and_grows() {
    let shell = Shell::start("(while :; do :; done) & echo ready; read line; kill $!; wait");
    let mut sampler = shell.sampler().including_root();
    until(|| {
        let samples = sampler.sample().ok()?;
        let cpu_ns = |index: usize| samples.get(index).map(|sample| sample.user_ns + sample.system_ns);
        (cpu_ns(1)? >= 50_000_000 && cpu_ns(0)? <= 20_000_000).then_some(())
    });
}

#[test]
fn memory_that_a_process_takes_is_seen_as_resident_and_as_its_own() {
    let script = "read line; x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo more; read line";
    let mut shell = Shell::start(&format!("echo ready; {script}"));
    let size = |shell: &Shell| {
        let rss_bytes = shell.sampler().including_root().sample().unwrap()[0].rss_bytes;
        (rss_bytes, memory(shell.pid()).unwrap().unwrap().uss_bytes)
    };
    let before = size(&shell);
    shell.send("\n");
    let mut line = String::new();
    BufReader::new(shell.child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let after = size(&shell);
    assert!(after.0 > before.0 + 19_000_000, "{before:?} {after:?}");
    assert!(after.1 > before.1 + 19_000_000, "{before:?} {after:?}");
}

#[test]
fn proportional_memory_lies_between_unique_and_resident() {
    let shell = Shell::start("echo ready; read line");
    let rss_bytes = shell.sampler().including_root().sample().unwrap()[0].rss_bytes;
    let memory = memory(shell.pid()).unwrap().unwrap();
    assert!(
        0 < memory.uss_bytes && memory.uss_bytes <= memory.pss_bytes,
        "{memory:?}"
    );
    // The resident size is kept per CPU and may lag by some pages.
    assert!(
        memory.pss_bytes <= rss_bytes + (1 << 20),
        "{memory:?} {rss_bytes}"
    );
}

#[test]
fn a_process_that_has_ended_is_no_error() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert_eq!(Sampler::new(pid).including_root().sample().unwrap(), []);
    assert_eq!(memory(pid).unwrap(), None);
    assert_eq!(detail(pid).unwrap(), None);
}

#[test]
fn a_tree_whose_processes_come_and_go_is_sampled_without_error() {
    let mut shell = Shell::start("echo ready; (while :; do sleep 0; done) & read line; kill $!; wait");
    let mut sampler = shell.sampler();
    let deadline = Instant::now() + Duration::from_millis(200);
    while Instant::now() < deadline {
        sampler.sample().unwrap();
    }
    shell.send("\n");
}

#[test]
fn an_ended_process_that_is_not_waited_for_is_a_zombie() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    let mut sampler = Sampler::new(pid).including_root();
    let sample = until(|| sampler.sample().ok()?.pop().filter(|sample| sample.state == 'Z'));
    assert_eq!((sample.rss_bytes, sample.name.as_str()), (0, "true"));
    assert_eq!(memory(pid).unwrap(), None);
    child.wait().unwrap();
}

#[test]
fn children_of_every_thread_are_found() {
    let spawned = std::thread::spawn(|| {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let mut sampler = Sampler::new(std::process::id());
        let pid = child.id();
        until(|| {
            sampler
                .sample()
                .ok()?
                .into_iter()
                .find(|sample| sample.identity.pid == pid)
        });
        child.kill().unwrap();
        child.wait().unwrap();
    });
    spawned.join().unwrap();
}

#[test]
fn switches_of_each_thread_are_counted() {
    let shell = Shell::start("(while :; do sleep 0.001; done) & echo ready; read line; kill $!; wait");
    let child = until(|| {
        shell
            .sampler()
            .sample()
            .ok()?
            .first()
            .map(|sample| sample.identity.pid)
    });
    until(|| {
        let threads = detail(child).ok()??.threads;
        (threads.len() == 1 && threads[0].tid == child && threads[0].voluntary_switches >= 10).then_some(())
    });
}

#[test]
fn a_busy_thread_differs_from_one_that_waits() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    let cpu_ns = |name: &str| {
        let threads = detail(std::process::id()).ok()??.threads;
        Some(threads.iter().find(|thread| thread.name == name)?.cpu_ns)
    };
    std::thread::scope(|scope| {
        let spin = || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop()
            }
        };
        std::thread::Builder::new()
            .name("busy".to_owned())
            .spawn_scoped(scope, spin)
            .unwrap();
        let wait = || until(|| stop.load(std::sync::atomic::Ordering::Relaxed).then_some(()));
        std::thread::Builder::new()
            .name("waits".to_owned())
            .spawn_scoped(scope, wait)
            .unwrap();
        until(|| (cpu_ns("busy")? >= 100_000_000 && cpu_ns("waits")? <= 50_000_000).then_some(()));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_peak_is_kept_after_memory_is_given_back_and_open_files_are_counted() {
    let before = detail(std::process::id()).unwrap().unwrap();
    let files: Vec<_> = (0..50)
        .map(|_| std::fs::File::open("/dev/null").unwrap())
        .collect();
    let mut memory = vec![1_u8; 64 << 20];
    std::hint::black_box(&mut memory);
    drop(memory);
    let after = detail(std::process::id()).unwrap().unwrap();
    // Other tests of this process open and close files and take memory at the same time.
    assert!(after.descriptors.unwrap() + 20 >= before.descriptors.unwrap() + files.len() as u64);
    assert!(after.rss_peak_bytes.unwrap() >= 64 << 20, "{after:?}");
}

#[test]
fn the_time_of_children_that_were_waited_for_is_kept_with_their_parent() {
    let script = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo more; read line";
    let mut shell = Shell::start(&format!("echo ready; read line; {script}"));
    let mut sampler = shell.sampler().including_root();
    assert_eq!(sampler.sample().unwrap()[0].waited_ns, 0);
    shell.send("\n");
    until(|| (sampler.sample().ok()?.first()?.waited_ns >= 10_000_000).then_some(()));
}

#[test]
fn the_machine_total_is_the_sum_of_its_cpus() {
    let cpu = machine_cpu().unwrap();
    let user_ns: u64 = cpu.cpus.iter().map(|(_, time)| time.user_ns).sum();
    // Each CPU's figure is rounded to a tick on its own.
    let difference_ns = cpu.total.user_ns.abs_diff(user_ns);
    assert!(difference_ns <= 10_000_000 * cpu.cpus.len() as u64, "{cpu:?}");
    assert!(cpu.total.idle_ns + cpu.total.user_ns > 0);
}
