//! The line of `/proc/PID/stat`.

/// The fields of use, in the kernel's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat<'a> {
    pub(crate) name: &'a str,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) waited_user_ticks: u64,
    pub(crate) waited_system_ticks: u64,
    pub(crate) threads: u64,
    pub(crate) start_time_ticks: u64,
    pub(crate) vsz_bytes: u64,
    pub(crate) rss_pages: u64,
}

impl Stat<'_> {
    /// Reads the line; `None` when it has another form. Field numbers are those of proc(5).
    pub(crate) fn parse(line: &str) -> Option<Stat<'_>> {
        // The name may contain blanks and parentheses; the last parenthesis ends it.
        let (head, tail) = line.rsplit_once(") ")?;
        let name = head.split_once(" (")?.1;
        let mut fields = tail.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let mut number = |skipped| -> Option<u64> { fields.nth(skipped)?.parse().ok() };
        Some(Stat {
            name,
            state,
            parent,
            minor_faults: number(5)?,        // field 10
            major_faults: number(1)?,        // field 12
            user_ticks: number(1)?,          // field 14
            system_ticks: number(0)?,        // field 15
            waited_user_ticks: number(0)?,   // field 16
            waited_system_ticks: number(0)?, // field 17
            threads: number(2)?,             // field 20
            start_time_ticks: number(1)?,    // field 22
            vsz_bytes: number(0)?,           // field 23
            rss_pages: number(0)?,           // field 24
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn each_field_is_taken_from_its_place_whatever_the_name() {
        let fields: Vec<String> = (5..=52).map(|field| field.to_string()).collect();
        let line = format!("1 (a) b (c) S 4 {}\n", fields.join(" "));
        let expected = Stat {
            name: "a) b (c",
            state: 'S',
            parent: 4,
            minor_faults: 10,
            major_faults: 12,
            user_ticks: 14,
            system_ticks: 15,
            waited_user_ticks: 16,
            waited_system_ticks: 17,
            threads: 20,
            start_time_ticks: 22,
            vsz_bytes: 23,
            rss_pages: 24,
        };
        assert_eq!(Stat::parse(&line), Some(expected));
    }

    #[test]
    fn a_line_that_ends_early_is_none() {
        assert_eq!(Stat::parse("1 (a) S 4 5 6\n"), None);
        assert_eq!(Stat::parse(""), None);
    }
}
