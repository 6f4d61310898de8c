//! Requests that differ: of a mix of paths, or of a file. Each slot has the session that is begun on it, of one step, and a buffer.

use super::{is_idempotent, Asks, Protocol, Reader, Rendered, Same};
use crate::error::Error;
use crate::random;
use crate::schedule::mix::Draw;
use crate::spec::requests::{Book, Kind, Template};
use crate::spec::typed;
use crate::spec::Share;
use crate::spec::{Group, Mix, Order, Request, Spec, Target, Wire};
use std::sync::Arc;

/// A protocol whose requests are drawn, in the order of the load.
#[derive(Debug, Clone)]
pub struct Sessions<P> {
    target: Arc<Target>,
    steps: Arc<[Step<P>]>,
    book: Option<Arc<Book>>,
    order: Sequence,
    drawn: Option<Draw>,
    /// Whether each row has a step of its own, rendered in advance.
    is_by_row: bool,
}

/// What is sent, but for what a row has.
#[derive(Debug)]
struct Step<P> {
    writer: Writer<P>,
    expectation: u16,
    is_head: bool,
    is_idempotent: bool,
    keeps_alive: bool,
}

#[derive(Debug)]
enum Writer<P> {
    Whole(P),
    Open { template: Template, fields: usize },
}

/// A session of one step: a request of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    row: u32,
    step: u32,
    path: u16,
    expectation: u16,
}

impl Asks for Session {
    fn path(self) -> usize {
        self.path.into()
    }

    fn row(self) -> (usize, usize) {
        (self.row as usize, self.step as usize)
    }

    fn expectation(self) -> usize {
        self.expectation.into()
    }
}

/// The rows of one worker's requests: request k of the load has a row by k alone, and belongs to worker k mod `workers`.
#[derive(Debug, Clone)]
enum Sequence {
    /// One after the other, and from the beginning again; `places`: in this order of rows, where they are shuffled.
    Passes {
        next: u64,
        step: u64,
        rows: u64,
        places: Option<Arc<[u32]>>,
    },
    Weighted(Draw),
}

impl Sequence {
    fn of(book: &Book, order: Order, seed: u64) -> Result<Self, Error> {
        let rows = book.rows();
        let passes = |places| Self::Passes {
            next: 0,
            step: 1,
            rows: rows as u64,
            places,
        };
        Ok(match order {
            Order::InOrder => passes(None),
            Order::Shuffled => passes(Some(shuffled(rows as u32, seed).into())),
            Order::Weighted => {
                let weights = book.weights().ok_or_else(|| {
                    Error::InvalidSpec(
                        "`workload.mix.file.order` is `weighted`; the file has no weights".into(),
                    )
                })?;
                Self::Weighted(Draw::new(weights, seed))
            }
        })
    }

    fn take_share(&mut self, share: Share) {
        match self {
            Self::Passes { next, step, rows, .. } => {
                (*next, *step) = (share.worker % *rows, share.workers % *rows);
            }
            Self::Weighted(draw) => draw.take_share(share),
        }
    }

    fn next(&mut self) -> usize {
        match self {
            Self::Passes {
                next,
                step,
                rows,
                places,
            } => {
                let place = *next as usize;
                *next += *step;
                if *next >= *rows {
                    *next -= *rows;
                }
                places.as_ref().map_or(place, |places| places[place] as usize)
            }
            Self::Weighted(draw) => draw.next_path(),
        }
    }
}

/// Fisher and Yates' shuffle, of the seed.
fn shuffled(rows: u32, seed: u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..rows).collect();
    let mut state = random::scrambled(seed);
    for last in (1..places.len()).rev() {
        // Of 64 bits times less than 32: no row is likelier than another by 2^-32.
        let drawn = (u128::from(random::next(&mut state)) * (last as u128 + 1)) >> 64;
        places.swap(last, drawn as usize);
    }
    places
}

