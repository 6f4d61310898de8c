//! The head of a reply: what its fields say, and whether they may be there (RFC 9113 section 8).

/// A head, as its fields are read.
#[derive(Debug, Default)]
pub struct Head {
    /// Of a reply; null in trailers.
    pub status: Option<u16>,
    /// The first rule that it breaks.
    pub fault: Option<&'static str>,
    /// The length that it announces for the body.
    pub length: Option<u64>,
    /// As HTTP/1 would write it.
    pub text: Vec<u8>,
    has_fields: bool,
}

const PSEUDO: u8 = b':';
// They are of a connection, and frames have taken their place (section 8.2.2).
pub const OF_A_CONNECTION: [&[u8]; 5] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
];

impl Head {
    /// Forgets the last one.
    pub fn clear(&mut self) {
        (self.status, self.fault, self.length) = (None, None, None);
        self.has_fields = false;
        self.text.clear();
    }

    /// Takes the next field.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        let result = if name.first() == Some(&PSEUDO) {
            self.take_status(name, value)
        } else {
            self.take_field(name, value)
        };
        if let (Err(fault), None) = (result, self.fault) {
            self.fault = Some(fault);
        }
    }

    /// All fields are there.
    pub fn finish(&mut self) {
        if self.text.is_empty() {
            self.text.extend_from_slice(b"HTTP/2\r\n");
        }
        self.text.extend_from_slice(b"\r\n");
    }

    fn take_status(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if name != b":status" {
            return Err("a field of the head that only requests have");
        }
        if self.status.is_some() || self.has_fields {
            return Err("a status twice, or behind other fields");
        }
        let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = *value else {
            return Err("a status that is no number of three digits");
        };
        let digit = |byte: u8| u16::from(byte - b'0');
        self.status = Some(100 * digit(a) + 10 * digit(b) + digit(c));
        self.line(b"HTTP/2 ", value);
        Ok(())
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if self.text.is_empty() {
            self.text.extend_from_slice(b"HTTP/2\r\n");
        }
        self.has_fields = true;
        check_name(name)?;
        check_value(value)?;
        if name == b"content-length" {
            self.take_length(value)?;
        }
        self.text.extend_from_slice(name);
        self.line(b": ", value);
        Ok(())
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        const WRONG: &str = "a content-length that is no number";
        let digits = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length = digits.and_then(|text| text.parse().ok()).ok_or(WRONG)?;
        if self.length.replace(length).is_some_and(|other| other != length) {
            return Err("two lengths that differ");
        }
        Ok(())
    }

    fn line(&mut self, before: &[u8], value: &[u8]) {
        for part in [before, value, b"\r\n"] {
            self.text.extend_from_slice(part);
        }
    }
}

/// Section 8.2.1.
fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_bad = |byte: &u8| matches!(byte, 0..=0x20 | b'A'..=b'Z' | b':' | 0x7f..);
    if name.is_empty() || name.iter().any(is_bad) {
        return Err("a field with a name that may not be");
    }
    if OF_A_CONNECTION.contains(&name) {
        return Err("a field that HTTP/2 does not have, such as `connection`");
    }
    Ok(())
}

fn check_value(value: &[u8]) -> Result<(), &'static str> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_bad = value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    if has_bad || is_blank(value.first()) || is_blank(value.last()) {
        return Err("a field with a value that may not be");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        for (name, value) in fields {
            head.field(name.as_bytes(), value.as_bytes());
        }
        head.finish();
        head
    }

    #[test]
    fn a_head_reads_like_one_of_http_1() {
        let head = head(&[(":status", "200"), ("content-length", "5"), ("x", "")]);
        assert_eq!(head.text, b"HTTP/2 200\r\ncontent-length: 5\r\nx: \r\n\r\n");
        assert_eq!((head.status, head.length, head.fault), (Some(200), Some(5), None));
    }

    #[test]
    fn what_no_reply_may_have_is_a_fault() {
        let cases: [&[(&str, &str)]; 15] = [
            &[(":status", "20")],
            &[(":status", "2000")],
            &[(":status", "0x0")],
            &[(":status", "200"), (":status", "200")],
            &[("x", "y"), (":status", "200")],
            &[(":path", "/")],
            &[("X", "y")],
            &[("", "y")],
            &[("x y", "")],
            &[("x", "y\r\nz: 1")],
            &[("x", " y")],
            &[("x", "y\t")],
            &[("connection", "close")],
            &[("content-length", "+5")],
            &[("content-length", "5"), ("content-length", "6")],
        ];
        for fields in cases {
            assert!(head(fields).fault.is_some(), "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_no_status() {
        let trailers = head(&[("grpc-status", "0")]);
        assert_eq!((trailers.status, trailers.fault), (None, None));
    }
}
