//! The same on HTTP: a response body in which what carriers carry is put in their place.
//!
//! It reads what rmcp's server writes: one JSON message as the whole body, or a stream of events (SSE) each of whose
//! messages is one `data:` line. Everything else passes untouched and at once. No more is held than one message.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::{Body, Frame, SizeHint};
use serde::Deserialize as _;
use serde_json::Value;

use super::key;

/// The longest message, in bytes. Upstreams' are cut off far below; what is longer breaks the response off, since half a
/// message is none.
const MAX_MESSAGE: usize = 64 << 20;

/// What a line of an event begins with that has a message.
const DATA: &[u8] = b"data:";

/// Why a body breaks off.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message has more than {} MiB", MAX_MESSAGE >> 20)]
struct TooLong;

/// A response of rmcp's, with everything in it as it came.
pub(in super::super) fn restored<B>(mut response: Response<B>) -> Response<Restored<B>> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let filter = match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(Filter::Message(Vec::new())),
        "text/event-stream" => Some(Filter::Events(Events::default())),
        _ => None,
    };
    if filter.is_some() {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.map(|body| Restored { body, filter, trailers: None, ended: false })
}

/// The body of such a response.
#[derive(Debug)]
pub(in super::super) struct Restored<B> {
    body: B,
    /// `None` where there is nothing to restore.
    filter: Option<Filter>,
    /// They wait for what the filter held.
    trailers: Option<Frame<Bytes>>,
    ended: bool,
}

impl<B> Body for Restored<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            if let Some(trailers) = this.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => Some(frame),
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => None,
            };
            let Some(filter) = &mut this.filter else {
                return Poll::Ready(frame.map(Ok));
            };
            let out = match frame.map(Frame::into_data) {
                Some(Ok(data)) => match filter.push(&data) {
                    Ok(out) => out,
                    Err(error) => {
                        this.ended = true;
                        return Poll::Ready(Some(Err(error.into())));
                    }
                },
                last => {
                    this.ended = true;
                    this.trailers = last.and_then(Result::err);
                    filter.finish()
                }
            };
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.filter {
            Some(_) => self.ended && self.trailers.is_none(),
            None => self.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.filter.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}

/// Bytes in, bytes out.
#[derive(Debug)]
enum Filter {
    /// The whole is one message.
    Message(Vec<u8>),
    Events(Events),
}

impl Filter {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, TooLong> {
        match self {
            Self::Message(held) if held.len() + bytes.len() > MAX_MESSAGE => Err(TooLong),
            Self::Message(held) => {
                held.extend_from_slice(bytes);
                Ok(Vec::new())
            }
            Self::Events(events) => events.push(bytes),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        match self {
            Self::Message(held) => {
                let held = std::mem::take(held);
                restore(&held).unwrap_or(held)
            }
            Self::Events(events) => events.finish(),
        }
    }
}

/// A stream of events, line by line.
#[derive(Debug, Default)]
struct Events {
    /// A line's beginning that is not passed on yet.
    held: Vec<u8>,
    line: Line,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// It may become one with a message.
    #[default]
    Open,
    /// It is one: held until it ends.
    Data,
    /// It is none: passed on as it comes.
    Other,
}

impl Events {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, TooLong> {
        let mut out = Vec::with_capacity(bytes.len());
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line == Line::Other {
                out.extend_from_slice(piece);
            } else {
                if self.held.len() + piece.len() > MAX_MESSAGE {
                    return Err(TooLong);
                }
                self.held.extend_from_slice(piece);
            }
            if self.line == Line::Open {
                if self.held.starts_with(DATA) {
                    self.line = Line::Data;
                } else if !DATA.starts_with(&self.held) {
                    self.line = Line::Other;
                    out.append(&mut self.held);
                }
            }
            if piece.ends_with(b"\n") {
                out.append(&mut self.finish());
            }
        }
        Ok(out)
    }

    /// What is held of a line that has ended.
    fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.line) {
            Line::Data => restore_line(&held).into_owned(),
            Line::Open | Line::Other => held,
        }
    }
}

