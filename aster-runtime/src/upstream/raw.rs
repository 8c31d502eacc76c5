//! A client transport over a pair of byte streams that loses nothing of what a server says.
//!
//! Constraints it imposes on itself: only the replies of the handshake are decoded into the SDK's closed types, every
//! other result passes to its request as the JSON that arrived; what is no message is skipped and never answered; a
//! line that exceeds the cap ends the connection, since the reply that it may have been would otherwise be waited for;
//! splitting takes time linear in the bytes; `receive` may be cancelled at any point without losing any.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, InitializeResult,
    JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerNotification, ServerRequest,
    ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::diagnostics::Diagnostics;
use super::outbox::Outbox;
use super::requests::{Progress, Reply, Requests};

/// The longest line that a server may write, in bytes without its line feed.
pub(super) const MAX_LINE: usize = 16 << 20;

/// How much of the message of a report of progress is kept, in characters.
const MAX_MESSAGE: usize = 1_000;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

type Incoming = RxJsonRpcMessage<RoleClient>;
type Outgoing = TxJsonRpcMessage<RoleClient>;

/// One line of a byte stream, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// The beginning of a line that exceeds the cap; the rest is dropped.
    TooLong(Vec<u8>),
}

/// Splits a byte stream into lines, however it arrives.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins in `buffer`.
    start: usize,
    /// Up to where `buffer` has been searched for a line feed.
    searched: usize,
    /// The rest of a line that was too long is being dropped.
    skipping: bool,
    cap: usize,
}

impl Lines {
    pub(super) fn new(cap: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, skipping: false, cap }
    }

    /// Takes in what arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Moved once per push and only after a line was taken, so what moves is no longer than one earlier push.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line that is complete, or too long to become so.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let feed = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n');
            let Some(end) = feed.map(|at| self.searched + at) else {
                self.searched = self.buffer.len();
                return self.overflow();
            };
            let line = self.start..end;
            self.start = end + 1;
            self.searched = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.cap {
                return Some(Line::TooLong(self.buffer[line.start..line.start + self.cap].to_vec()));
            }
            return Some(Line::Whole(self.buffer[line].to_vec()));
        }
    }

    /// What is left when the stream has ended.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let rest = self.buffer.split_off(self.start);
        *self = Self { skipping: self.skipping, ..Self::new(self.cap) };
        (!rest.is_empty() && !self.skipping).then_some(Line::Whole(rest))
    }

    fn overflow(&mut self) -> Option<Line> {
        if self.skipping {
            self.clear();
            return None;
        }
        if self.buffer.len() - self.start <= self.cap {
            return None;
        }
        let line = self.buffer[self.start..self.start + self.cap].to_vec();
        self.clear();
        self.skipping = true;
        Some(Line::TooLong(line))
    }

    fn clear(&mut self) {
        self.buffer = Vec::new();
        self.start = 0;
        self.searched = 0;
    }
}

/// What a connection hears, and how it ended. Shared by the transport and its user.
#[derive(Debug)]
pub(super) struct Tap {
    /// Whether resources and prompts are of interest, and not its tools alone.
    pub(super) whole: bool,
    /// The server said that a list of what is of interest changed.
    pub(super) list_changed: Notify,
    /// The connection has ended.
    pub(super) ended: CancellationToken,
    /// A reply to `server/discover` came after the handshake had given up on it, and it was no error.
    pub(super) modern_after_all: OnceLock<()>,
    /// What is to be answered.
    pub(super) requests: Requests,
    failure: OnceLock<String>,
    diagnostics: Arc<Diagnostics>,
}

impl Tap {
    pub(super) fn new(diagnostics: Arc<Diagnostics>) -> Arc<Self> {
        Arc::new(Self::of(diagnostics, false))
    }

    /// One of all that a server has.
    #[cfg(feature = "serve")]
    pub(super) fn of_all(diagnostics: Arc<Diagnostics>) -> Arc<Self> {
        Arc::new(Self::of(diagnostics, true))
    }

