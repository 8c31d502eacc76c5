use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn short_values_are_words_and_stay() {
    assert_eq!(Redactor::new(["true", ""]).redact("it is true"), "it is true");
}

#[test]
fn a_key_of_several_lines_is_found_line_by_line() {
    let redactor = Redactor::new(["-----BEGIN KEY-----\nsupersecretline2\nx\n"]);
    assert_eq!(redactor.redact("it wrote: supersecretline2 x"), "it wrote: [redacted] x");
}

#[test]
fn what_is_known_to_be_secret_has_no_least_length() {
    let redactor = Redactor::of_values([&json!({"pin": [1234, "abc", ""], "on": true})]);
    assert_eq!(redactor.redact("abc failed with 1234, true"), "[redacted] failed with [redacted], true");
}

#[test]
fn secrets_that_overlap_leave_nothing() {
    let redactor = Redactor::new(["aaaa1111", "1111bbbbbbbbbbbb"]);
    assert_eq!(redactor.redact("x aaaa1111bbbbbbbbbbbb y"), "x [redacted] y");
    assert_eq!(redactor.redact("aaaa1111aaaa1111"), "[redacted][redacted]");
}

#[test]
fn one_by_one_finds_the_same() {
    let known = Known::OneByOne(vec!["hunter2hunter2".to_owned(), "é and à".to_owned()]);
    let redactor = Redactor { known, formats: None };
    assert_eq!(redactor.redact("ä hunter2hunter2 é and à b"), "ä [redacted] [redacted] b");
}

#[test]
fn every_form_and_every_place() {
    let secret = "s3cr\"et va/lue";
    let redactor = Redactor::new([secret]);
    let value = json!({"a": [secret, {"b": STANDARD.encode(secret)}], secret: "c", "n": 1});
    let redacted = json!({"a": [REDACTED, {"b": REDACTED}], REDACTED: "c", "n": 1});
    assert_eq!(redactor.redact_value(&value), redacted);
    let finds_any = |value: &Value| redactor.finds_any(value.as_object().unwrap());
    assert!(finds_any(&json!({ "a": [[secret]] })) && finds_any(&json!({ secret: 1 })));
    assert!(!finds_any(&redacted));
    for form in
        [&value.to_string()[..], "x=s3cr%22et%20va%2Flue", "x=s3cr%22et+va%2Flue", "s3cr%22et%20va%2flue"]
    {
        assert!(!redactor.redact(form).contains("s3cr"), "{form}");
    }
    let redactor = Redactor::new(["AbC/dEf-Ghi"]);
    for form in [
        "AbC%2FdEf-Ghi",
        "AbC%2fdEf-Ghi",
        "AbC%2FdEf%2DGhi",
        "AbC%252FdEf-Ghi",
        "4162432f6445662d476869",
        "4162432F6445662D476869",
    ] {
        assert_eq!(redactor.redact(form), REDACTED, "{form}");
    }
    // As the password of an HTTP login, somewhere in the middle of the base64.
    for user in ["a", "ab", "abc"] {
        let header = format!("Basic {}", STANDARD.encode(format!("{user}:AbC/dEf-Ghi")));
        assert!(redactor.redact(&header).contains(REDACTED), "{header}");
    }
}

#[test]
fn a_place_is_a_pointer_that_shows_no_secret() {
    let redactor = Redactor::new(["hunter2hunter2"]);
    let value = json!({
        "a/b": {"~": ["x", "hunter2hunter2"]},
        "is hunter2hunter2": 1,
        "cut": {"one": "hunter2", "two": "hunter2", "three": null},
        "number": 12345678,
    });
    let places = redactor.scan(value.as_object().unwrap());
    let pointers: Vec<&str> = places.listed.iter().map(|place| place.pointer.as_str()).collect();
    assert_eq!(pointers, ["/a~1b/~0/1", "/is [redacted]", "/cut/one", "/cut/two"]);
    let (redacted, same) = redactor.redact_object(value.as_object().unwrap()).unwrap();
    assert_eq!(places, same);
    let expected = json!({
        "a/b": {"~": ["x", REDACTED]},
        "is [redacted]": 1,
        "cut": {"one": REDACTED, "two": REDACTED, "three": null},
        "number": 12345678,
    });
    assert_eq!(Value::Object(redacted).to_string(), expected.to_string());
    let redacted = Redactor::new(["12345678"]).redact_value(&value);
    assert_eq!(redacted["number"], REDACTED);
}