impl<P: Rendered> Sessions<P> {
    /// The paths of a mix, which differ in nothing else; `requests`: one of each.
    ///
    /// # Errors
    /// As of the protocol.
    pub fn of_mix(spec: &Spec, mix: &Mix, requests: &[Request]) -> Result<Self, Error> {
        let body = spec.request_body()?;
        let step = |request: &Request| Step::whole(request, body.as_deref(), &spec.target, 0);
        let steps: Result<Vec<_>, Error> = requests.iter().map(step).collect();
        Ok(Self {
            target: Arc::new(spec.target.clone()),
            steps: steps?.into(),
            book: None,
            order: Sequence::Weighted(Draw::new(mix.paths.iter().map(|one| one.weight), mix.seed)),
            drawn: None,
            is_by_row: false,
        })
    }

    /// The requests of a file, as the users of a group send them; each group goes through the file by itself.
    ///
    /// # Errors
    /// As of the protocol; [`Error::InvalidSpec`] for what it cannot have.
    pub fn of_book(spec: &Spec, mix: &Mix, book: Arc<Book>, group: Option<&Group>) -> Result<Self, Error> {
        let kinds = book.kinds_of(group);
        let order = mix.file.as_ref().map_or(Order::InOrder, |file| file.order);
        let keep_alive = spec.workload.request.keep_alive;
        let is_by_row = !P::HAS_TEMPLATES;
        let steps: Result<Vec<_>, Error> = if is_by_row {
            if book.is_drawn || book.rows() > MOST_BY_ROW {
                return Err(Error::InvalidSpec(format!(
                    "`target.wire` has no templates; expected HTTP, or a file of at most {MOST_BY_ROW} whole requests"
                )));
            }
            let of_row = |row| {
                let (number, _) = book.kind_of(row);
                let kind = &kinds[number];
                let (request, body) = book.request(kind, row, keep_alive);
                Step::whole(&request, body.as_deref(), &spec.target, number + 1)
            };
            (0..book.rows()).map(of_row).collect()
        } else {
            let numbered = kinds.iter().enumerate();
            numbered
                .map(|(number, kind)| Step::of(kind, spec, number + 1))
                .collect()
        };
        let weights = mix.paths.iter().map(|one| one.weight);
        Ok(Self {
            target: Arc::new(spec.target.clone()),
            steps: steps?.into(),
            order: Sequence::of(&book, order, mix.seed)?,
            drawn: book.is_drawn.then(|| Draw::new(weights, mix.seed)),
            is_by_row,
            book: Some(book),
        })
    }
}

// Of a few hundred bytes each.
const MOST_BY_ROW: usize = 100_000;

impl<P: Rendered> Step<P> {
    fn whole(
        request: &Request,
        body: Option<&[u8]>,
        target: &Target,
        expectation: usize,
    ) -> Result<Self, Error> {
        typed::check(request, body.map_or(0, <[u8]>::len), target.wire)?;
        let writer = Writer::Whole(P::rendered(request, body, target)?);
        Ok(Self::new(writer, request, target.wire, expectation))
    }

    /// Of a kind with holes, or of one without.
    fn of(kind: &Kind, spec: &Spec, expectation: usize) -> Result<Self, Error> {
        let (request, body) = (kind.marked(spec.workload.request.keep_alive), kind.whole_body());
        if kind.is_whole() {
            return Self::whole(&request, body.as_deref(), &spec.target, expectation);
        }
        kind.check_headers()?;
        let body_bytes = body.as_ref().map_or(0, Vec::len);
        typed::check(&request, body_bytes, spec.target.wire)?;
        let template = P::template(&request, kind, &spec.target)?;
        let fields = kind.fields;
        Ok(Self::new(
            Writer::Open { template, fields },
            &request,
            spec.target.wire,
            expectation,
        ))
    }

    fn new(writer: Writer<P>, request: &Request, wire: Wire, expectation: usize) -> Self {
        Self {
            writer,
            expectation: expectation as u16,
            is_head: request.method == "HEAD",
            is_idempotent: is_idempotent(&request.method),
            keeps_alive: typed::keeps_alive(request, wire),
        }
    }
}

