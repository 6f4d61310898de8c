//! Every request of the window as a row of a file, without stopping for it: a worker fills a buffer, and hands it to a writer that
//! gives it back. Memory is bounded; when the writer is too far behind, rows are lost, counted and reported, and the load goes on.

use super::{End, Flight};
use crate::account::Class;
use crate::clock::NS_PER_S;
use crate::record::recording::RawLatencies;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

/// One request that has ended. Times are from the opening of the window.
#[derive(Debug, Clone, Copy)]
struct Row {
    intended_ns: u64,
    sent_ns: Option<u64>,
    done_ns: u64,
    class: Class,
    body_bytes: u64,
    connection: Option<u64>,
}

// 4,096 rows of 64 bytes: a buffer is handed on some ten times a second at 40,000 requests a second.
const ROWS: usize = 4096;
// For each worker: 16 MiB at most, a quarter of a million requests.
const BUFFERS: usize = 64;
// A slow load hands its rows on about once a second too, so that the file can be followed.
const LONGEST_HELD_NS: u64 = NS_PER_S;
const HEADER: &str = "intended_ns,sent_ns,done_ns,class,body_bytes,connection\n";

/// The worker's side.
#[derive(Debug)]
pub struct RawRows {
    worker: usize,
    workers: usize,
    current: Vec<Row>,
    full: SyncSender<(usize, Vec<Row>)>,
    spare: Receiver<Vec<Row>>,
    lost: u64,
}

impl RawRows {
    /// A request of the window has ended.
    pub fn ended<Q>(&mut self, flight: &Flight<Q>, open_ns: u64, end: &End<'_>) {
        let since = |at_ns: u64| at_ns.saturating_sub(open_ns);
        let row = Row {
            intended_ns: since(flight.intended_ns),
            sent_ns: flight.sent_ns.map(since),
            done_ns: since(end.at_ns),
            class: end.class,
            body_bytes: end.body_bytes,
            connection: end
                .connection
                .map(|slot| (slot * self.workers + self.worker) as u64),
        };
        let first_ns = self.current.first().map_or(row.done_ns, |first| first.done_ns);
        self.current.push(row);
        if self.current.len() == ROWS || row.done_ns.saturating_sub(first_ns) > LONGEST_HELD_NS {
            self.hand_on();
        }
    }

    #[cold]
    fn hand_on(&mut self) {
        match self.spare.try_recv() {
            // There is room for every buffer that there is, so this never waits.
            Ok(next) => {
                let _ = self
                    .full
                    .send((self.worker, std::mem::replace(&mut self.current, next)));
            }
            Err(_) => {
                self.lost += self.current.len() as u64;
                self.current.clear();
            }
        }
    }

    /// Hands on the last rows; returns how many were lost.
    pub fn finish(mut self) -> u64 {
        let rows = std::mem::take(&mut self.current);
        let _ = self.full.send((self.worker, rows));
        self.lost
    }
}

/// Where the rows go.
trait Target: Write + Send + 'static {
    /// Takes back what lies beyond the first `length` bytes, as far as that is possible.
    fn cut(&mut self, length: u64);
}

impl Target for File {
    fn cut(&mut self, length: u64) {
        // A device or a pipe keeps what it has.
        let _ = self.set_len(length);
        let _ = self.seek(SeekFrom::Start(length));
    }
}

/// The coordinator's side: a thread that writes.
#[derive(Debug)]
pub struct RawWriter {
    thread: JoinHandle<RawLatencies>,
}

/// A writer for so many workers, and the side of each.
///
/// # Errors
/// When no thread can be started.
pub fn raw_rows(file: File, workers: usize) -> std::io::Result<(RawWriter, Vec<RawRows>)> {
    writer(file, workers)
}

fn writer(target: impl Target, workers: usize) -> std::io::Result<(RawWriter, Vec<RawRows>)> {
    let (full, from_workers) = sync_channel(workers * (BUFFERS + 2));
    let (mut sides, mut spares) = (Vec::new(), Vec::new());
    for worker in 0..workers {
        let (give, spare) = sync_channel(BUFFERS + 2);
        for _ in 0..BUFFERS {
            // Takes memory only as it is filled.
            let _ = give.try_send(Vec::with_capacity(ROWS));
        }
        spares.push(give);
        sides.push(RawRows {
            worker,
            workers,
            current: Vec::with_capacity(ROWS),
            full: full.clone(),
            spare,
            lost: 0,
        });
    }
    let thread = std::thread::Builder::new()
        .name("prony-latencies".to_owned())
        .spawn(move || write_all(target, &from_workers, &spares))?;
    Ok((RawWriter { thread }, sides))
}

impl RawWriter {
    /// Waits until all is written that the workers handed on; they have ended, and lost so many rows.
    pub fn finish(self, lost: u64) -> RawLatencies {
        let mut found = self.thread.join().unwrap_or_else(|_| RawLatencies {
            error: Some("the writer panicked".to_owned()),
            ..RawLatencies::default()
        });
        found.lost += lost;
        found
    }
}

