#![allow(clippy::unwrap_used)]
use super::*;
use crate::clock::Simulated;
use crate::socket::RECEIVE_BYTES;

/// Sockets that are open at once, and bring what a test gives them.
#[derive(Debug, Default)]
struct Sockets {
    open: Vec<bool>,
    inbound: Vec<Vec<u8>>,
    events: Vec<Ready>,
    buffer: Vec<u8>,
    takes_nothing: bool,
    /// It takes a moment until they are open.
    open_later: bool,
    has_ended: bool,
    /// Nobody takes what is sent any more.
    is_gone: bool,
}

impl Driver for Sockets {
    const NAME: &'static str = "sockets";

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        let count = self.open.len().max(slot + 1);
        self.open.resize(count, false);
        self.inbound.resize(count, Vec::new());
        self.inbound[slot].clear();
        assert!(!std::mem::replace(&mut self.open[slot], true), "{slot} is open");
        Ok(!self.open_later)
    }

    fn connect_result(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.open[slot]);
        if self.is_gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if self.takes_nothing {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(bytes.len())
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let inbound = &mut self.inbound[slot];
        let count = inbound.len().min(RECEIVE_BYTES);
        self.buffer = inbound.drain(..count).collect();
        if self.buffer.is_empty() && !self.has_ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Received::of(&self.buffer, true))
    }

    fn close(&mut self, slot: usize) {
        self.open[slot] = false;
    }

    fn wait(&mut self, _: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.append(&mut self.events);
        Ok(())
    }
}

type Tested = Http2<Sockets, Simulated>;

/// With a connection whose settings are there, on which these slots are.
fn opened(per_connection: usize, most_streams: u32, slots: &[usize]) -> Tested {
    let mut driver = Http2::new(Sockets::default(), Simulated::default(), per_connection);
    for &slot in slots {
        assert!(driver.connect(slot).unwrap());
    }
    let limit = [&3u16.to_be_bytes()[..], &most_streams.to_be_bytes()].concat();
    arrive(&mut driver, 0, &frame(4, 0, &limit));
    driver
}

fn frame(kind: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let flags = if kind == 1 { 5 } else { 0 };
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &id.to_be_bytes(), payload].concat()
}

