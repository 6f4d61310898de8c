//! Each wire's kept inputs, and changes of them.

use prony_fuzz::{check, kept, Mutator, Wire};

const MUTANTS: usize = 300_000;

fn shake(wire: Wire, corpus: &str) {
    let inputs = kept(corpus);
    let mutants = Mutator::new(&inputs, 1).take(MUTANTS);
    inputs
        .iter()
        .cloned()
        .chain(mutants)
        .for_each(|input| check(wire, &input));
}

#[test]
fn http1_holds() {
    shake(Wire::Http1, include_str!("../corpus/http1.txt"));
}

#[test]
fn http10_holds() {
    shake(Wire::Http10, include_str!("../corpus/http10.txt"));
}

#[test]
fn fastcgi_holds() {
    shake(Wire::FastCgi, include_str!("../corpus/fastcgi.txt"));
}

#[test]
fn uwsgi_holds() {
    shake(Wire::Uwsgi, include_str!("../corpus/uwsgi.txt"));
}

#[test]
fn scgi_holds() {
    shake(Wire::Scgi, include_str!("../corpus/scgi.txt"));
}

#[test]
fn http2_holds() {
    shake(Wire::Http2, include_str!("../corpus/http2.txt"));
}