/// Writes until all workers have ended. After an error nothing more is written, and what has been written ends with a whole row.
fn write_all(
    mut target: impl Target,
    full: &Receiver<(usize, Vec<Row>)>,
    spares: &[SyncSender<Vec<Row>>],
) -> RawLatencies {
    let mut found = RawLatencies::default();
    let (mut text, mut length) = (HEADER.to_owned(), 0);
    for (worker, mut rows) in full {
        rows.iter().for_each(|row| push_row(&mut text, row));
        write_whole(&mut target, &mut text, &mut length, &mut found);
        if found.error.is_none() {
            found.rows += rows.len() as u64;
        } else {
            found.lost += rows.len() as u64;
        }
        rows.clear();
        // A worker that has ended needs no spares.
        let _ = spares[worker].try_send(rows);
    }
    write_whole(&mut target, &mut text, &mut length, &mut found);
    found
}

fn write_whole(target: &mut impl Target, text: &mut String, length: &mut u64, found: &mut RawLatencies) {
    if found.error.is_none() {
        match target.write_all(text.as_bytes()).and_then(|()| target.flush()) {
            Ok(()) => *length += text.len() as u64,
            Err(error) => {
                target.cut(*length);
                found.error = Some(error.to_string());
            }
        }
    }
    text.clear();
}

fn push_row(text: &mut String, row: &Row) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{},", row.intended_ns);
    if let Some(sent_ns) = row.sent_ns {
        let _ = write!(text, "{sent_ns}");
    }
    let _ = write!(text, ",{},{}", row.done_ns, row.class.name());
    if let Class::BadStatus(code) = row.class {
        let _ = write!(text, " {code}");
    }
    let _ = write!(text, ",{},", row.body_bytes);
    if let Some(connection) = row.connection {
        let _ = write!(text, "{connection}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk of so many bytes, on which a write may end anywhere.
    #[derive(Clone)]
    struct Disk {
        room: usize,
        held: Arc<Mutex<Vec<u8>>>,
    }

    impl Disk {
        fn of(room: usize) -> Self {
            Self {
                room,
                held: Arc::default(),
            }
        }

        fn text(&self) -> String {
            String::from_utf8(self.held.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut held = self.held.lock().unwrap();
            match self.room - held.len() {
                0 => Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
                left => {
                    let count = bytes.len().min(left);
                    held.extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Target for Disk {
        fn cut(&mut self, length: u64) {
            self.held.lock().unwrap().truncate(length as usize);
        }
    }

    fn flight(intended_ns: u64, sent_ns: Option<u64>) -> Flight<()> {
        Flight {
            request: (),
            intended_ns,
            sent_ns,
        }
    }

    fn end(connection: Option<usize>, class: Class, at_ns: u64, body_bytes: u64) -> End<'static> {
        End {
            body_bytes,
            connection,
            ..End::without_reply(class, at_ns, "")
        }
    }

    #[test]
    fn a_row_has_the_times_from_the_opening_and_says_nothing_that_it_does_not_know() {
        let disk = Disk::of(1000);
        let (writer, mut sides) = writer(disk.clone(), 2).unwrap();
        let (mut second, first) = (sides.pop().unwrap(), sides.pop().unwrap());
        second.ended(
            &flight(105, Some(107)),
            100,
            &end(Some(3), Class::BadStatus(503), 120, 9),
        );
        second.ended(&flight(106, None), 100, &end(None, Class::NotSentQueue, 130, 0));
        let lost = first.finish() + second.finish();
        let found = writer.finish(lost);
        let expected = format!("{HEADER}5,7,20,bad_status 503,9,7\n6,,30,not_sent_queue,0,\n");
        assert_eq!(
            (disk.text(), found.rows, found.lost, found.error),
            (expected, 2, 0, None)
        );
    }

    #[test]
    fn a_full_disk_is_reported_and_the_file_ends_with_a_whole_row() {
        let disk = Disk::of(200_000);
        let (writer, mut sides) = writer(disk.clone(), 1).unwrap();
        let mut side = sides.pop().unwrap();
        for k in 0..20_000 {
            side.ended(&flight(k, Some(k)), 0, &end(Some(1), Class::Ok, k + 5, 2));
        }
        let lost = side.finish();
        let found = writer.finish(lost);
        assert_eq!(found.rows + found.lost, 20_000);
        assert!(found.error.unwrap().contains("No space left on device"));
        let text = disk.text();
        assert!(text.ends_with('\n'));
        assert_eq!(text.lines().count() as u64, found.rows + 1);
        assert!(found.rows > 0);
    }

    #[test]
    fn t27_a_disk_that_stands_still_costs_rows_and_no_memory() {
        /// Takes nothing until it is let go.
        struct Stuck(Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        impl Target for Stuck {
            fn cut(&mut self, _: u64) {}
        }
        let (release, held) = sync_channel(0);
        let (writer, mut sides) = writer(Stuck(held), 1).unwrap();
        let mut side = sides.pop().unwrap();
        let count = 1_000_000;
        for k in 0..count {
            side.ended(&flight(k, Some(k)), 0, &end(Some(1), Class::Ok, k + 5, 2));
        }
        drop(release);
        let lost = side.finish();
        let found = writer.finish(lost);
        assert_eq!(found.rows + found.lost, count);
        let most_held = ((BUFFERS + 2) * ROWS) as u64;
        assert!(found.lost >= count - most_held, "{} lost", found.lost);
    }
}