#[test]
fn what_is_cut_and_encoded_is_found() {
    let redactor = Redactor::new(["hunter2_hunter2"]).with_formats(Severity::Medium);
    let (a, b) = ("Ab3dE5gH7jK9mN1pQ2", "rS4tU6vW8xY0zB2cD4");
    for (first, second) in [
        (format!("ghp%5F{a}"), b.to_owned()),
        (format!("ghp%255F{a}"), b.to_owned()),
        (format!("ghp_{a}"), "%72S4tU6vW8xY0zB2cD4".to_owned()),
        // The escape is cut too.
        ("ghp%".to_owned(), format!("5F{a}{b}")),
        ("say ghp%5".to_owned(), format!("F{a}{b} again")),
        ("hunter2%5F".to_owned(), "hunter2".to_owned()),
        ("hunter2%2".to_owned(), "55Fhunter2".to_owned()),
    ] {
        for value in [json!({"parts": ["100%", first, second, "5%"]}), json!({"a": first, "b": second})] {
            let places = redactor.scan(value.as_object().unwrap());
            assert_eq!(places.listed.len(), 2, "{value}: {places:?}");
            let redacted = redactor.redact_value(&value).to_string();
            assert!(!redacted.contains("hunter2") && !redacted.contains("zB2cD4"), "{redacted}");
        }
    }
    // Also far from other escapes, and behind what has characters of several bytes.
    let words: Vec<String> = (0..3000).map(|n| format!("é-{n}")).collect();
    let far = words.concat();
    for between in [json!(far), json!(words)] {
        let value = json!({"parts": ["%41", between, "hunter2%5F", "hunter2", between, "%41", "x"]});
        assert_eq!(redactor.scan(value.as_object().unwrap()).listed.len(), 2);
    }
    assert_eq!(redactor.scan(json!({"a": "ghp%5F", "b": "hunter2%5G"}).as_object().unwrap()).listed, []);
}

/// Each piece before it could be its beginning.
#[test]
fn what_is_cut_behind_thousands_of_pieces_is_found() {
    let redactor = Redactor::default().with_formats(Severity::Medium);
    let token = ["eyJhbGciOiJI", "UzI1NiJ9.eyJzdWIi", "OiIxMjM0NTYifQ.c2lnbmF0dXJlLW9m", "LXNvbWUta2luZA"];
    for before in [0, 1, 20_000] {
        let pieces = [vec!["ey"; before], token.to_vec()].concat();
        let redacted = redactor.redact_value(&json!(pieces));
        assert_eq!(redacted[before + 2], REDACTED, "{before} before it");
    }
}

#[test]
fn what_is_cut_across_keys_is_found() {
    let redactor = Redactor::new(["swordfish-and-more"]).with_formats(Severity::Medium);
    let (a, b) = ("Ab3dE5gH7jK9mN1pQ2", "rS4tU6vW8xY0zB2cD4");
    for (first, second) in [
        (format!("ghp_{a}"), b.to_owned()),
        (format!("ghp%5F{a}"), b.to_owned()),
        ("AKIAQ3ZK7TWX".to_owned(), "2LHB5NYC".to_owned()),
        ("swordfish-".to_owned(), "and-more".to_owned()),
        ("swordfish%2D".to_owned(), "and-more".to_owned()),
    ] {
        let value = json!({"x": {&first: 1, &second: [true]}, "rest": "y"});
        let places = redactor.scan(value.as_object().unwrap());
        let pointers: Vec<&str> = places.listed.iter().map(|place| place.pointer.as_str()).collect();
        assert_eq!(pointers, ["/x/[redacted]", "/x/[redacted]"], "{value}");
        assert_eq!(
            redactor.redact_value(&value).to_string(),
            json!({"x": {REDACTED: 1, "[redacted]_": [true]}, "rest": "y"}).to_string()
        );
    }
    // Names in a row are none.
    let settings = json!({
        "jina_model": 1, "max_tokens": 2, "timeout_seconds": 3, "retries": 4, "cloudflare": {
            "account_id": 1, "zone_id": 2, "api_base_url": 3, "purge_everything": 4,
        }, "npm_config": 5, "registryurl": 6, "strictsslverification": 7, "offline": 8,
    });
    assert_eq!(redactor.scan(settings.as_object().unwrap()).listed, []);
}

#[test]
fn two_keys_that_become_one_stay_two() {
    let redactor = Redactor::new(["hunter2hunter2", "swordfish1"]);
    let value = json!({"hunter2hunter2": 1, "swordfish1": 2, "b": 3});
    let redacted = redactor.redact_value(&value);
    assert_eq!(redacted, json!({"[redacted]": 1, "[redacted]_": 2, "b": 3}));
}

#[test]
fn the_name_of_a_value_tells_what_it_is() {
    let redactor = Redactor::default().with_formats(Severity::Medium);
    let secret = ["wJ7rXUtnFEMI/K7MDENG", "bPxRfiCYkq9TzLw3aQ2d"].concat();
    for value in [
        json!({ "aws_secret_access_key": secret }),
        json!({ "SecretAccessKey": secret }),
        json!({ "aws": {"secret": secret} }),
        json!({ "AWS_SECRET_ACCESS_KEY": [secret] }),
    ] {
        let places = redactor.scan(value.as_object().unwrap());
        assert_eq!(places.listed.len(), 1, "{value}");
        assert!(!redactor.redact_value(&value).to_string().contains(&secret), "{value}");
    }
    assert_eq!(redactor.scan(json!({ "etag": secret }).as_object().unwrap()).listed, []);
}

proptest! {
    #[test]
    fn no_secret_survives(secret in "\\PC{8,40}", before in any::<String>(), after in any::<String>()) {
        let redacted = format!("{before}{REDACTED}{after}");
        // What stands around it may hold the secret again, across the seam.
        prop_assume!(!redacted.contains(&secret));
        let text = format!("{before}{secret}{after}");
        prop_assert!(!Redactor::new([&secret]).redact(&text).contains(&secret));
    }
}
