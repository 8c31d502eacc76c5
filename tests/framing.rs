//! What a client may write on the standard input of a server that is served: no line is a reason to stop answering.

use std::time::Duration;

use aster_runtime::serve::{Shape, over};
use aster_runtime::{Host, Profile, catalogue, mcp_tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Says hello.
#[mcp_tool(tier = Standard)]
fn hello() -> &'static str {
    "hello"
}

/// How long an answer may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// The id of the request after the noise.
const LAST: &str = "after the noise";

/// A line that is no message, or none that this server knows.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let written = [
        "",
        " ",
        "\u{feff}",
        "\r",
        "null",
        "[]",
        "{}",
        "12",
        "\"text\"",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nobody/knows\",\"params\":[1]}",
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":10,\"error\":{\"code\":-1,\"message\":\"no\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody_knows\",\"params\":{\"a\":1}}",
        "[{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"ping\"}]",
        "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"tools/list\"",
        "{\"jsonrpc\":\"1.0\",\"id\":13,\"method\":\"tools/list\"}",
        "Server listening on port 3000",
    ];
    let bytes = proptest::collection::vec(any::<u8>(), 0..64);
    prop_oneof![
        proptest::sample::select(written.to_vec()).prop_map(|line| line.as_bytes().to_vec()),
        bytes,
        (1_usize..2_000).prop_map(|depth| "[".repeat(depth).into_bytes()),
        (1_usize..40).prop_map(|length| "x".repeat(length * 1024).into_bytes()),
    ]
    .prop_map(|line| line.into_iter().filter(|byte| *byte != b'\n').collect())
}

/// The lines that the server writes until the answer to the request after the noise.
async fn talk(noise: &[Vec<u8>], cuts: usize, modern: bool) -> Vec<Value> {
    talk_after(&[], noise, cuts, modern).await
}

/// The same, where the input begins with these bytes.
async fn talk_after(first: &[u8], noise: &[Vec<u8>], cuts: usize, modern: bool) -> Vec<Value> {
    let host = Host::builder().catalogue(catalogue![hello::TOOL]).build().await.expect("a host");
    let (near, far) = tokio::io::duplex(4096);
    let streams = tokio::io::split(far);
    let server =
        tokio::spawn(over(streams, host, Profile::new("test"), Shape::Bridge, CancellationToken::new()));
    let (input, mut output) = tokio::io::split(near);
    let client = json!({"name": "noisy", "version": "1"});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut bytes = first.to_vec();
    let mut line = |line: &[u8]| bytes.extend([line, b"\n"].concat());
    if modern {
        let discover =
            json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}});
        line(discover.to_string().as_bytes());
    } else {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        line(initialize.to_string().as_bytes());
        line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
    noise.iter().for_each(|noise| line(noise));
    let params = if modern { json!({ "_meta": meta }) } else { json!({}) };
    let last = json!({"jsonrpc": "2.0", "id": LAST, "method": "tools/list", "params": params});
    line(last.to_string().as_bytes());
    let writer = tokio::spawn(async move {
        for piece in bytes.chunks(cuts) {
            output.write_all(piece).await.expect("the server reads on");
        }
        output
    });
    let mut lines = BufReader::new(input).lines();
    let mut written = Vec::new();
    while !written.last().is_some_and(|message: &Value| message["id"] == LAST) {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("an answer in time").expect("text");
        written.push(serde_json::from_str(&line.expect("the server goes on")).expect("JSON"));
    }
    drop(writer.await.expect("all is written"));
    drop(lines);
    timeout(PATIENCE, server).await.expect("it ends with its input").expect("no panic").expect("no error");
    written
}

/// The errors among the answers to a line, before the answer to a request after it.
async fn answers(line: &[u8], modern: bool) -> Vec<Value> {
    let written = talk(&[line.to_vec()], 8 << 10, modern).await;
    assert_eq!(written.last().expect("an answer")["result"]["tools"][0]["name"], "aster_mcp");
    written.into_iter().filter(|message| message.get("error").is_some()).collect()
}

#[tokio::test]
async fn a_line_that_is_no_json_is_answered_with_a_parse_error_and_the_next_one_is_served() {
    let deep = ["[".repeat(128), "]".repeat(128)].concat();
    let long = ["\"", &"x".repeat(16 << 20), "\""].concat();
    for modern in [false, true] {
        for (line, why) in [
            (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"x\":\"\xff\"}"[..], "not JSON"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,", "not JSON"),
            (b"Server listening on port 3000", "not JSON"),
            (deep.as_bytes(), "nested"),
            (long.as_bytes(), "longer than 16 MiB"),
        ] {
            let errors = answers(line, modern).await;
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert_eq!((&errors[0]["error"]["code"], &errors[0]["id"]), (&json!(-32700), &Value::Null));
            let told = errors[0]["error"]["message"].as_str().expect("a message");
            assert!(told.contains(why), "{told}");
        }
        // JSON that is no message is another error, and what is empty is none.
        assert_eq!(answers(&deep.as_bytes()[1..255], modern).await[0]["error"]["code"], -32600);
        for empty in ["", " ", "\r", "\u{feff}", "\u{feff} \r"] {
            assert_eq!(answers(empty.as_bytes(), modern).await, [] as [Value; 0], "{empty:?}");
        }
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_a_message() {
    let ping = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"marked\",\"method\":\"ping\"}";
    let written = talk(&[ping.as_bytes().to_vec()], 8 << 10, false).await;
    assert!(written.iter().any(|message| message["id"] == "marked" && message["result"] == json!({})));
    // Nor of the first one, with which some editors' pipes begin.
    let written = talk_after("\u{feff}".as_bytes(), &[], 1, false).await;
    assert_eq!(written[0]["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_line_that_is_no_json_is_no_beginning_of_a_session() {
    for modern in [false, true] {
        let written = talk_after(b"hello\n", &[], 8 << 10, modern).await;
        assert_eq!(written[0]["error"]["code"], -32700);
        assert_eq!(written[1]["id"], 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn noise_is_survived_and_answered_at_most_once_a_line(
        noise in proptest::collection::vec(noise(), 0..12),
        cuts in 1_usize..200,
        modern in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let written = runtime.block_on(talk(&noise, cuts, modern));
        let last = written.last().expect("an answer");
        prop_assert_eq!(&last["result"]["tools"][0]["name"], "aster_mcp", "{}", last);
        prop_assert!(written.len() <= noise.len() + 2, "{} answers to {} lines", written.len(), noise.len());
    }
}