impl<P: Rendered> Sessions<P> {
    fn step(&self, session: Session) -> &Step<P> {
        &self.steps[session.step as usize]
    }
}

impl<P: Rendered> Protocol for Sessions<P> {
    type Reader = P::Reader;
    type Request = Session;

    fn take_share(&mut self, share: Share) {
        self.order.take_share(share);
        if let Some(drawn) = &mut self.drawn {
            drawn.take_share(share);
        }
    }

    fn next(&mut self) -> Session {
        let row = self.order.next();
        let (step, path) = match (&self.book, &mut self.drawn) {
            (None, _) => (row, row),
            (Some(_), Some(drawn)) => {
                let step = drawn.next_path();
                (step, step)
            }
            (Some(book), None) => {
                let (kind, path) = book.kind_of(row);
                (if self.is_by_row { row } else { kind }, path)
            }
        };
        Session {
            row: row as u32,
            step: step as u32,
            path: path as u16,
            expectation: self.steps[step].expectation,
        }
    }

    fn begin(&self, session: Session, reader: &mut P::Reader, buffer: &mut Vec<u8>) -> bool {
        let step = self.step(session);
        reader.answers_head(step.is_head);
        match (&step.writer, &self.book) {
            (Writer::Open { template, fields }, Some(book)) => {
                template.write(book.fields(session.row as usize, *fields), buffer);
                true
            }
            _ => false,
        }
    }

    fn bytes(&self, session: Session) -> &[u8] {
        match &self.step(session).writer {
            Writer::Whole(whole) => whole.bytes(Same),
            // It is in its slot's buffer.
            Writer::Open { .. } => &[],
        }
    }

    fn is_idempotent(&self, session: Session) -> bool {
        self.step(session).is_idempotent
    }

    fn reader(&self) -> P::Reader {
        P::new_reader(&self.target)
    }

    fn keeps_alive(&self, session: Session) -> bool {
        self.step(session).keeps_alive
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{http2, Http1, Http2, Uwsgi};
    use super::*;
    use crate::spec::requests::tests::{book, compiled, kind};
    use proptest::prelude::*;
    use serde_json::json;

    fn spec(order: &str, wire: &str, rows: u64) -> Spec {
        let file = json!({"name": "x", "sha256": "", "requests": rows, "order": order});
        let paths = json!([{"path": "/a", "weight": 1}, {"path": "/b", "weight": 1}]);
        let spec = json!({
            "target": {"host": "127.0.0.1", "port": 8000, "wire": {"kind": wire}},
            "workload": {
                "loop": {"kind": "closed", "connections": 1}, "stop": {"kind": "requests", "requests": 1},
                "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null},
                "mix": {"seed": 3, "paths": paths, "file": file}
            },
            "threads": 1, "cpus": null, "pacing": "economical"
        });
        Spec::from_json(&spec.to_string()).unwrap()
    }

    fn sessions<P: Rendered>(spec: &Spec, rows: &[Vec<&[u8]>]) -> Result<Sessions<P>, Error> {
        let rows: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(row, fields)| (row as u32 % 2, row as u32 % 2, fields.clone()))
            .collect();
        let bytes = compiled(&json!([kind("POST"), kind("HEAD")]), &rows);
        let book = Arc::new(book(bytes, rows.len() as u64)?);
        Sessions::of_book(
            spec,
            spec.workload.mix.as_ref().unwrap(),
            book,
            spec.workload.groups.first(),
        )
    }

    fn order(order: &str, count: usize) -> Vec<u32> {
        let rows: Vec<Vec<&[u8]>> = (0..5).map(|_| vec![&b"1"[..], b"2", b"3"]).collect();
        let mut sessions = sessions::<Http1>(&spec(order, "http", 5), &rows).unwrap();
        (0..count).map(|_| sessions.next().row).collect()
    }

