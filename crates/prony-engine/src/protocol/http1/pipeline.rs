//! Several requests under way on one connection of HTTP/1.1: replies come in the order of requests (RFC 9112 section 9.3.2).
//!
//! A reply has no name: which request it answers is known by counting alone. So a connection ends at the first reply that is not whole, is
//! none, or is not waited for any more. Those before it go on, and those behind it have to go elsewhere.

use super::{Progress, ReplyReader};
use crate::protocol::session::{News, Session};
use crate::spec::HttpVersion;
use std::collections::VecDeque;

/// A connection with requests in order.
#[derive(Debug)]
pub struct Pipeline {
    reader: ReplyReader,
    order: VecDeque<Asked>,
    // What is to be sent stands behind `start`.
    out: Vec<u8>,
    start: usize,
    // Bytes that have left this side, or will: of those behind `start` so many are among them.
    left: u64,
    committed: usize,
    next_id: u32,
    answered: u64,
    is_careful: bool,
    /// It takes no more requests.
    is_over: bool,
    /// What comes behind the replies that are awaited answers those who wait no more.
    is_cut: bool,
    has_left_some: bool,
}

/// A request without a whole reply. Its bytes stand between two places in all that the connection sends.
#[derive(Debug)]
struct Asked {
    id: u32,
    key: usize,
    begins_at: u64,
    ends_at: u64,
    is_whole: bool,
}

/// So much stands ready to be sent; more waits until some of it was.
const MOST_PENDING: usize = 64 * 1024;
/// So many replies show that a server takes one request after the other. Until then a connection that follows one that failed has one
/// request at a time: the first of those that were left may be what it failed at (RFC 9112 section 9.3.2).
const TRUSTED_AFTER: u64 = 2;
const UNASKED: &str = "bytes came that no request had asked for";

impl Pipeline {
    /// Before its first request, all of which are HEAD, or none.
    fn new(is_head: bool, is_careful: bool) -> Self {
        Self {
            reader: ReplyReader::new(HttpVersion::V1_1, is_head),
            order: VecDeque::new(),
            out: Vec::new(),
            start: 0,
            left: 0,
            committed: 0,
            next_id: 0,
            answered: 0,
            is_careful,
            is_over: false,
            is_cut: false,
            has_left_some: false,
        }
    }

    /// Appends what fits.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(MOST_PENDING.saturating_sub(self.pending().len()));
        self.out.extend_from_slice(&bytes[..count]);
        count
    }

    /// The reply to the first request is complete, with `own` as its last piece; `after` came behind it.
    fn complete(&mut self, own: &[u8], after: &[u8], on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let Some(first) = self.order.pop_front() else {
            return;
        };
        let is_early = !first.is_whole || first.ends_at > self.left;
        let (goes_on, is_announced) = (self.reader.keeps_alive(), self.reader.says_close());
        self.reader.reset();
        self.answered += 1;
        on_news(first.key, own.len(), News::Body(own));
        if is_early {
            // The rest of a request that was answered early would be taken for the next one.
            self.take_back(self.left);
        }
        if !goes_on || is_early {
            self.drop_from(0, is_announced, on_news);
        }
        // What follows and answers nothing goes to who was answered last, and is surplus there.
        if !after.is_empty() && !self.awaits_reply() && !self.is_cut {
            on_news(first.key, after.len(), News::Body(after));
            self.drop_from(0, false, on_news);
        }
        let end = if is_early { News::Early } else { News::Complete };
        on_news(first.key, 0, end);
    }

    /// Whether the next bytes are those of a reply.
    fn awaits_reply(&self) -> bool {
        self.order
            .front()
            .is_some_and(|first| first.begins_at < self.left)
    }

    /// The connection takes no more requests, and those from this place on get no replies on it. `is_announced`: the server has said so,
    /// and looks at none of them.
    fn drop_from(
        &mut self,
        place: usize,
        is_announced: bool,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) {
        self.is_over = true;
        let dropped = self.order.split_off(place.min(self.order.len()));
        if let Some(first) = dropped.front() {
            self.take_back(first.begins_at);
            self.has_left_some = true;
        }
        for one in dropped {
            let news = match one.begins_at >= self.left {
                true => News::Unsent,
                false if is_announced => News::Skipped,
                false => News::Behind,
            };
            on_news(one.key, 0, news);
        }
    }

    /// Nothing is sent any more of what stands behind this place, as far as it can be taken back.
    fn take_back(&mut self, place: u64) {
        let kept = place.saturating_sub(self.left);
        self.out.truncate(self.start + self.committed + kept as usize);
    }

    /// A piece of a reply that is not complete: its connection may end with it all the same.
    fn look_at_piece(&mut self, progress: Progress, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        if progress != Progress::More {
            // Who asked for it reads the same. A head that is sound may have announced the end, however the reply was cut.
            let is_announced = self.reader.says_close();
            self.drop_from(1, is_announced, on_news);
            self.order.clear();
            (self.is_cut, self.has_left_some) = (true, true);
        } else if self.reader.status() != 0 && !self.reader.keeps_alive() {
            let is_announced = self.reader.says_close();
            self.drop_from(1, is_announced, on_news);
        }
    }

    fn place_of(&self, id: u32) -> Option<usize> {
        self.order.iter().position(|one| one.id == id)
    }
}