fn goaway(last: u32) -> Vec<u8> {
    frame(7, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// 200 without a body.
fn reply(id: u32) -> Vec<u8> {
    frame(1, id, &[0x88])
}

/// 200 with a body of 48,000 bytes, which takes several frames.
fn large_reply(id: u32) -> Vec<u8> {
    let piece = |flags| {
        let mut bytes = frame(0, id, &[b'x'; 16_000]);
        bytes[4] = flags;
        bytes
    };
    let mut head = reply(id);
    head[4] = 4;
    [head, piece(0), piece(0), piece(1)].concat()
}

/// Returns the slots with news of bytes that come on a connection.
fn arrive(driver: &mut Tested, link: usize, bytes: &[u8]) -> Vec<Ready> {
    driver.inner.inbound[link].extend_from_slice(bytes);
    driver.inner.events.push(Ready {
        slot: link,
        writable: false,
        readable: true,
        hangup: false,
    });
    news(driver)
}

fn news(driver: &mut Tested) -> Vec<Ready> {
    let mut ready = Vec::new();
    driver.wait(0, &mut ready).unwrap();
    ready
}

/// GET /, as `protocol::http2` renders it.
const REQUEST: &[u8] = &[0, 0, 0, 3, 0x82, 0x84, 0x86];

fn waits(driver: &mut Tested, slot: usize) -> bool {
    match driver.send(slot, REQUEST) {
        Ok(count) => {
            assert_eq!(count, REQUEST.len());
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            true
        }
    }
}

#[test]
fn a_connection_without_requests_is_closed_when_the_server_leaves_it() {
    let mut driver = opened(2, 10, &[0]);
    assert!(!waits(&mut driver, 0));
    news(&mut driver);
    // Its request is given up; the connection is kept for the next one.
    driver.close(0);
    assert_eq!(driver.inner.open, [true]);
    assert!(arrive(&mut driver, 0, &goaway(1)).is_empty());
    assert_eq!(driver.inner.open, [false]);
    assert_eq!(driver.figures().unwrap().goaways, 1);
    // Its place is free for another one, once.
    assert!(driver.connect(0).unwrap() && driver.connect(2).unwrap());
    assert_eq!(driver.inner.open, [true, true]);
}

#[test]
fn idle_slots_leave_a_connection_that_the_server_leaves() {
    let mut driver = opened(2, 10, &[0, 1]);
    for event in arrive(&mut driver, 0, &goaway(0)) {
        assert!(event.readable && event.hangup);
        driver.close(event.slot);
    }
    assert_eq!(driver.inner.open, [false]);
}

#[test]
fn a_request_without_a_stream_is_unsent_also_when_the_server_leaves() {
    let mut driver = opened(3, 1, &[0, 1, 2]);
    let waiting = [0, 2, 1].map(|slot| waits(&mut driver, slot));
    assert_eq!(waiting, [false, true, true]);
    let unsent = |driver: &Tested| [0, 1, 2].map(|slot| driver.is_unsent(slot));
    assert_eq!(unsent(&driver), [false, true, true]);
    let left = arrive(&mut driver, 0, &goaway(1));
    assert_eq!(unsent(&driver), [false, true, true]);
    // Who waited longest is sent elsewhere first.
    let order: Vec<usize> = left.iter().map(|event| event.slot).collect();
    assert_eq!(order, [2, 1]);
    let faults = [1, 2].map(|slot| Fault::of(&driver.receive(slot).unwrap_err()));
    assert_eq!(faults, [Some(Fault::Unsent); 2]);
}

#[test]
fn a_connection_that_ends_as_soon_as_it_is_there_was_open_and_says_why() {
    for (inbound, said) in [
        (&b""[..], "closed before the request had a stream"),
        (b"HTTP/1.1 400 No\r\n\r\n", "the server speaks HTTP/1 here"),
    ] {
        let sockets = Sockets {
            open_later: true,
            has_ended: true,
            ..Sockets::default()
        };
        let mut driver: Tested = Http2::new(sockets, Simulated::default(), 2);
        assert!(!driver.connect(0).unwrap());
        driver.inner.inbound[0].extend_from_slice(inbound);
        driver.inner.events.push(Ready {
            slot: 0,
            writable: true,
            readable: true,
            hangup: true,
        });
        assert_eq!(news(&mut driver).len(), 1);
        driver.connect_result(0).unwrap();
        assert_eq!(driver.opened_as(0), OpenedAs::First { again: false });
        let error = driver.send(0, REQUEST).unwrap_err();
        assert_eq!(error.to_string(), said);
        assert!(driver.is_unsent(0));
        driver.close(0);
        // The next one is another connection.
        assert!(!driver.connect(0).unwrap());
        assert_eq!(driver.inner.open, [true]);
    }
}

#[test]
fn as_many_have_their_turn_at_once_as_there_are_streams() {
    let mut driver = opened(5, 2, &[0, 1, 2, 3, 4]);
    let waiting = [0, 1, 2, 3, 4].map(|slot| waits(&mut driver, slot));
    assert_eq!(waiting, [false, false, true, true, true]);
    let replies = [reply(1), reply(3)].concat();
    let next = arrive(&mut driver, 0, &replies);
    let writable: Vec<usize> = next
        .iter()
        .filter(|event| event.writable)
        .map(|event| event.slot)
        .collect();
    assert_eq!(writable, [2, 3]);
    assert!(!waits(&mut driver, 2) && !waits(&mut driver, 3) && waits(&mut driver, 4));
}

#[test]
fn what_waits_for_a_server_that_takes_nothing_is_bounded() {
    let mut driver = opened(1, 10, &[0]);
    driver.inner.takes_nothing = true;
    let mut given_up = 0;
    while !waits(&mut driver, 0) {
        driver.close(0);
        assert!(driver.connect(0).unwrap());
        given_up += 1;
        let pending = driver.links[0].connection.pending().len();
        assert!(pending < 512 * 1024, "{pending} bytes wait");
        news(&mut driver);
    }
    assert!(given_up > 100 && driver.is_unsent(0));
    // It goes on when the server does.
    driver.inner.takes_nothing = false;
    driver.inner.events.push(Ready {
        slot: 0,
        writable: true,
        readable: false,
        hangup: false,
    });
    let next = news(&mut driver);
    assert!(
        next.iter().any(|event| event.slot == 0 && event.writable),
        "{next:?}"
    );
    assert!(!waits(&mut driver, 0));
}

#[test]
fn whole_replies_are_received_when_nothing_can_be_sent_any_more_however_many_readings_they_take() {
    let mut driver = opened(5, 10, &[0, 1, 2, 3, 4]);
    for slot in 0..5 {
        assert!(!waits(&mut driver, slot));
    }
    driver.inner.is_gone = true;
    driver.inner.inbound[0] = (0..4).flat_map(|slot| large_reply(2 * slot + 1)).collect();
    news(&mut driver);
    for slot in 0..4 {
        let received = driver.receive(slot).map(|received| received.is_complete);
        assert!(received.unwrap(), "{slot}");
    }
    let error = driver.receive(4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn large_buffers_are_not_kept() {
    let (mut board, mut slot) = (Board::default(), Slot::default());
    for _ in 0..100 {
        board.take_back(Vec::with_capacity(SPARE_BYTES / 2));
    }
    let kept: usize = board.spare.iter().map(Vec::capacity).sum();
    assert!(kept <= SPARE_BYTES && kept == board.spare_bytes, "{kept}");
    board.keep(&mut slot, b"x");
    assert!(slot.inbox.capacity() >= SPARE_BYTES / 2);
    assert_eq!(kept - board.spare_bytes, slot.inbox.capacity());
}