    #[test]
    fn rows_go_in_order_or_each_once_in_another_order_again_and_again() {
        assert_eq!(order("in_order", 7), [0, 1, 2, 3, 4, 0, 1]);
        let shuffled = order("shuffled", 10);
        let mut pass = shuffled[..5].to_vec();
        assert_eq!(pass, shuffled[5..]);
        assert_ne!(pass, [0, 1, 2, 3, 4]);
        pass.sort_unstable();
        assert_eq!(pass, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn shares_of_the_workers_make_up_the_whole() {
        let rows: Vec<Vec<&[u8]>> = (0..5).map(|_| vec![&b"1"[..], b"2", b"3"]).collect();
        for order in ["in_order", "shuffled"] {
            let whole = sessions::<Http1>(&spec(order, "http", 5), &rows).unwrap();
            let mut alone = whole.clone();
            let alone: Vec<Session> = (0..60).map(|_| alone.next()).collect();
            for workers in [1u64, 2, 3, 5, 7] {
                for worker in 0..workers {
                    let mut own = whole.clone();
                    own.take_share(Share { worker, workers });
                    for session in alone.iter().skip(worker as usize).step_by(workers as usize) {
                        assert_eq!(own.next(), *session);
                    }
                }
            }
        }
    }

    #[test]
    fn weights_that_a_file_does_not_have_are_refused() {
        let error = sessions::<Http1>(&spec("weighted", "http", 1), &[vec![b"", b"", b""]]).unwrap_err();
        assert!(error.to_string().contains("the file has no weights"), "{error}");
    }

    #[test]
    fn a_gateway_has_each_row_rendered_in_advance() {
        let rows: Vec<Vec<&[u8]>> = vec![vec![b"1", b"2", b"3"], vec![b"4", b"5", b""]];
        let mut sessions = sessions::<Uwsgi>(&spec("in_order", "uwsgi", 2), &rows).unwrap();
        for path in ["/a/1", "/a/4"] {
            let session = sessions.next();
            let mut reader = sessions.reader();
            assert!(!sessions.begin(session, &mut reader, &mut Vec::new()));
            let sent = String::from_utf8_lossy(sessions.bytes(session)).into_owned();
            assert!(sent.contains(path), "{sent}");
        }
    }

    /// What a template writes, and what rendering the whole request gives.
    fn both<P: Rendered>(wire: &str, row: &[&[u8]], number: usize) -> (Vec<u8>, Vec<u8>) {
        let spec = spec("in_order", wire, 2);
        let mut sessions = sessions::<P>(&spec, &[row.to_vec(), row.to_vec()]).unwrap();
        let (mut reader, mut buffer) = (sessions.reader(), b"of the last one".to_vec());
        let mut session = sessions.next();
        for _ in 0..number {
            session = sessions.next();
        }
        assert!(sessions.begin(session, &mut reader, &mut buffer));
        let book = sessions.book.unwrap();
        let (mut request, body) = book.request(&book.kinds_of(None)[number], number, true);
        let length = body.as_ref().map_or(0, Vec::len).to_string();
        request.headers.push(("Content-Length".to_owned(), length));
        let whole = P::rendered(&request, body.as_deref(), &spec.target).unwrap();
        (buffer, whole.bytes(Same).to_vec())
    }

    proptest! {
        #[test]
        fn a_template_writes_what_rendering_the_request_gives(
            path in "[!-~]{0,200}", value in "[ -~]{0,200}", body in proptest::collection::vec(any::<u8>(), 0..200), number in 0usize..2
        ) {
            let value = value.trim();
            let row = [path.as_bytes(), value.as_bytes(), &body];
            let (written, rendered) = both::<Http1>("http", &row, number);
            prop_assert_eq!(written, rendered);
            let (written, rendered) = both::<Http2>("http2", &row, number);
            // The same fields, which need not be coded alike.
            prop_assert_eq!(http2::fields_of(&written), http2::fields_of(&rendered));
            prop_assert_eq!(http2::parts(&written).1, http2::parts(&rendered).1);
        }
    }
}