    fn of(diagnostics: Arc<Diagnostics>, whole: bool) -> Self {
        Self {
            whole,
            list_changed: Notify::new(),
            ended: CancellationToken::new(),
            modern_after_all: OnceLock::new(),
            requests: Requests::default(),
            failure: OnceLock::new(),
            diagnostics,
        }
    }

    /// What the server did that ended the connection, where it was more than closing it.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    pub(super) fn fail(&self, reason: String) {
        // The first failure is the cause; what follows is its consequence.
        let _ = self.failure.set(reason);
        self.end();
    }

    /// Ends the connection, and with it whatever waits for a reply.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.requests.end();
    }

    fn report_progress(&self, params: Option<&Value>) {
        let field = |key| params.and_then(|params| params.get(key));
        let Some(token) = field("progressToken").and_then(number) else { return };
        let report = Progress {
            done: field("progress").and_then(Value::as_f64).unwrap_or_default(),
            total: field("total").and_then(Value::as_f64),
            // Reports wait, and a stranger's have any length.
            message: field("message")
                .and_then(Value::as_str)
                .map(|message| message.chars().take(MAX_MESSAGE).collect()),
        };
        self.requests.report(token, report);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Discover,
    Initialize,
}

/// The transport. See the module's documentation.
pub(super) struct RawTransport<R> {
    reader: R,
    at_end: bool,
    lines: Lines,
    chunk: Vec<u8>,
    ready: VecDeque<Incoming>,
    outbox: Arc<Outbox>,
    handshake: Option<(RequestId, Handshake)>,
    /// The id of a `server/discover` that the handshake gave up on.
    given_up: Option<RequestId>,
    tap: Arc<Tap>,
}

impl<R: AsyncRead + Send + Unpin> RawTransport<R> {
    /// A transport that reads `reader` and writes to `outbox`.
    pub(super) fn new(reader: R, outbox: Arc<Outbox>, tap: Arc<Tap>) -> Self {
        Self {
            reader,
            at_end: false,
            lines: Lines::new(MAX_LINE),
            chunk: vec![0; CHUNK],
            ready: VecDeque::new(),
            outbox,
            handshake: None,
            given_up: None,
            tap,
        }
    }