fn restore_line(line: &[u8]) -> Cow<'_, [u8]> {
    let message = line[DATA.len()..].trim_ascii();
    let Some(restored) = restore(message) else { return line.into() };
    let start = line.len() - line[DATA.len()..].trim_ascii_start().len();
    [&line[..start], &restored, &line[start + message.len()..]].concat().into()
}

/// The message with what it carries in its place; `None` where it is no carrier.
fn restore(message: &[u8]) -> Option<Vec<u8>> {
    let mut reader = serde_json::Deserializer::from_slice(message);
    // Our own writing: no deeper than it was when it was read from an upstream, and a little for the carrier.
    reader.disable_recursion_limit();
    let mut message = Value::deserialize(&mut reader).ok().filter(|_| reader.end().is_ok())?;
    let result = message.get_mut("result")?;
    let carrier = result.as_object_mut()?;
    let meta = carrier.get_mut("_meta")?.as_object_mut()?;
    let raw = meta.shift_remove(key())?;
    if meta.is_empty() {
        carrier.shift_remove("_meta");
    }
    *result = super::restored(std::mem::take(carrier), raw);
    serde_json::to_vec(&message).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::LazyLock;

    use http::HeaderMap;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    static CARRIER: LazyLock<String> = LazyLock::new(|| {
        let carrier = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"_meta":{"KEY":{"content":[{"type":"é","x":0.1}],"y":{"result":{"_meta":{"KEY":2}}}}}}}"#;
        carrier.replace("KEY", key())
    });
    static RAW: LazyLock<String> = LazyLock::new(|| {
        let raw = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"é","x":0.1}],"y":{"result":{"_meta":{"KEY":2}}},"resultType":"complete"}}"#;
        raw.replace("KEY", key())
    });

    /// A body of these frames.
    struct Frames(VecDeque<Frame<Bytes>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn response(kind: &str, frames: Vec<Frame<Bytes>>) -> Response<Restored<Frames>> {
        let response = Response::builder().header(CONTENT_TYPE, kind).header(CONTENT_LENGTH, 3);
        restored(response.body(Frames(frames.into())).unwrap())
    }

    fn read(response: Response<Restored<Frames>>) -> (Vec<u8>, Option<HeaderMap>) {
        let mut body = response.into_body();
        let (mut out, mut trailers) = (Vec::new(), None);
        let mut context = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            match frame.unwrap().into_data() {
                Ok(data) => out.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        assert!(body.is_end_stream());
        (out, trailers)
    }

    fn split(text: &[u8], at: &[usize]) -> Vec<Frame<Bytes>> {
        let mut cuts: Vec<usize> = at.iter().map(|at| at % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| Frame::data(Bytes::copy_from_slice(&text[cut[0]..cut[1]]))).collect()
    }

    #[test]
    fn a_json_body_is_restored_and_its_length_is_open() {
        let mut frames = split(CARRIER.as_bytes(), &[7, 99]);
        frames.push(Frame::trailers(HeaderMap::from_iter([(CONTENT_TYPE, "x".parse().unwrap())])));
        let response = response("application/json; charset=utf-8", frames);
        assert!(response.headers().get(CONTENT_LENGTH).is_none());
        let (out, trailers) = read(response);
        assert_eq!(String::from_utf8(out).unwrap(), *RAW);
        assert_eq!(trailers.unwrap().len(), 1);
    }

    #[test]
    fn other_bodies_and_other_messages_pass_untouched() {
        let plain = response("text/plain", split(CARRIER.as_bytes(), &[]));
        assert_eq!(plain.headers().get(CONTENT_LENGTH).unwrap(), "3");
        assert_eq!(read(plain).0, CARRIER.as_bytes());
        for message in [
            "",
            "{",
            "no JSON",
            r#"{ "id": 1,"result":{"_meta":{}} }"#,
            r#"{"error":{"_meta":{"aster/raw":1}}}"#,
            // A stranger's, who can only guess.
            r#"{"result":{"contents":[],"_meta":{"aster/raw":{"content":[]},"aster/raw-0":1}}}"#,
        ] {
            let out = read(response("application/json", split(message.as_bytes(), &[])));
            assert_eq!(out.0, message.as_bytes());
        }
    }

    #[test]
    fn what_was_readable_upstream_is_readable_with_its_carrier() {
        // The deepest result that a message with serde_json's limit of 128 can have.
        let mut deep = json!(1);
        for _ in 0..125 {
            deep = json!([deep]);
        }
        let read: Value = serde_json::from_str(&json!({"result": {"d": deep}}).to_string()).unwrap();
        let carrier = json!({"id": 1, "result": {"_meta": {key(): read["result"]}}});
        let restored = restore(carrier.to_string().as_bytes()).unwrap();
        assert!(String::from_utf8(restored).unwrap().contains("\"d\":[[["));
    }

    #[test]
    fn a_message_without_end_breaks_the_body_off() {
        let mut filter = Filter::Events(Events::default());
        let chunk = vec![b'x'; 1 << 20];
        filter.push(b"data: ").unwrap();
        let ends = (0..65).find_map(|_| filter.push(&chunk).err());
        assert_eq!(ends, Some(TooLong));
        // A comment of any length passes.
        let mut filter = Filter::Events(Events::default());
        filter.push(b": ").unwrap();
        assert!((0..65).all(|_| filter.push(&chunk).is_ok_and(|out| out.len() == chunk.len())));
    }

    #[test]
    fn what_is_no_message_does_not_wait() {
        let mut events = Events::default();
        assert_eq!(events.push(b": keep").unwrap(), b": keep");
        assert_eq!(events.push(b"-alive\n\nid: 7").unwrap(), b"-alive\n\nid: 7");
        assert_eq!(events.push(b"\nda").unwrap(), b"\n");
        assert_eq!(events.push(b"te: 1").unwrap(), b"date: 1");
        assert_eq!(events.push(b"\ndata: {}").unwrap(), b"\n");
        assert_eq!(events.push(b"\n").unwrap(), b"data: {}\n");
    }

    #[test]
    fn every_boundary_is_safe() {
        let text = format!(": x\n\nid: 1\ndata: {}\n\n", *CARRIER);
        for at in 0..=text.len() {
            for next in [at, at + 1, text.len() / 2] {
                let (out, _) = read(response("text/event-stream", split(text.as_bytes(), &[at, next])));
                assert_eq!(String::from_utf8(out).unwrap(), text.replace(&*CARRIER, &RAW));
            }
            let (out, _) = read(response("application/json", split(CARRIER.as_bytes(), &[at])));
            assert_eq!(out, RAW.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn events_are_restored_wherever_they_are_split(
            lines in proptest::collection::vec(prop_oneof![
                Just(format!("data: {}\n\n", *CARRIER)),
                Just(format!("id: 1\r\ndata:{}\r\n\r\n", *CARRIER)),
                Just(": keep-alive\n\n".to_owned()),
                Just("data:\nretry: 3000\n\n".to_owned()),
                Just("d\nda\ndata\nevent: data: x\n".to_owned()),
                Just("data: {\"method\":\"x\",\"params\":{\"aster/raw\":[1]}}\n\n".to_owned()),
            ], 0..6),
            unfinished in prop_oneof![Just(String::new()), Just("dat".to_owned()), Just(format!("data: {}", *CARRIER))],
            at in proptest::collection::vec(any::<usize>(), 0..12),
        ) {
            let text = lines.concat() + &unfinished;
            let (out, _) = read(response("text/event-stream", split(text.as_bytes(), &at)));
            prop_assert_eq!(String::from_utf8(out).unwrap(), text.replace(&*CARRIER, &RAW));
        }

        #[test]
        fn bytes_that_are_no_events_pass(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in proptest::collection::vec(any::<usize>(), 0..5)) {
            let (out, _) = read(response("text/event-stream", split(&bytes, &at)));
            prop_assert_eq!(out, bytes);
        }
    }
}
