//! Reading what a hook writes: nothing of it is an approval, another argument or another result unless it is JSON that says
//! so, and what says no is no approval whatever it says besides.
#![no_main]

use aster_runtime::gate::hooks::{Event, Wish, review_of, verdict_of};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|stdout: &[u8]| {
    let verdict = verdict_of(stdout);
    let reviews = [Event::PostToolUse, Event::PostToolUseFailure].map(|event| review_of(event, stdout));

    let text = std::str::from_utf8(stdout);
    if text.is_ok_and(|text| text.trim_ascii().is_empty()) {
        assert_eq!(verdict, Ok(Default::default()));
        return;
    }
    if !text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok()) {
        assert!(verdict.is_err() && reviews.iter().all(Result::is_err));
        return;
    }
    // What is nested too deeply is passed over where nobody reads it, and fails where somebody does.
    let Ok(said) = serde_json::from_slice::<Value>(stdout) else { return };
    if !said.is_object() {
        assert!(verdict.is_err() && reviews.iter().all(Result::is_err), "{said}");
        return;
    }
    let specific = &said["hookSpecificOutput"];
    let decision = |value: &Value, of: &[&str]| value.as_str().is_some_and(|word| of.contains(&word));
    let blocks = said["continue"] == false || decision(&said["decision"], &["block", "deny"]);

    if let Ok(verdict) = verdict {
        let denies = blocks || specific["permissionDecision"] == "deny";
        assert_eq!(denies, matches!(verdict.wish, Some(Wish::Deny(_))), "{said}");
        let asks = !denies && specific["permissionDecision"] == "ask";
        assert_eq!(asks, matches!(verdict.wish, Some(Wish::Ask(_))), "{said}");
        if let Some(Wish::Allow(_)) = verdict.wish {
            let allows = specific["permissionDecision"] == "allow"
                || (specific["permissionDecision"].is_null() && decision(&said["decision"], &["approve", "allow"]));
            assert!(allows, "{said}");
        }
        if let Some(arguments) = verdict.arguments {
            assert_eq!(Value::Object(arguments), specific["updatedInput"]);
        }
    }
    for review in reviews.into_iter().flatten() {
        assert_eq!(blocks, review.withhold.is_some(), "{said}");
        if review.result.is_some() {
            let replaces = ["updatedToolOutput", "updatedMCPToolOutput"];
            assert!(replaces.iter().any(|name| !specific[name].is_null()), "{said}");
        }
    }
});