    fn take_line(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(_) => {
                let reason =
                    format!("it wrote a line of more than {} MiB on its standard output", MAX_LINE >> 20);
                self.tap.fail(reason);
                return;
            }
        };
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line).trim_ascii();
        if line.is_empty() {
            return;
        }
        // Most junk is plain text, which needs no parser.
        if !matches!(line[0], b'{' | b'[') {
            self.tap.diagnostics.junk(line);
            return;
        }
        let understood = match parse(line) {
            Ok(Value::Array(batch)) => {
                // All of them are taken, whatever becomes of the others.
                let of = batch.len();
                of > 0 && batch.into_iter().filter_map(|message| self.take_value(message)).count() == of
            }
            Ok(value) => self.take_value(value).is_some(),
            Err(error) => self.take_unreadable(line, &error).is_some(),
        };
        if !understood {
            self.tap.diagnostics.junk(line);
        }
    }

    /// `None` where it is no message.
    fn take_value(&mut self, value: Value) -> Option<()> {
        match value {
            Value::Object(message) if message.get("jsonrpc").and_then(Value::as_str) == Some("2.0") => {
                self.take_message(message)
            }
            _ => None,
        }
    }

    /// `None` where it is no message after all.
    fn take_message(&mut self, mut message: Map<String, Value>) -> Option<()> {
        let id = message.get("id").and_then(request_id);
        if let Some(method) = message.get("method") {
            let method = method.as_str()?.to_owned();
            return match id {
                Some(id) => self.take_request(id, method, message),
                None => self.take_notification(&method, message),
            };
        }
        let id = id.map(answered_id);
        // Some servers write `"error": null` beside a result.
        if let Some(error) = message.remove("error").filter(|error| !error.is_null()) {
            self.take_error(id, error_data(error));
            return Some(());
        }
        let result = message.remove("result")?;
        self.take_result(id?, result);
        Some(())
    }

    fn take_request(&mut self, id: RequestId, method: String, mut message: Map<String, Value>) -> Option<()> {
        let params = message.remove("params").filter(|params| !params.is_null());
        let known = json!({ "method": method, "params": params.clone().unwrap_or_else(|| json!({})) });
        // What the SDK cannot read goes to it as a request that it does not know, so that the server gets an answer.
        let request = serde_json::from_value::<ServerRequest>(known)
            .unwrap_or_else(|_| ServerRequest::CustomRequest(CustomRequest::new(method, params)));
        self.ready.push_back(JsonRpcMessage::request(request, id));
        Some(())
    }

    fn take_notification(&mut self, method: &str, mut message: Map<String, Value>) -> Option<()> {
        match method {
            "notifications/progress" => self.tap.report_progress(message.get("params")),
            "notifications/tools/list_changed" => self.tap.list_changed.notify_one(),
            "notifications/resources/list_changed" | "notifications/prompts/list_changed"
                if self.tap.whole =>
            {
                self.tap.list_changed.notify_one();
            }
            "notifications/message" => self.tap.diagnostics.log(message.get("params")),
            "notifications/cancelled" => {
                message.remove("jsonrpc");
                let notification =
                    serde_json::from_value::<ServerNotification>(Value::Object(message)).ok()?;
                self.ready.push_back(JsonRpcMessage::notification(notification));
            }
            // The rest concerns what Aster does not use, or is the server's own invention.
            _ => {}
        }
        Some(())
    }

    fn take_result(&mut self, id: RequestId, result: Value) {
        let Err(Ok(result)) = self.answer(&id, Ok(result)) else { return };
        let Some((expected, handshake)) = self.handshake.clone() else {
            self.reply(id, ServerResult::CustomResult(CustomResult(result)));
            return;
        };
        if expected != id {
            self.take_late(&id, true);
            return;
        }
        self.handshake = None;
        let decoded = match handshake {
            Handshake::Discover => discover_result(&result).map(ServerResult::DiscoverResult),
            Handshake::Initialize => initialize_result(&result).map(ServerResult::InitializeResult),
        };
        match decoded {
            Some(decoded) => self.reply(id, decoded),
            None => self.take_error(
                Some(id),
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the reply to the handshake is malformed", None),
            ),
        }
    }

    fn take_error(&mut self, id: Option<RequestId>, error: ErrorData) {
        let reply = Err(error);
        let unasked = match &id {
            Some(id) => self.answer(id, reply),
            None => Err(reply),
        };
        let Err(Err(error)) = unasked else { return };
        if let (Some((expected, _)), Some(id)) = (&self.handshake, &id) {
            if expected != id {
                self.take_late(id, false);
                return;
            }
            self.handshake = None;
        }
        self.ready.push_back(JsonRpcMessage::error(error, id));
    }

    /// Hands a reply to the request that waits for it; gives back one that the SDK may wait for.
    fn answer(&self, id: &RequestId, reply: Reply) -> Result<(), Reply> {
        match id {
            RequestId::Number(id) => self.tap.requests.reply(*id, reply),
            RequestId::String(_) => Err(reply),
        }
    }

    /// A reply that the handshake no longer waits for. The SDK gives `server/discover` ten seconds, which a package
    /// runner with a cold cache exceeds, and takes its late reply for one to `initialize`.
    fn take_late(&mut self, id: &RequestId, success: bool) {
        if success && self.given_up.as_ref() == Some(id) {
            let _ = self.tap.modern_after_all.set(());
        }
    }

    /// A line that looks like JSON and is not, or not such as can be kept: nested too deeply, a number out of range.
    fn take_unreadable(&mut self, line: &[u8], error: &serde_json::Error) -> Option<()> {
        /// Reads any depth, since what is ignored is not recursed into.
        #[derive(Deserialize)]
        struct Reply {
            id: Value,
            #[serde(rename = "result")]
            _result: IgnoredAny,
        }
        let reply: Reply = serde_json::from_slice(line).ok()?;
        let id = answered_id(request_id(&reply.id)?);
        let message = format!("the server's reply cannot be read: {error}");
        self.take_error(Some(id), ErrorData::new(ErrorCode::PARSE_ERROR, message, None));
        Some(())
    }

    fn reply(&mut self, id: RequestId, result: ServerResult) {
        self.ready.push_back(JsonRpcMessage::Response(JsonRpcResponse {
            jsonrpc: JsonRpcVersion2_0,
            id,
            result,
        }));
    }

    /// Notes what the transport must know of a message that is about to be sent.
    fn note(&mut self, message: &Outgoing) {
        let JsonRpcMessage::Request(request) = message else { return };
        let handshake = match &request.request {
            ClientRequest::DiscoverRequest(_) => Handshake::Discover,
            ClientRequest::InitializeRequest(_) => Handshake::Initialize,
            _ => return,
        };
        self.given_up = self.handshake.replace((request.id.clone(), handshake)).map(|(id, _)| id);
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for RawTransport<R> {
    type Error = io::Error;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.note(&message);
        // Written here and not in the future: the SDK polls those in any order. That a line cannot be written ends the
        // connection, which whoever waits for an answer hears of.
        std::future::ready(serde_json::to_vec(&message).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.outbox.send(&line, false)
        }))
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.tap.failure().is_some() {
                return None;
            }
            if let Some(line) = self.lines.next() {
                self.take_line(line);
                continue;
            }
            if self.at_end {
                self.tap.end();
                return None;
            }
            let read = tokio::select! {
                biased;
                read = self.reader.read(&mut self.chunk) => read,
                () = self.tap.ended.cancelled() => return None,
            };
            match read {
                Ok(count) if count > 0 => self.lines.push(&self.chunk[..count]),
                // A pipe that fails has nothing more to say than one that ended.
                _ => {
                    self.at_end = true;
                    if let Some(line) = self.lines.finish() {
                        self.take_line(line);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.tap.end();
        self.outbox.close();
        Ok(())
    }
}

impl<R> Drop for RawTransport<R> {
    fn drop(&mut self) {
        self.tap.end();
        self.outbox.close();
    }
}

/// Reads JSON that is UTF-8, and as well as can be done JSON that is not: a server that writes Latin-1 for one `é`
/// still answers.
fn parse(line: &[u8]) -> serde_json::Result<Value> {
    match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)),
    }
}

fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(id) => Some(RequestId::String(id.as_str().into())),
        id => number(id).map(RequestId::Number),
    }
}

/// The id of a request of ours, all of which are numbers: some servers answer with it as a string.
fn answered_id(id: RequestId) -> RequestId {
    match &id {
        RequestId::String(text) => text.parse().map_or(id.clone(), RequestId::Number),
        RequestId::Number(_) => id,
    }
}

/// A whole number, however it is written: as text, or by a server whose numbers all have a point as `1000.0`.
fn number(value: &Value) -> Option<i64> {
    let pointed = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    value.as_i64().or_else(|| Some(pointed()? as i64)).or_else(|| value.as_str()?.parse().ok())
}

/// A JSON-RPC error, however it is written.
fn error_data(error: Value) -> ErrorData {
    let code = error.get("code").and_then(number).and_then(|code| i32::try_from(code).ok());
    let message = match (error.get("message"), &error) {
        (Some(Value::String(message)), _) | (None, Value::String(message)) => message.clone(),
        _ => error.to_string(),
    };
    ErrorData::new(code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode), message, error.get("data").cloned())
}

/// The reply to `initialize`, read strictly or else reduced to what Aster uses of it.
fn initialize_result(result: &Value) -> Option<InitializeResult> {
    if let Ok(strict) = InitializeResult::deserialize(result) {
        return Some(strict);
    }
    let version = result.get("protocolVersion").and_then(Value::as_str)?;
    let text = |pointer| result.pointer(pointer).and_then(Value::as_str);
    InitializeResult::deserialize(json!({
        "protocolVersion": version,
        "capabilities": tools_capability(result),
        "serverInfo": {
            "name": text("/serverInfo/name").unwrap_or_default(),
            "title": text("/serverInfo/title"),
            "version": text("/serverInfo/version").unwrap_or_default(),
        },
        "instructions": text("/instructions"),
    }))
    .ok()
}

