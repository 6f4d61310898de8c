//! A text that a body must contain, found across the pieces in which the body arrives.

use memchr::memmem::Finder;

/// A text, prepared once.
///
/// *Source*: D. E. Knuth, J. H. Morris and V. R. Pratt, Fast Pattern Matching in Strings, SIAM J. Comput. 6 (1977), for what
/// crosses from one piece to the next; within a piece memchr's search, which is faster.
#[derive(Debug, Clone)]
pub(super) struct Needle {
    finder: Finder<'static>,
    /// For each length of a matched beginning, the longest shorter one that is an end of it.
    shorter: Vec<usize>,
}

/// How far a search has come: how many bytes of the text the last ones of the body are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Search {
    matched: usize,
    found: bool,
}

impl Search {
    pub(super) fn is_found(&self) -> bool {
        self.found
    }
}

impl Needle {
    /// A text of at least one byte.
    pub(super) fn new(text: &[u8]) -> Self {
        let mut own = Self {
            finder: Finder::new(text).into_owned(),
            shorter: vec![0; text.len() + 1],
        };
        for length in 2..=text.len() {
            own.shorter[length] = own.step(own.shorter[length - 1], text[length - 1]);
        }
        own
    }

    /// Looks on in the next piece.
    pub(super) fn search(&self, search: &mut Search, piece: &[u8]) {
        if search.found {
            return;
        }
        let most = self.text().len() - 1;
        // What begins in an earlier piece ends in the first bytes of this one.
        search.found = self.run(&mut search.matched, &piece[..piece.len().min(most)])
            || self.finder.find(piece).is_some();
        // What ends in a later piece begins in the last bytes of this one.
        if piece.len() > most {
            search.matched = 0;
            self.run(&mut search.matched, &piece[piece.len() - most..]);
        }
    }

    /// Moves on byte by byte; true as soon as the whole text was there.
    fn run(&self, matched: &mut usize, bytes: &[u8]) -> bool {
        bytes.iter().any(|&byte| {
            *matched = self.step(*matched, byte);
            *matched == self.text().len()
        })
    }

    fn step(&self, mut matched: usize, byte: u8) -> usize {
        while matched > 0 && self.text().get(matched) != Some(&byte) {
            matched = self.shorter[matched];
        }
        matched + usize::from(self.text()[matched] == byte)
    }

    fn text(&self) -> &[u8] {
        self.finder.needle()
    }
}