impl Session for Pipeline {
    const IS_IN_ORDER: bool = true;

    fn open(is_head: bool, is_careful: bool) -> Self {
        Self::new(is_head, is_careful)
    }

    fn begin(&mut self, key: usize, request: &[u8], _: bool) -> (Option<u32>, usize) {
        let begins_at = self.left + (self.pending().len() - self.committed) as u64;
        let taken = self.push(request);
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.order.push_back(Asked {
            id,
            key,
            begins_at,
            ends_at: begins_at + taken as u64,
            is_whole: taken == request.len(),
        });
        (Some(id), taken)
    }

    fn send(&mut self, id: u32, rest: &[u8]) -> usize {
        if self
            .order
            .back()
            .is_none_or(|last| last.id != id || last.is_whole)
        {
            return 0;
        }
        let taken = self.push(rest);
        if let Some(last) = self.order.back_mut() {
            last.ends_at += taken as u64;
            last.is_whole = taken == rest.len();
        }
        taken
    }

    /// The connection cannot do without its reply.
    fn cancel(&mut self, id: u32, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let Some(place) = self.place_of(id) else { return };
        let begins_at = self.order[place].begins_at;
        self.drop_from(place + 1, false, on_news);
        self.take_back(begins_at);
        self.order.truncate(place);
        (self.is_cut, self.has_left_some) = (true, true);
    }

    fn abandon(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        if let Some(first) = self.order.pop_front() {
            on_news(first.key, 0, News::Lost);
            self.has_left_some = true;
        }
        self.drop_from(0, false, on_news);
    }

    fn pending(&self) -> &[u8] {
        &self.out[self.start..]
    }

    fn advance(&mut self, count: usize) {
        let fresh = count.saturating_sub(self.committed);
        self.committed -= count - fresh;
        self.left += fresh as u64;
        self.start += count;
        if self.start == self.out.len() {
            self.out.clear();
            self.start = 0;
        } else if self.start > MOST_PENDING {
            self.out.drain(..self.start);
            self.start = 0;
        }
    }

    fn commit(&mut self, count: usize) {
        self.left += count.saturating_sub(self.committed) as u64;
        self.committed = self.committed.max(count);
    }

