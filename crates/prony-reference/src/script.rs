//! Which reply a request gets: the whole of the server's deliberate misbehaviour, as a pure function.

use crate::config::{Config, Framing};
use crate::reply::{framing_for, Variant};
use crate::request::Request;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Silent,
    Answered(Variant, Ending),
}

/// What becomes of the connection when a reply has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    KeepOpen,
    Close,
    /// The reply is cut at its middle, by a RST.
    Reset,
    /// The reply is cut at its middle, by a FIN.
    Short,
    /// A close after the answer to what was no request.
    Refuse,
}

impl Ending {
    pub(crate) fn cuts(self) -> bool {
        matches!(self, Ending::Reset | Ending::Short)
    }
}

/// The fate of the server's `request_number`-th request, which is to get its connection's `reply_number`-th reply.
///
/// Silence goes before everything, a cut before a close, a RST before a FIN.
pub(crate) fn fate(config: &Config, request: &Request, request_number: u64, reply_number: u64) -> Fate {
    if is_every(config.silent_every, request_number) {
        return Fate::Silent;
    }
    let last = is_last(config, request, reply_number);
    let ending = match reply_number {
        n if config.reset_after == Some(n) => Ending::Reset,
        n if config.short_after == Some(n) => Ending::Short,
        _ if last => Ending::Close,
        _ => Ending::KeepOpen,
    };
    let variant = Variant {
        error: is_every(config.error_every, request_number),
        method_is_head: request.method_is_head,
        http_1_0: request.http_1_0,
        last,
    };
    Fate::Answered(variant, ending)
}

fn is_every(every: Option<u64>, number: u64) -> bool {
    every.is_some_and(|every| number % every == 0)
}

fn is_last(config: &Config, request: &Request, reply_number: u64) -> bool {
    !config.keep_alive
        || request.wants_close
        || config.close_after.is_some_and(|after| reply_number >= after)
        || framing_for(config, request.http_1_0) == Framing::CloseDelimited
}

#[cfg(test)]
mod tests {
    use super::{fate, Ending, Fate};
    use crate::config::Config;
    use crate::request::Request;

    fn ending(text: &str, request_number: u64, reply_number: u64) -> Option<Ending> {
        let config = Config::from_json(text).unwrap();
        match fate(&config, &Request::default(), request_number, reply_number) {
            Fate::Silent => None,
            Fate::Answered(_, ending) => Some(ending),
        }
    }

    #[test]
    fn each_rule_applies_to_its_number() {
        for (text, request_number, reply_number, expected) in [
            ("{}", 1, 1, Some(Ending::KeepOpen)),
            (r#"{"silent_every": 3}"#, 3, 1, None),
            (r#"{"silent_every": 3}"#, 4, 1, Some(Ending::KeepOpen)),
            (r#"{"close_after": 2}"#, 9, 1, Some(Ending::KeepOpen)),
            (r#"{"close_after": 2}"#, 9, 2, Some(Ending::Close)),
            (
                r#"{"close_after": 2, "reset_after": 2, "short_after": 2}"#,
                9,
                2,
                Some(Ending::Reset),
            ),
            (
                r#"{"close_after": 2, "short_after": 2}"#,
                9,
                2,
                Some(Ending::Short),
            ),
            (r#"{"keep_alive": false}"#, 9, 1, Some(Ending::Close)),
            (r#"{"framing": "close_delimited"}"#, 9, 1, Some(Ending::Close)),
        ] {
            assert_eq!(ending(text, request_number, reply_number), expected, "{text}");
        }
    }

    #[test]
    fn five_percent_errors_are_every_twentieth_request() {
        let config = Config::from_json(r#"{"error_every": 20}"#).unwrap();
        let is_error = |number: &u64| match fate(&config, &Request::default(), *number, 1) {
            Fate::Answered(variant, _) => variant.error,
            Fate::Silent => false,
        };
        assert_eq!(
            (1..=100).filter(is_error).collect::<Vec<_>>(),
            [20, 40, 60, 80, 100]
        );
    }
}
