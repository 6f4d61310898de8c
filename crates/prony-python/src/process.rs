//! Processes and CPUs: `ProcessSampler` and the functions around it.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::error::to_python;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ProcessSampler>()?;
    module.add_class::<ProcessSample>()?;
    module.add_class::<Memory>()?;
    module.add_class::<Thread>()?;
    module.add_class::<Detail>()?;
    module.add_class::<CpuTime>()?;
    module.add_class::<MachineCpu>()?;
    module.add_class::<SwitchWatch>()?;
    module.add_class::<StackWatch>()?;
    module.add_class::<ThreadSchedule>()?;
    module.add_function(wrap_pyfunction!(process_memory, module)?)?;
    module.add_function(wrap_pyfunction!(process_detail, module)?)?;
    module.add_function(wrap_pyfunction!(machine_cpu, module)?)
}

/// Samples the processes below `root_pid`, and on request that one too.
#[pyclass(module = "prony._engine")]
struct ProcessSampler {
    inner: prony_linux::Sampler,
}

#[pymethods]
impl ProcessSampler {
    #[new]
    #[pyo3(signature = (root_pid, include_root=false))]
    fn new(root_pid: u32, include_root: bool) -> ProcessSampler {
        let mut inner = prony_linux::Sampler::new(root_pid);
        if include_root {
            inner = inner.including_root();
        }
        ProcessSampler { inner }
    }

    /// Return the processes that there are now, parents first; one that ends meanwhile is not among them.
    fn sample(&mut self, py: Python<'_>) -> PyResult<Vec<ProcessSample>> {
        let samples = py
            .detach(|| self.inner.sample())
            .map_err(|error| to_python(py, &error))?;
        Ok(samples.into_iter().map(ProcessSample::from).collect())
    }
}

/// One process at one moment; times and faults since its start. `waited_ns` is its ended children's, all else its own.
#[pyclass(frozen, get_all, module = "prony._engine")]
struct ProcessSample {
    pid: u32,
    parent_pid: u32,
    start_time_ticks: u64,
    command: String,
    state: char,
    threads: u64,
    user_ns: u64,
    system_ns: u64,
    waited_ns: u64,
    rss_bytes: u64,
    vsz_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
}

impl From<prony_linux::ProcessSample> for ProcessSample {
    fn from(sample: prony_linux::ProcessSample) -> ProcessSample {
        ProcessSample {
            pid: sample.identity.pid,
            parent_pid: sample.parent_pid,
            start_time_ticks: sample.identity.start_time_ticks,
            command: sample.name,
            state: sample.state,
            threads: sample.threads,
            user_ns: sample.user_ns,
            system_ns: sample.system_ns,
            waited_ns: sample.waited_ns,
            rss_bytes: sample.rss_bytes,
            vsz_bytes: sample.vsz_bytes,
            minor_faults: sample.minor_faults,
            major_faults: sample.major_faults,
        }
    }
}

/// A process's memory with what it shares divided (PSS), and what it has for itself (USS).
#[pyclass(frozen, get_all, module = "prony._engine")]
struct Memory {
    pss_bytes: u64,
    uss_bytes: u64,
}

/// Return a process's memory, None when it has ended or may not be read. Expensive: the kernel visits all its pages.
#[pyfunction]
fn process_memory(py: Python<'_>, pid: u32) -> PyResult<Option<Memory>> {
    let memory = py
        .detach(|| prony_linux::memory(pid))
        .map_err(|error| to_python(py, &error))?;
    Ok(memory.map(|memory| Memory {
        pss_bytes: memory.pss_bytes,
        uss_bytes: memory.uss_bytes,
    }))
}

