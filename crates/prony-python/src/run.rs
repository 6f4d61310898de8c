//! `run`: a specification in, events, a Recording out; `merge_recordings`: those of several machines as one.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;
use std::thread::available_parallelism;

use prony_engine::account::CLASSES;
use prony_engine::spec::Target;
use prony_engine::{run_with, Control, Event, Files, Recording, Spec};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::to_python;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let classes = CLASSES.map(|(name, kind)| (name, kind.name()));
    module.add("CLASSES", PyTuple::new(module.py(), classes)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(merge_recordings, module)?)
}

/// Run a specification and return its Recording, both as JSON; each event goes to `on_event` as JSON. Where that returns hosts, new
/// connections go to these in turn from then on.
///
/// The first Ctrl-C ends the load, and the Recording says `interrupted`; the second one raises KeyboardInterrupt. Anything else
/// that `on_event` raises ends the run and is raised.
///
/// `latencies`: a file that gets a row for each request of the window, while the load runs; an old one is replaced.
///
/// `requests`: the descriptor of an open file with the requests, where the specification names one by its digest; it stays open.
///
/// Raises EngineError when the run failed, OSError when the file cannot be opened.
#[pyfunction]
#[pyo3(signature = (spec, on_event=None, latencies=None, requests=None))]
fn run(
    py: Python<'_>,
    spec: &str,
    on_event: Option<Py<PyAny>>,
    latencies: Option<PathBuf>,
    requests: Option<RawFd>,
) -> PyResult<String> {
    let spec = Spec::from_json(spec).map_err(|error| to_python(py, &error))?;
    let files = Files {
        latencies: latencies.map(File::create).transpose()?,
        requests: requests.map(duplicate).transpose()?,
    };
    let (written, raised) = py.detach(|| {
        let control = Control::new();
        let host = RefCell::new(Host {
            on_event,
            target: &spec.target,
            control: control.clone(),
            interrupted: false,
            raised: None,
        });
        let outcome = run_with(
            &spec,
            &control,
            files,
            &mut |event| host.borrow_mut().report(event),
            &mut || host.borrow_mut().look_for_signals(),
        );
        // Other threads go on meanwhile, such as those that say that this machine is alive: to write the Recording of an
        // hour takes half a second of a CPU, and far longer on a busy one.
        (
            outcome.map(|recording| to_json(&recording)),
            host.into_inner().raised,
        )
    });
    match raised {
        Some(exception) => Err(exception),
        None => written.map_err(|error| to_python(py, &error))?,
    }
}

/// The file of a descriptor that is the caller's, and stays so.
fn duplicate(descriptor: RawFd) -> std::io::Result<File> {
    // A path by which the kernel opens the same file is not there: the file has no name.
    // SAFETY: it is borrowed for this call only; one that is not open fails with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map(File::from)
}

/// Return the Recordings of several machines as one, all as JSON: in a tree, by all CPUs that there are.
///
/// `ahead_ns`: of each machine, by how much the clock that their stamps are put on is ahead of its own.
///
/// Raises EngineError for what is no Recording, or has an account that does not add up.
#[pyfunction]
fn merge_recordings(py: Python<'_>, recordings: Vec<String>, ahead_ns: Vec<i64>) -> PyResult<String> {
    let threads = available_parallelism().map_or(1, usize::from);
    let written =
        py.detach(|| Recording::of_machines(&recordings, &ahead_ns, threads).map(|merged| to_json(&merged)));
    written.map_err(|error| to_python(py, &error))?
}

/// The Python program around a run.
struct Host<'s> {
    on_event: Option<Py<PyAny>>,
    target: &'s Target,
    control: Control,
    interrupted: bool,
    /// What ended the run.
    raised: Option<PyErr>,
}

impl Host<'_> {
    fn report(&mut self, event: &Event) {
        if self.raised.is_some() {
            return;
        }
        Python::attach(|py| {
            let outcome = self.call(py, event);
            self.weigh(py, outcome);
        });
    }

    fn call(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        match &self.on_event {
            Some(on_event) => self.turn(py, on_event.call1(py, (to_json(event)?,))?.extract(py)?),
            None => Ok(()),
        }
    }

    /// New connections go to other hosts from now on, where there are any.
    fn turn(&self, py: Python<'_>, hosts: Option<Vec<String>>) -> PyResult<()> {
        let hosts = hosts.unwrap_or_default();
        let turned = self.control.connect_to(self.target, hosts.iter());
        turned.map_err(|error| to_python(py, &error))
    }

    fn look_for_signals(&mut self) {
        if self.raised.is_none() {
            Python::attach(|py| self.weigh(py, py.check_signals()));
        }
    }

    /// A signal that comes while `on_event` runs is raised in there: both ways are the same interrupt.
    fn weigh(&mut self, py: Python<'_>, outcome: PyResult<()>) {
        let Err(exception) = outcome else {
            return;
        };
        if exception.is_instance_of::<PyKeyboardInterrupt>(py) && !self.interrupted {
            self.interrupted = true;
            self.control.cancel();
        } else {
            self.raised = Some(exception);
            self.control.abort();
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