/// The reply to `server/discover`, likewise.
fn discover_result(result: &Value) -> Option<DiscoverResult> {
    if let Ok(strict) = DiscoverResult::deserialize(result) {
        return Some(strict);
    }
    let versions = result.get("supportedVersions")?.as_array()?;
    DiscoverResult::deserialize(json!({
        "resultType": "complete",
        "supportedVersions": versions.iter().filter(|version| version.is_string()).collect::<Vec<_>>(),
        "capabilities": tools_capability(result),
        "instructions": result.get("instructions").and_then(Value::as_str),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": result.get("_meta").filter(|meta| meta.is_object()),
    }))
    .ok()
}

fn tools_capability(result: &Value) -> Value {
    let changes = result.pointer("/capabilities/tools/listChanged").and_then(Value::as_bool);
    json!({ "tools": { "listChanged": changes.unwrap_or_default() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    fn lines(cap: usize, pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<Line> {
        let mut lines = Lines::new(cap);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(&piece);
            while let Some(line) = lines.next() {
                found.push(line);
            }
        }
        found.extend(lines.finish());
        found
    }

    /// Cuts bytes at places that come from `cuts`.
    fn pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut cuts: Vec<_> =
            cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect()
    }

    proptest! {
        #[test]
        fn how_bytes_arrive_makes_no_difference(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'x'), any::<u8>()], 0..200),
            cuts in prop::collection::vec(any::<usize>(), 0..40),
            cap in 1_usize..50,
        ) {
            let expected: Vec<_> = bytes
                .split(|&byte| byte == b'\n')
                .map(|line| match line.len() > cap {
                    true => Line::TooLong(line[..cap].to_vec()),
                    false => Line::Whole(line.to_vec()),
                })
                .collect();
            // After the last line feed there is a line only if there is something.
            let count = expected.len() - usize::from(bytes.last().is_none_or(|&byte| byte == b'\n'));
            prop_assert_eq!(lines(cap, pieces(&bytes, &cuts)), &expected[..count]);
        }

        #[test]
        fn numbers_are_kept_exactly(number in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL) {
            let text = json!(number).to_string();
            prop_assert_eq!(parse(text.as_bytes()).unwrap().as_f64(), Some(number));
        }
    }

    #[test]
    fn a_long_line_in_small_pieces_takes_linear_time() {
        // Quadratic work on this would be some 10^12 steps.
        let long = vec![b'x'; 4 << 20];
        let found = lines(MAX_LINE, long.chunks(4).map(<[u8]>::to_vec).chain([b"\n".to_vec()]));
        assert_eq!(found, [Line::Whole(long)]);
    }

    fn transport<R: AsyncRead + Send + Unpin>(reader: R, tap: &Arc<Tap>) -> RawTransport<R> {
        RawTransport::new(reader, Outbox::new(tokio::io::sink(), Arc::clone(tap)), Arc::clone(tap))
    }

    async fn receive_all(bytes: &[u8]) -> (Vec<Incoming>, Arc<Tap>) {
        let tap = Tap::new(Arc::new(Diagnostics::new("test", [])));
        let mut transport = transport(bytes, &tap);
        let mut received = Vec::new();
        while let Some(message) = transport.receive().await {
            received.push(message);
        }
        (received, tap)
    }

    proptest! {
        #[test]
        fn no_input_harms(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(receive_all(&bytes));
        }

        #[test]
        fn no_message_harms(message in r#"\{"jsonrpc":"2.0"(,"(id|method|params|result|error)":(1|null|"1"|"a"|\{\}|\[\]|\{"progressToken":1\}|\{"requestId":1\}|"notifications/progress"|"notifications/cancelled"|"ping")){0,5}\}"#) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(receive_all(message.as_bytes()));
        }
    }

    /// Lines that are none of the replies: any bytes, JSON that is no message, and what only looks like a line's end.
    fn junk() -> impl Strategy<Value = Vec<u8>> {
        let literal = prop::sample::select(vec![
            b"".to_vec(),
            b"\r".to_vec(),
            b"\xEF\xBB\xBF".to_vec(),
            b"npm warn deprecated".to_vec(),
            b"{".to_vec(),
            b"[]".to_vec(),
            b"[1, {\"jsonrpc\": \"2.0\"}]".to_vec(),
            b"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}".to_vec(),
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}".to_vec(),
            b"{\"jsonrpc\":\"2.0\",\"id\":1}".to_vec(),
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/its/own\"}".to_vec(),
        ]);
        let bytes = any::<u8>().prop_filter("one line", |byte| *byte != b'\n');
        prop_oneof![literal, prop::collection::vec(bytes, 0..60)]
    }

    /// What a transport with this cap receives of pieces that arrive one by one, and how the connection failed.
    fn received(cap: usize, pieces: Vec<Vec<u8>>) -> (Vec<RequestId>, Option<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            let server = async move {
                for piece in pieces {
                    // The client may have hung up.
                    if theirs.write_all(&piece).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let tap = Tap::new(Arc::new(Diagnostics::new("test", [])));
            let mut transport = transport(ours, &tap);
            transport.lines = Lines::new(cap);
            let client = async move {
                let mut ids = Vec::new();
                while let Some(message) = transport.receive().await {
                    match message {
                        JsonRpcMessage::Response(response) => ids.push(response.id),
                        other => panic!("{other:?}"),
                    }
                }
                ids
            };
            let (ids, ()) = tokio::join!(client, server);
            (ids, tap.failure().map(str::to_owned))
        })
    }

    fn reply(id: i64) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": id, "result": {"text": "\u{e9}"}}).to_string().into_bytes()
    }

    proptest! {
        #[test]
        fn replies_arrive_in_order_whatever_stands_between_them(
            between in prop::collection::vec(prop::collection::vec(junk(), 0..4), 1..8),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n"]), 32),
            cuts in prop::collection::vec(any::<usize>(), 0..40),
        ) {
            let count = i64::try_from(between.len()).unwrap();
            let lines = between.into_iter().zip(0..).flat_map(|(junk, id)| junk.into_iter().chain([reply(id)]));
            let bytes: Vec<u8> =
                lines.zip(ends.iter().cycle()).flat_map(|(line, end)| [line, end.as_bytes().to_vec()].concat()).collect();
            let (ids, failure) = received(MAX_LINE, pieces(&bytes, &cuts));
            prop_assert_eq!(failure, None);
            prop_assert_eq!(ids, (0..count).map(RequestId::Number).collect::<Vec<_>>());
        }

        #[test]
        fn a_line_above_the_cap_ends_the_connection_after_what_came_before(
            before in 0_i64..5,
            after in 0_i64..5,
            excess in 1_usize..300,
            cuts in prop::collection::vec(any::<usize>(), 0..40),
        ) {
            let cap = 100;
            let lines = (0..before).map(reply).chain([b"{".repeat(cap + excess)]).chain((0..after).map(reply));
            let bytes: Vec<u8> = lines.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
            let (ids, failure) = received(cap, pieces(&bytes, &cuts));
            prop_assert_eq!(ids, (0..before).map(RequestId::Number).collect::<Vec<_>>());
            prop_assert!(failure.is_some_and(|failure| failure.contains("a line of more than")));
        }
    }

    #[tokio::test]
    async fn shapes_of_messages() {
        let input = concat!(
            "{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{\"b\":1,\"a\":2},\"error\":null}\n",
            "[{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":\"plain\"},{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]\n",
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":99999999999,\"message\":\"big\"}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"ping\"}\n",
            "{\"jsonrpc\":\"1.0\",\"id\":6,\"result\":{}}\n",
            "{\"id\":7,\"result\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":8.0,\"result\":{}}\n",
        );
        let (received, tap) = receive_all(input.as_bytes()).await;
        let written: Vec<_> =
            received.iter().map(|message| serde_json::to_string(message).unwrap()).collect();
        assert_eq!(
            written,
            [
                r#"{"jsonrpc":"2.0","id":3,"result":{"b":1,"a":2}}"#,
                r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"plain"}}"#,
                r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"big"}}"#,
                r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#,
                r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            ]
        );
        assert_eq!(tap.diagnostics.lines().len(), 2);
    }
}