/// One thread; CPU time and switches since its start.
#[pyclass(frozen, get_all, skip_from_py_object, module = "prony._engine")]
#[derive(Clone)]
struct Thread {
    tid: u32,
    name: String,
    cpu_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl From<prony_linux::ThreadSample> for Thread {
    fn from(thread: prony_linux::ThreadSample) -> Thread {
        Thread {
            tid: thread.tid,
            name: thread.name,
            cpu_ns: thread.cpu_ns,
            voluntary_switches: thread.voluntary_switches,
            involuntary_switches: thread.involuntary_switches,
        }
    }
}

/// A process's peak of memory, its open descriptors and its threads.
#[pyclass(frozen, get_all, module = "prony._engine")]
struct Detail {
    rss_peak_bytes: Option<u64>,
    descriptors: Option<u64>,
    threads: Vec<Thread>,
}

/// Return a process's detail, None when it has ended or may not be read. Costs some microseconds for each thread.
#[pyfunction]
fn process_detail(py: Python<'_>, pid: u32) -> PyResult<Option<Detail>> {
    let detail = py
        .detach(|| prony_linux::detail(pid))
        .map_err(|error| to_python(py, &error))?;
    Ok(detail.map(|detail| Detail {
        rss_peak_bytes: detail.rss_peak_bytes,
        descriptors: detail.descriptors,
        threads: detail.threads.into_iter().map(Thread::from).collect(),
    }))
}

/// Time since the machine was started, by what a CPU did.
#[pyclass(frozen, get_all, skip_from_py_object, module = "prony._engine")]
#[derive(Clone)]
struct CpuTime {
    user_ns: u64,
    system_ns: u64,
    idle_ns: u64,
    io_wait_ns: u64,
    irq_ns: u64,
    soft_irq_ns: u64,
    steal_ns: u64,
}

impl From<prony_linux::CpuTime> for CpuTime {
    fn from(time: prony_linux::CpuTime) -> CpuTime {
        CpuTime {
            user_ns: time.user_ns,
            system_ns: time.system_ns,
            idle_ns: time.idle_ns,
            io_wait_ns: time.io_wait_ns,
            irq_ns: time.irq_ns,
            soft_irq_ns: time.soft_irq_ns,
            steal_ns: time.steal_ns,
        }
    }
}

/// All CPUs of the machine that are online, by number, and their sum.
#[pyclass(frozen, get_all, module = "prony._engine")]
struct MachineCpu {
    total: CpuTime,
    cpus: BTreeMap<u32, CpuTime>,
}

/// Return the CPU times of the machine.
#[pyfunction]
fn machine_cpu(py: Python<'_>) -> PyResult<MachineCpu> {
    let cpu = prony_linux::machine_cpu().map_err(|error| to_python(py, &error))?;
    let cpus = cpu
        .cpus
        .into_iter()
        .map(|(number, time)| (number, time.into()))
        .collect();
    Ok(MachineCpu {
        total: cpu.total.into(),
        cpus,
    })
}

/// Watches when threads get and leave some CPUs, by the kernel's records of their switches.
#[pyclass(module = "prony._engine")]
struct SwitchWatch {
    inner: prony_linux::SwitchWatch,
}

#[pymethods]
impl SwitchWatch {
    #[new]
    fn new(cpus: Vec<u32>) -> SwitchWatch {
        SwitchWatch {
            inner: prony_linux::SwitchWatch::new(&cpus),
        }
    }

    /// Watch the threads of a process that are not watched yet, and what they start; return how many were added.
    fn add(&mut self, py: Python<'_>, pid: u32) -> PyResult<usize> {
        py.detach(|| self.inner.add(pid))
            .map_err(|error| to_python(py, &error))
    }

    /// Count from now on.
    fn begin(&mut self, py: Python<'_>) {
        py.detach(|| self.inner.begin());
    }

    /// Read what was recorded, before the kernel's room for it is full.
    fn drain(&mut self, py: Python<'_>) {
        py.detach(|| self.inner.drain());
    }

    /// Return what every thread did since the begin, the busiest first, and how many records were lost.
    fn finish(&mut self, py: Python<'_>) -> (Vec<ThreadSchedule>, u64) {
        let (threads, lost) = py.detach(|| self.inner.finish());
        (threads.into_iter().map(ThreadSchedule::from).collect(), lost)
    }
}

/// Samples the stacks of threads on some CPUs, from when their process is added until it is finished.
#[pyclass(module = "prony._engine")]
struct StackWatch {
    inner: prony_linux::StackWatch,
}

#[pymethods]
impl StackWatch {
    #[new]
    fn new(cpus: Vec<u32>) -> StackWatch {
        StackWatch {
            inner: prony_linux::StackWatch::new(&cpus),
        }
    }

    /// Sample the threads of a process, and what they start, from now on; return how many there are.
    fn add(&mut self, py: Python<'_>, pid: u32) -> PyResult<usize> {
        py.detach(|| self.inner.add(pid))
            .map_err(|error| to_python(py, &error))
    }

    /// Return whose each stack was, its addresses from the innermost on, and for how many there was no room.
    fn finish(&mut self, py: Python<'_>) -> (Vec<(u32, Vec<u64>)>, u64) {
        let (stacks, lost) = py.detach(|| self.inner.finish());
        (
            stacks
                .into_iter()
                .map(|stack| (stack.pid, stack.addresses))
                .collect(),
            lost,
        )
    }
}

/// What one thread did while it was watched; its four times add up to the time for which it was there.
#[pyclass(frozen, get_all, skip_from_py_object, module = "prony._engine")]
#[derive(Clone)]
struct ThreadSchedule {
    pid: u32,
    tid: u32,
    name: String,
    running_ns: u64,
    preempted_ns: u64,
    blocked_ns: u64,
    unknown_ns: u64,
    preemptions: u64,
    waits: u64,
}

impl From<prony_linux::ThreadSchedule> for ThreadSchedule {
    fn from(thread: prony_linux::ThreadSchedule) -> ThreadSchedule {
        ThreadSchedule {
            pid: thread.pid,
            tid: thread.tid,
            name: thread.name,
            running_ns: thread.running_ns,
            preempted_ns: thread.preempted_ns,
            blocked_ns: thread.blocked_ns,
            unknown_ns: thread.unknown_ns,
            preemptions: thread.preemptions,
            waits: thread.waits,
        }
    }
}
