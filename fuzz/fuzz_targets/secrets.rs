//! Looking for secrets in any text and any JSON: what is found lies within the text and apart, and what was known is gone
//! from what is left.
#![no_main]

use std::sync::LazyLock;

use aster_runtime::gate::secrets::{Redactor, Severity};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KNOWN: &str = "hunter2-and-more";

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([KNOWN]).with_formats(Severity::Low));

fuzz_target!(|text: &str| {
    let found = REDACTOR.find(text);
    let mut end = 0;
    for finding in &found {
        assert!(finding.range.start >= end && finding.range.start < finding.range.end, "{found:?}");
        end = finding.range.end;
    }
    assert!(end <= text.len());
    let redacted = REDACTOR.redact(text);
    assert!(!redacted.contains(KNOWN), "{redacted}");

    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else { return };
    let places = REDACTOR.scan(&object);
    match REDACTOR.redact_object(&object) {
        None => assert!(places.is_empty()),
        Some((redacted, same)) => {
            assert_eq!(places, same);
            assert!(!Value::Object(redacted).to_string().contains(KNOWN));
        }
    }
});
