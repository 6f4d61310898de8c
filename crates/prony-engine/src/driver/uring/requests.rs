//! The requests that the kernel may read at any time: each once, where it is, as long as the driver lives.

/// A load has few different ones: one, or as many as its mix has paths.
#[derive(Debug, Default)]
pub struct Requests {
    all: Vec<Box<[u8]>>,
    last: usize,
}

impl Requests {
    /// Where a request is kept.
    pub fn kept(&mut self, bytes: &[u8]) -> *const u8 {
        if self.all.get(self.last).is_none_or(|one| **one != *bytes) {
            let known = self.all.iter().position(|one| **one == *bytes);
            self.last = known.unwrap_or(self.all.len());
            if known.is_none() {
                self.all.push(bytes.into());
            }
        }
        self.all[self.last].as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stays_where_it_is() {
        let mut requests = Requests::default();
        let first = requests.kept(b"GET /");
        let others: Vec<_> = (0..100).map(|k| requests.kept(&[k])).collect();
        assert_eq!(requests.kept(b"GET /"), first);
        assert_eq!((0..100).map(|k| requests.kept(&[k])).collect::<Vec<_>>(), others);
        assert_eq!(requests.all.len(), 101);
    }
}