    fn take(
        &mut self,
        bytes: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), &'static str> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.awaits_reply() {
                // What comes for those who wait no more.
                return if self.is_over { Ok(()) } else { Err(UNASKED) };
            }
            let key = self.order[0].key;
            match self.reader.feed(rest, &mut |_| {}) {
                Progress::Complete { surplus } => {
                    let (own, after) = rest.split_at(rest.len() - surplus);
                    self.complete(own, after, on_news);
                    rest = after;
                }
                progress => {
                    on_news(key, rest.len(), News::Body(rest));
                    self.look_at_piece(progress, on_news);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn find_room(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let has_room = self.pending().len() <= MOST_PENDING / 2;
        if let Some(last) = self.order.back().filter(|last| has_room && !last.is_whole) {
            on_news(last.key, 0, News::Room);
        }
    }

    fn room(&self) -> usize {
        let is_between = self.order.back().is_none_or(|last| last.is_whole);
        if self.is_over || !is_between || self.pending().len() >= MOST_PENDING {
            0
        } else if self.is_careful && self.answered < TRUSTED_AFTER {
            usize::from(self.order.is_empty())
        } else {
            usize::MAX
        }
    }

    fn is_usable(&self) -> bool {
        !self.is_over
    }

    fn has(&self, id: u32) -> bool {
        self.place_of(id).is_some()
    }

    fn has_answered(&self) -> bool {
        self.answered > 0
    }

    fn asks_for_care(&self) -> bool {
        self.has_left_some || (self.is_careful && self.answered < TRUSTED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ASK: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";

    /// What became of the requests, by their keys, and how many bytes each was given.
    #[derive(Debug, Default)]
    struct Seen {
        ends: Vec<(usize, String)>,
        bytes: [usize; 8],
    }

    impl Seen {
        fn note(&mut self, key: usize, bytes: usize, news: News<'_>) {
            match news {
                News::Body(piece) => {
                    assert_eq!(piece.len(), bytes);
                    self.bytes[key] += bytes;
                }
                other => self.ends.push((key, format!("{other:?}"))),
            }
        }

        fn ends(&self) -> Vec<(usize, &str)> {
            self.ends.iter().map(|(key, end)| (*key, end.as_str())).collect()
        }
    }

    /// With so many requests, of which so many have left this side.
    fn asked(count: usize, sent: usize) -> Pipeline {
        let mut pipeline = Pipeline::new(false, false);
        for key in 0..count {
            assert_eq!(pipeline.begin(key, ASK, false), (Some(key as u32), ASK.len()));
        }
        pipeline.advance(sent * ASK.len());
        pipeline
    }

    fn take(pipeline: &mut Pipeline, bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        pipeline
            .take(bytes, &mut |key, bytes, news| seen.note(key, bytes, news))
            .unwrap();
        seen
    }

    #[test]
    fn replies_answer_the_requests_in_their_order_however_they_are_cut() {
        let replies = [REPLY, REPLY, REPLY].concat();
        for step in 1..replies.len() {
            let mut pipeline = asked(3, 3);
            let mut seen = Seen::default();
            for piece in replies.chunks(step) {
                let mut note = |key, bytes, news: News<'_>| seen.note(key, bytes, news);
                pipeline.take(piece, &mut note).unwrap();
            }
            assert_eq!(seen.ends(), [(0, "Complete"), (1, "Complete"), (2, "Complete")]);
            assert_eq!(seen.bytes[..3], [REPLY.len(); 3]);
            assert!(pipeline.is_usable() && !pipeline.asks_for_care());
        }
    }

    #[test]
    fn behind_the_last_reply_nothing_was_looked_at_and_what_was_not_sent_is_said_to_be() {
        let mut pipeline = asked(4, 3);
        let seen = take(&mut pipeline, LAST);
        let expected = [(1, "Skipped"), (2, "Skipped"), (3, "Unsent"), (0, "Complete")];
        assert_eq!(seen.ends(), expected);
        assert!(!pipeline.is_usable() && pipeline.pending().is_empty());
        assert!(pipeline.asks_for_care());
    }

    #[test]
    fn a_reply_that_only_its_end_ends_leaves_those_behind_it_as_soon_as_its_head_is_there() {
        let mut pipeline = asked(2, 2);
        let seen = take(&mut pipeline, b"HTTP/1.1 200 OK\r\n\r\nh");
        assert_eq!(seen.ends(), [(1, "Behind")]);
        assert_eq!(pipeline.room(), 0);
        let mut seen = Seen::default();
        pipeline.abandon(&mut |key, bytes, news| seen.note(key, bytes, news));
        assert_eq!(seen.ends(), [(0, "Lost")]);
    }

    #[test]
    fn a_request_that_is_given_up_takes_those_behind_it_and_not_those_before_it() {
        let mut pipeline = asked(4, 3);
        let mut seen = Seen::default();
        pipeline.cancel(1, &mut |key, bytes, news| seen.note(key, bytes, news));
        assert_eq!(seen.ends(), [(2, "Behind"), (3, "Unsent")]);
        assert!(pipeline.pending().is_empty());
        // The reply that nobody waits for any more is none of those that are.
        let seen = take(&mut pipeline, &[REPLY, REPLY].concat());
        assert_eq!((seen.ends(), seen.bytes[0]), (vec![(0, "Complete")], REPLY.len()));
        assert!(take(&mut pipeline, REPLY).ends().is_empty());
    }

    #[test]
    fn what_is_no_reply_goes_to_who_asked_and_ends_the_connection() {
        let mut pipeline = asked(3, 3);
        let seen = take(&mut pipeline, &[REPLY, b"SSH-2.0"].concat());
        assert_eq!(seen.ends(), [(0, "Complete"), (2, "Behind")]);
        assert_eq!(seen.bytes[..2], [REPLY.len(), 7]);
        assert!(!pipeline.is_usable());
        assert!(take(&mut pipeline, REPLY).ends().is_empty());
    }

    #[test]
    fn surplus_goes_to_who_was_answered_last_or_is_an_error() {
        let mut pipeline = asked(2, 2);
        let seen = take(&mut pipeline, &[REPLY, REPLY, b"more"].concat());
        assert_eq!(seen.ends(), [(0, "Complete"), (1, "Complete")]);
        assert_eq!(seen.bytes[..2], [REPLY.len(), REPLY.len() + 4]);
        assert!(!pipeline.is_usable());
        let mut idle = asked(1, 1);
        take(&mut idle, REPLY);
        assert_eq!(idle.take(b"x", &mut |_, _, _| {}), Err(UNASKED));
    }

    #[test]
    fn a_long_request_is_sent_in_pieces_and_holds_the_next_one_up() {
        let long = vec![b'x'; MOST_PENDING + 10];
        let mut pipeline = Pipeline::new(false, false);
        assert_eq!(pipeline.begin(0, &long, false), (Some(0), MOST_PENDING));
        assert_eq!((pipeline.room(), pipeline.send(0, &long[MOST_PENDING..])), (0, 0));
        pipeline.advance(MOST_PENDING);
        let mut seen = Seen::default();
        pipeline.find_room(&mut |key, bytes, news| seen.note(key, bytes, news));
        assert_eq!(seen.ends(), [(0, "Room")]);
        assert_eq!(pipeline.send(0, &long[MOST_PENDING..]), 10);
        assert_eq!(pipeline.room(), usize::MAX);
    }

    #[test]
    fn a_reply_before_its_request_was_sent_is_early_and_nothing_more_is_sent() {
        let long = vec![b'x'; 100];
        let mut pipeline = Pipeline::new(false, false);
        pipeline.begin(0, &long, false);
        pipeline.begin(1, ASK, false);
        pipeline.advance(99);
        let seen = take(&mut pipeline, REPLY);
        assert_eq!(seen.ends(), [(1, "Unsent"), (0, "Early")]);
        assert!(pipeline.pending().is_empty() && !pipeline.is_usable());
    }

    #[test]
    fn what_the_driver_has_taken_is_sent_and_may_be_answered() {
        let mut pipeline = asked(3, 0);
        // Two and a half are encrypted; of which the kernel has nothing yet, as far as is known.
        let taken = 5 * ASK.len() / 2;
        pipeline.commit(taken);
        pipeline.commit(taken);
        let seen = take(&mut pipeline, LAST);
        assert_eq!(seen.ends(), [(1, "Skipped"), (2, "Skipped"), (0, "Complete")]);
        assert_eq!(pipeline.pending().len(), taken);
        pipeline.advance(taken);
        assert!(pipeline.pending().is_empty() && pipeline.committed == 0);
        assert_eq!(pipeline.left, taken as u64);
    }

    #[test]
    fn what_the_driver_has_not_taken_is_not_sent() {
        let mut pipeline = asked(3, 0);
        pipeline.commit(2 * ASK.len());
        let seen = take(&mut pipeline, LAST);
        assert_eq!(seen.ends(), [(1, "Skipped"), (2, "Unsent"), (0, "Complete")]);
        assert_eq!(pipeline.pending().len(), 2 * ASK.len());
        pipeline.advance(ASK.len());
        assert_eq!(
            (pipeline.pending().len(), pipeline.committed),
            (ASK.len(), ASK.len())
        );
    }

    #[test]
    fn after_a_connection_that_left_requests_the_next_one_shows_first_that_it_takes_several() {
        let mut pipeline = Pipeline::new(false, true);
        for key in 0..2 {
            assert_eq!(pipeline.room(), 1);
            pipeline.begin(key, ASK, false);
            assert_eq!(pipeline.room(), 0);
            pipeline.advance(ASK.len());
            assert!(pipeline.asks_for_care());
            take(&mut pipeline, REPLY);
        }
        assert!(pipeline.room() > 1 && !pipeline.asks_for_care());
    }
}
