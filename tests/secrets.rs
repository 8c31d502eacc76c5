//! What counts as a secret: every format is found wherever it turns up, and nothing else is, not in the sources of this
//! repository and not in what real servers list.
//!
//! The secrets are made up at run time by rules that were written from the descriptions of the formats and not from our
//! patterns; no literal of one stands in a source.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use aster_runtime::gate::secrets::{self, Finding, Redactor, Severity};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::{Value, json};

const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const UPPER_DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER_DIGITS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const B62: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const B64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const B64U: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

/// Makes up secrets, the same for the same seed.
struct Dice(u64);

impl Dice {
    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    fn of(&mut self, set: &str, count: usize) -> String {
        (0..count).map(|_| char::from(set.as_bytes()[self.below(set.len())])).collect()
    }

    fn some(&mut self, set: &str, least: usize, most: usize) -> String {
        let count = self.between(least, most);
        self.of(set, count)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|count| self.of(HEX, count)).join("-")
    }

    fn jwt(&mut self) -> String {
        let alg = self.one(&["HS256", "RS256", "ES256", "none"]);
        let header = self.one(&[
            r#"{"alg":"@","typ":"JWT"}"#,
            r#"{"typ":"JWT","alg":"@"}"#,
            r#"{ "alg": "@" , "kid": "1" }"#,
        ]);
        let payload = format!(r#"{{"sub":"{}","iat":17{}}}"#, self.of(B62, 12), self.of(DIGITS, 8));
        let encoded = [header.replace('@', alg), payload].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{}.{}", encoded.join("."), self.of(B64U, 43))
    }

    fn pem(&mut self) -> String {
        let kind = self.one(&[
            "RSA PRIVATE KEY",
            "EC PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        ]);
        let lines: Vec<String> = (0..self.between(2, 12)).map(|_| self.of(B64, 64)).collect();
        let head = match kind {
            "PGP PRIVATE KEY BLOCK" => "\nVersion: GnuPG v2\n",
            "RSA PRIVATE KEY" if self.below(2) == 0 => {
                "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B2C3D4E5F60718293A4B5C6D7E8F9\n"
            }
            _ => "",
        };
        format!(
            "-----BEGIN {kind}-----{head}\n{}\n{}=\n-----END {kind}-----",
            lines.join("\n"),
            self.of(B64, 23)
        )
    }
}

/// A row of the table: what a finding is called, how one is made up, and what it stands beside (`@` is its place).
type Row = (&'static str, fn(&mut Dice) -> String, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("aws-access-key-id", |d| format!("{}{}", d.one(&["AKIA", "ASIA", "ABIA", "ACCA", "A3TX"]), d.of(BASE32, 16)), "@"),
    ("aws-secret-access-key", |d| d.of(B64, 40), "AWS_SECRET_ACCESS_KEY=@"),
    ("aws-secret-access-key", |d| d.of(B64, 40), "aws secret: @"),
    ("aws-bedrock-key", |d| format!("ABSK{}", d.some(B64, 109, 269)), "@"),
    ("google-api-key", |d| format!("AIza{}", d.of(B64U, 35)), "@"),
    ("gemini-api-key", |d| format!("AQ.Ab8RN6{}", d.of(B64U, 44)), "@"),
    ("private-key", Dice::pem, "@"),
    ("google-oauth-client-secret", |d| format!("GOCSPX-{}", d.of(B64U, 28)), "@"),
    ("azure-client-secret", |d| format!("{}{}Q~{}", d.of(B62, 3), d.of(DIGITS, 1), d.some(B62, 31, 34)), "@"),
    ("azure-storage-key", |d| format!("{}==", d.of(B64, 86)), "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@"),
    ("azure-service-bus-key", |d| format!("{}=", d.of(B64, 43)), "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@"),
    ("github-token", |d| format!("{}{}", d.one(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]), d.of(B62, 36)), "@"),
    ("github-token", |d| format!("ghs_{}", d.some(B62, 40, 250)), "@"),
    ("github-fine-grained-token", |d| format!("github_pat_{}", d.of(WORD, 82)), "@"),
    ("gitlab-token", |d| format!("glpat-{}", d.of(B64U, 20)), "@"),
    ("gitlab-token", |d| format!("glpat-{}.{}{}", d.some(B64U, 27, 300), d.of(LOWER_DIGITS, 2), d.of(LOWER_DIGITS, 7)), "@"),
    ("gitlab-token", |d| format!("{}{}", d.one(&["gldt-", "glrt-", "glft-", "glsoat-", "glcbt-"]), d.of(B64U, 20)), "@"),
    ("gitlab-token", |d| format!("glptt-{}", d.of(HEX, 40)), "@"),
    ("gitlab-token", |d| format!("glagent-{}", d.of(B64U, 50)), "@"),
    ("gitlab-token", |d| format!("gloas-{}", d.of(B64U, 64)), "@"),
    ("gitlab-token", |d| format!("glimt-{}", d.of(B64U, 25)), "@"),
    ("slack-token", |d| format!("xoxb-{}-{}-{}", d.some(DIGITS, 10, 13), d.some(DIGITS, 10, 13), d.of(B62, 24)), "@"),
    ("slack-token", |d| format!("xox{}-{}-{}-{}-{}", d.one(&["p", "e", "s"]), d.of(DIGITS, 12), d.of(DIGITS, 12), d.of(DIGITS, 13), d.of(HEX, 32)), "@"),
    ("slack-token", |d| format!("xox{}-2-{}", d.one(&["a", "r"]), d.of(B62, 40)), "@"),
    ("slack-token", |d| format!("xapp-1-A{}-{}-{}", d.of(UPPER_DIGITS, 10), d.of(DIGITS, 13), d.of(HEX, 64)), "@"),
    ("slack-webhook", |d| format!("https://hooks.slack.com/services/T{}/B{}/{}", d.of(UPPER_DIGITS, 10), d.of(UPPER_DIGITS, 10), d.of(B62, 24)), "@"),
    ("stripe-key", |d| format!("{}{}", d.one(&["sk_live_", "rk_live_", "sk_prod_"]), d.some(B62, 10, 99)), "@"),
    ("openai-key", |d| { let half = if d.below(2) == 0 { 58 } else { 74 }; format!("{}{}T3BlbkFJ{}", d.one(&["sk-proj-", "sk-svcacct-", "sk-admin-"]), d.of(B64U, half), d.of(B64U, half)) }, "@"),
    ("openai-key", |d| format!("sk-{}T3BlbkFJ{}", d.of(B62, 20), d.of(B62, 20)), "@"),
    ("sk-key", |d| format!("sk-{}", d.of(B62, 48)), "@"),
    ("anthropic-key", |d| format!("{}{}AA", d.one(&["sk-ant-api03-", "sk-ant-admin01-"]), d.of(B64U, 93)), "@"),
    ("anthropic-key", |d| format!("sk-ant-oat01-{}", d.of(B64U, 93)), "@"),
    ("hugging-face-token", |d| format!("{}{}", d.one(&["hf_", "api_org_"]), d.of(LETTERS, 34)), "@"),
    ("npm-token", |d| format!("npm_{}", d.of(B62, 36)), "@"),
    ("pypi-token", |d| format!("pypi-AgEIcHlwaS5vcmc{}", d.some(B64U, 50, 1000)), "@"),
    ("cargo-registry-token", |d| format!("cio{}", d.of(B62, 32)), "CARGO_REGISTRY_TOKEN=@"),
    ("rubygems-key", |d| format!("rubygems_{}", d.of(HEX, 48)), "@"),
    ("jwt", Dice::jwt, "@"),
    ("age-secret-key", |d| format!("AGE-SECRET-KEY-1{}", d.of(BECH32, 58)), "@"),
    ("twilio-api-key", |d| format!("SK{}", d.of(HEX, 32)), "@"),
    ("twilio-account-sid", |d| format!("AC{}", d.of(HEX, 32)), "TWILIO_ACCOUNT_SID=@"),
    ("sendgrid-key", |d| format!("SG.{}.{}", d.of(B64U, 22), d.of(B64U, 43)), "@"),
    ("mailgun-key", |d| format!("{}{}", d.one(&["key-", "pubkey-"]), d.of(HEX, 32)), "mailgun: @"),
    ("mailchimp-key", |d| format!("{}-us{}", d.of(HEX, 32), d.between(1, 21)), "@"),
    ("databricks-token", |d| format!("dapi{}{}", d.of(HEX, 32), d.one(&["", "-2"])), "@"),
    ("digitalocean-token", |d| format!("{}{}", d.one(&["dop_v1_", "doo_v1_", "dor_v1_"]), d.of(HEX, 64)), "@"),
    ("shopify-token", |d| format!("{}{}", d.one(&["shpat_", "shpca_", "shppa_", "shpss_"]), d.of(HEX, 32)), "@"),
    ("telegram-bot-token", |d| format!("{}{}:AA{}", d.one(&["1", "5", "7"]), d.some(DIGITS, 7, 9), d.of(B64U, 33)), "@"),
    ("discord-bot-token", |d| { let id = format!("{}{}", d.one(&["1", "3", "9"]), d.some(DIGITS, 17, 18)); format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(id), d.of(B64U, 6), d.some(B64U, 27, 38)) }, "@"),
    ("discord-webhook", |d| format!("https://{}/api/webhooks/{}/{}", d.one(&["discord.com", "discordapp.com"]), d.some(DIGITS, 17, 19), d.of(B64U, 68)), "@"),
    ("vault-token", |d| format!("hvs.{}", d.some(B64U, 90, 120)), "@"),
    ("vault-token", |d| format!("hvb.{}", d.some(B64U, 138, 300)), "@"),
    ("vault-token", |d| format!("s.{}", d.of(B62, 24)), "VAULT_TOKEN=@"),
    ("terraform-cloud-token", |d| format!("{}.atlasv1.{}", d.of(B62, 14), d.some(B64U, 60, 70)), "@"),
    ("sentry-token", |d| format!("sntrys_eyJpYXQiO{}", d.of(B64, 120)), "@"),
    ("sentry-token", |d| format!("sntryu_{}", d.of(HEX, 64)), "@"),
    ("linear-key", |d| format!("{}{}", d.one(&["lin_api_", "lin_oauth_"]), d.of(B62, 40)), "@"),
    ("notion-token", |d| format!("ntn_{}{}", d.of(DIGITS, 11), d.of(B62, 35)), "@"),
    ("notion-token", |d| format!("secret_{}", d.of(B62, 43)), "@"),
    ("figma-token", |d| format!("figd_{}", d.some(B64U, 38, 42)), "@"),
    ("postman-key", |d| format!("PMAK-{}-{}", d.of(HEX, 24), d.of(HEX, 34)), "@"),
    ("doppler-token", |d| format!("{}{}", d.one(&["dp.pt.", "dp.st."]), d.of(B62, 43)), "@"),
    ("supabase-token", |d| format!("sbp_{}", d.of(HEX, 40)), "@"),
    ("supabase-token", |d| format!("sb_secret_{}", d.of(B64U, 31)), "@"),
    ("airtable-token", |d| format!("pat{}.{}", d.of(B62, 14), d.of(HEX, 64)), "@"),
    ("atlassian-token", |d| format!("ATATT3{}", d.some(B64U, 180, 190)), "@"),
    ("cloudflare-origin-ca-key", |d| format!("v1.0-{}-{}", d.of(HEX, 24), d.of(HEX, 146)), "@"),
    ("cloudflare-api-token", |d| d.of(B64U, 40), "CLOUDFLARE_API_TOKEN=@"),
    ("heroku-api-key", |d| format!("HRKU-AA{}", d.of(B64U, 58)), "@"),
    ("heroku-api-key", Dice::uuid, "HEROKU_API_KEY=@"),
    ("docker-token", |d| format!("dckr_pat_{}", d.of(B64U, 27)), "@"),
    ("docker-token", |d| format!("dckr_oat_{}", d.of(B64U, 32)), "@"),
    ("grafana-token", |d| format!("glsa_{}_{}", d.of(B62, 32), d.of(HEX, 8)), "@"),
    ("grafana-token", |d| format!("{}{}", d.one(&["glc_", "eyJrIjoi"]), d.some(B64, 70, 400)), "@"),
    ("new-relic-key", |d| format!("NRAK-{}", d.of(UPPER, 27)), "@"),
    ("planetscale-token", |d| format!("{}{}", d.one(&["pscale_tkn_", "pscale_oauth_", "pscale_pw_"]), d.some(B62, 32, 64)), "@"),
    ("pulumi-token", |d| format!("pul-{}", d.of(HEX, 40)), "@"),
    ("prefect-key", |d| format!("pnu_{}", d.of(B62, 36)), "@"),
    ("readme-key", |d| format!("rdme_{}", d.of(LOWER_DIGITS, 70)), "@"),
    ("sourcegraph-token", |d| format!("sgp_{}", d.of(HEX, 40)), "@"),
    ("square-token", |d| format!("sq0atp-{}", d.of(B64U, 22)), "@"),
    ("square-token", |d| format!("EAAA{}", d.of(B64U, 60)), "@"),
    ("brevo-key", |d| format!("xkeysib-{}-{}", d.of(HEX, 64), d.of(B62, 16)), "@"),
    ("neon-api-key", |d| format!("napi_{}", d.of(LOWER_DIGITS, 64)), "@"),
    ("replicate-token", |d| format!("r8_{}", d.of(B62, 37)), "@"),
    ("groq-key", |d| format!("gsk_{}", d.of(B62, 52)), "@"),
    ("openrouter-key", |d| format!("sk-or-v1-{}", d.of(HEX, 64)), "@"),
    ("perplexity-key", |d| format!("pplx-{}", d.of(B62, 48)), "@"),
    ("xai-key", |d| format!("xai-{}", d.some(B62, 70, 120)), "@"),
    ("nvidia-key", |d| format!("nvapi-{}", d.some(B64U, 60, 70)), "@"),
    ("brave-key", |d| format!("BSA{}", d.some(B64U, 24, 40)), "@"),
    ("pinecone-key", |d| format!("pcsk_{}_{}", d.of(B62, 6), d.of(B62, 63)), "@"),
    ("langsmith-key", |d| format!("{}{}_{}", d.one(&["lsv2_pt_", "lsv2_sk_"]), d.of(HEX, 32), d.of(HEX, 10)), "@"),
    ("together-key", |d| format!("tgp_v1_{}", d.of(B64U, 43)), "@"),
    ("vercel-token", |d| format!("{}{}", d.one(&["vcp_", "vck_", "vci_"]), d.of(B62, 56)), "@"),
    ("posthog-key", |d| format!("phx_{}", d.of(B62, 43)), "@"),
    ("tailscale-key", |d| format!("tskey-api-{}-{}", d.of(B62, 16), d.of(B62, 32)), "@"),
    ("1password-service-account", |d| format!("ops_eyJ{}", d.of(B64U, 400)), "@"),
    ("1password-secret-key", |d| format!("A3-{}", [6, 6, 5, 5, 5, 5].map(|count| d.of(UPPER_DIGITS, count)).join("-")), "@"),
    ("fly-token", |d| format!("fo1_{}", d.of(B64U, 43)), "@"),
    ("fly-token", |d| format!("fm2_{}", d.of(B64, 300)), "@"),
    ("apify-token", |d| format!("apify_api_{}", d.of(B62, 36)), "@"),
    ("render-api-key", |d| format!("rnd_{}", d.of(B62, 28)), "@"),
    ("firecrawl-key", |d| format!("fc-{}", d.of(HEX, 32)), "@"),
    ("exa-key", Dice::uuid, "EXA_API_KEY=@"),
    ("tavily-key", |d| format!("tvly-{}{}", d.one(&["", "dev-"]), d.of(B62, 32)), "@"),
    ("jina-key", |d| format!("jina_{}", d.of(B64U, 60)), "@"),
    ("url-credentials", |d| d.some(B62, 8, 40), "https://someone:@@git.corp.net/repo"),
    ("database-url", |d| d.some(B62, 8, 40), "postgres://app:@@db.corp.net:5432/app"),
    ("database-url", |d| d.some(B62, 8, 40), "mongodb+srv://app:@@cluster0.corp.net/app"),
    ("database-url", |d| d.some(B62, 8, 40), "redis://:@@cache.corp.net:6379"),
    ("authorization-header", |d| d.some(B64U, 20, 200), "Authorization: Bearer @"),
    ("authorization-header", |d| STANDARD.encode(format!("{}:{}", d.of(LOWER_DIGITS, 8), d.some(B62, 8, 30))), "Authorization: Basic @"),
    ("npm-auth-token", |d| d.some(B62, 20, 60), "//registry.corp.net/:_authToken=@"),
    ("kubernetes-secret", |d| STANDARD.encode(d.some(B62, 8, 40)), "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  password: @\n"),
    ("kubernetes-secret", |d| STANDARD.encode(d.some(B62, 8, 40)), "apiVersion: v1\ndata:\n  password: @\nkind: Secret\n"),
];

/// What only counts where somebody asks for it.
const LOW: &[Row] = &[
    ("stripe-test-key", |d| format!("{}{}", d.one(&["sk_test_", "rk_test_"]), d.some(B62, 10, 99)), "@"),
    ("named-secret", |d| format!("aB3{}", d.some(B62, 20, 150)), "api_key = \"@\""),
    ("named-secret", |d| format!("aB3{}", d.some(B62, 20, 150)), "password: @"),
];

fn redactor() -> Redactor {
    Redactor::default().with_formats(Severity::Medium)
}

fn kinds(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|finding| finding.kind).collect()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Everywhere that a secret may stand, given with what has to stand beside it.
fn texts(beside: &str) -> Vec<(&'static str, String)> {
    vec![
        ("alone", beside.to_owned()),
        ("a sentence", format!("Take this one: {beside} and write to ¡nobody! about it.")),
        ("lines", format!("first\n{beside}\nlast")),
        ("JSON", json!({"note": beside, "n": 1}).to_string()),
        ("JSON in JSON", json!({ "note": json!({ "inner": beside }).to_string() }).to_string()),
        ("a header", format!("GET / HTTP/1.1\r\nX-Api-Key: {beside}\r\nAccept: */*\r\n")),
        ("a shell", format!("export THE_KEY='{beside}'; run")),
        ("a URL", format!("https://host.corp.net/path?q={}&page=2", encoded(beside))),
        (
            "a URL in a URL",
            format!("https://host.corp.net/?next={}", encoded(&format!("/x?q={}", encoded(beside)))),
        ),
    ]
}

/// What may be left of a secret that was replaced: nothing that anybody could use.
fn assert_gone(redacted: &str, secret: &str, what: &str) {
    for form in [
        secret.to_owned(),
        encoded(secret),
        encoded(&encoded(secret)),
        json!(secret).to_string().trim_matches('"').to_owned(),
    ] {
        assert!(!redacted.contains(&form), "{what}: {redacted}");
    }
}

fn check(redactor: &Redactor, (kind, make, beside): &Row, seed: u64) {
    let secret = make(&mut Dice(seed));
    let beside = beside.replacen('@', &secret, 1);
    for (place, text) in texts(&beside) {
        let what = format!("{kind} in {place}: {text}");
        assert!(
            kinds(&redactor.find(&text)).iter().any(|found| found == kind),
            "{what}: {:?}",
            redactor.find(&text)
        );
        assert_gone(&redactor.redact(&text), &secret, &what);
    }
    for value in [
        json!({"a": [1, {"b": beside}]}),
        json!({ "headers": { "x": [beside] } }),
        json!({ beside.clone(): true }),
    ] {
        let places = redactor.scan(value.as_object().unwrap()).listed;
        assert!(places.iter().any(|place| place.kind == *kind), "{kind}: {value}: {places:?}");
        assert!(places.iter().all(|place| !place.pointer.contains(&secret)), "{places:?}");
        assert_gone(&redactor.redact_value(&value).to_string(), &secret, kind);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_format_is_found_wherever_it_stands(seed in any::<u64>()) {
        let redactor = redactor();
        for row in TABLE {
            check(&redactor, row, seed);
        }
        let all = Redactor::default().with_formats(Severity::Low);
        for row in LOW {
            check(&all, row, seed);
        }
    }

    /// Cut anywhere, in array items or fields that stand side by side.
    #[test]
    fn what_is_cut_in_pieces_is_found(seed in any::<u64>(), cuts in proptest::collection::vec(any::<usize>(), 1..4)) {
        let redactor = redactor();
        let whole = TABLE.iter().filter(|(_, _, beside)| *beside == "@");
        for (kind, make, _) in whole {
            let secret = make(&mut Dice(seed));
            let mut cuts: BTreeSet<usize> = cuts.iter().map(|cut| 1 + cut % (secret.len() - 1)).collect();
            cuts.extend([0, secret.len()]);
            let cuts: Vec<usize> = cuts.into_iter().collect();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &secret[cut[0]..cut[1]]).collect();
            let fields: serde_json::Map<String, Value> =
                pieces.iter().enumerate().map(|(at, piece)| (format!("part{at}"), json!(piece))).collect();
            let once: Vec<String> = pieces.iter().map(|piece| encoded(piece)).collect();
            let twice: Vec<String> = once.iter().map(|piece| encoded(piece)).collect();
            // Of a longer text only the ends are put together.
            for pieces in [once, twice].iter().filter(|pieces| pieces.iter().all(|piece| piece.len() <= 1024)) {
                let value = json!({ "parts": pieces });
                let places = redactor.scan(value.as_object().unwrap()).listed;
                prop_assert!(places.iter().any(|place| place.kind == *kind), "{kind}: {value}: {places:?}");
            }
            for value in [json!({"parts": ["before", pieces, "after"]}), json!({"first": "x", "rest": fields, "last": "y"})] {
                let places = redactor.scan(value.as_object().unwrap()).listed;
                prop_assert!(places.iter().any(|place| place.kind == *kind), "{kind}: {value}: {places:?}");
                let redacted = redactor.redact_value(&value);
                let left: String = redacted.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
                let longest = pieces.iter().max_by_key(|piece| piece.len()).unwrap();
                let longest: String = longest.chars().filter(char::is_ascii_alphanumeric).collect();
                prop_assert!(longest.len() < 8 || !left.contains(&longest), "{kind}: {redacted}");
            }
        }
    }

    /// A known value is found in whatever encoding, and in the middle of a longer text that is encoded with it.
    #[test]
    fn known_values_are_found_in_every_form(
        secret in "[ -~]{12,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
    ) {
        let redactor = Redactor::new([&secret]);
        let inside = format!("{before}{secret}{after}");
        let encodings = [
            STANDARD.encode(&inside),
            URL_SAFE_NO_PAD.encode(&inside),
            encoded(&inside),
            encoded(&encoded(&inside)),
            inside.bytes().map(|byte| format!("{byte:02x}")).collect(),
            json!(inside).to_string(),
            inside.clone(),
        ];
        for text in encodings {
            let value = json!({"q": text});
            let places = redactor.scan(value.as_object().unwrap()).listed;
            prop_assert_eq!(places.len(), 1, "{}", text);
            prop_assert_eq!(places[0].kind, secrets::CONFIGURED);
        }
    }

    #[test]
    fn nothing_makes_it_panic(text in "\\PC{0,200}", head in prop::sample::select(secrets::needles()), tail in "[%\\PC]{0,60}") {
        let all = Redactor::new(["hunter2hunter2"]).with_formats(Severity::Low);
        let text = format!("{text}{head}{tail}");
        let redacted = all.redact(&text).into_owned();
        prop_assert!(text.len() < 8 || redacted.len() <= text.len() + 10 * all.find(&text).len());
        let value = json!({ &text: [text, head, tail] });
        let _ = all.scan(value.as_object().unwrap());
    }
}

/// Those whose beginning says all are found behind a `_` too, as in a name of direct mode; the others are not looked for in
/// the middle of a word, nor is any behind a letter.
#[test]
fn a_token_that_is_glued_to_a_word_is_found() {
    let redactor = redactor();
    let rows = |kind: &'static str| TABLE.iter().filter(move |row| row.0 == kind);
    for kind in [
        "github-token",
        "github-fine-grained-token",
        "gitlab-token",
        "npm-token",
        "slack-token",
        "stripe-key",
        "vault-token",
        "digitalocean-token",
        "anthropic-key",
        "sendgrid-key",
    ] {
        assert!(rows(kind).next().is_some(), "{kind}");
        for (_, make, beside) in rows(kind).filter(|row| row.2 == "@") {
            let secret = beside.replacen('@', &make(&mut Dice(7)), 1);
            for before in ["peer__", "_", "call_the_"] {
                let text = format!("no tool `{before}{secret}` is known");
                assert_eq!(
                    redactor.redact(&text),
                    format!("no tool `{before}[redacted]` is known"),
                    "{kind}"
                );
            }
            assert!(!kinds(&redactor.find(&format!("x{secret}"))).contains(&kind), "{kind}");
        }
    }
    for text in ["my_npm_config_registry_of_the_whole_package", "the_hf_model_for_conditional_generation_x"] {
        assert_eq!(redactor.find(text), [], "{text}");
    }
}

/// Every row of ours has a row here, so that none is without a test.
#[test]
fn every_kind_is_in_the_table() {
    let tested: BTreeSet<&str> = TABLE.iter().chain(LOW).map(|row| row.0).collect();
    let known: BTreeSet<&str> = secrets::kinds().collect();
    assert_eq!(known, tested);
}

/// Documents and examples are full of what only looks like a secret.
#[test]
fn placeholders_and_look_alikes_are_left_alone() {
    let all = redactor();
    for text in [
        "AKIAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY with aws",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "export GITHUB_TOKEN=ghp_your_token_here_your_token_here_0000",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
        "Authorization: Bearer <token>, Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
        "postgres://user:password@localhost/db, mongodb://${USER}:${PASS}@host, redis://:your-password@cache",
        "-----BEGIN RSA PRIVATE KEY----- is the first line of such a file.",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "npm_config_registry npm_lifecycle_event_of_the_package_x hf_model_for_conditional_generation_x",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b in the aws repository",
        "at 12345678:00 on 2026-11-30T10:00:00Z, key-value, sk-learn, pk_live_1234, phc_public",
        "eyJ is how base64 of {\" begins; eyJhbGciOi.eyJzdWIi.sig is too short",
        "https://example.com/path/to/some/long/page?with=a&query=of&some=length#and-a-fragment",
        "the basic authentication-mechanism-of-the-protocol and bearer authentication_of_everything_else",
        "ssh://git@github.com:22/aster-tools/aster.git",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "kind: ConfigMap\ndata:\n  password: YWRtaW5hZG1pbg==\n",
    ] {
        assert_eq!(all.find(text), [], "{text}");
    }
}

fn tracked() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.ok().filter(|output| output.status.success() && !output.stdout.is_empty());
    let Some(listed) = listed else { return walked(root) };
    let names = String::from_utf8(listed.stdout).unwrap();
    names.split_terminator('\0').map(|name| root.join(name)).filter(|path| path.is_file()).collect()
}

/// The same where there is no repository: everything but what cargo builds.
fn walked(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("target") && !path.ends_with(".git"));
    paths.flat_map(|path| if path.is_dir() { walked(&path) } else { vec![path] }).collect()
}

/// Nothing is reported in what developers of an ordinary project have on their disks.
#[test]
fn the_sources_of_this_repository_have_none() {
    let redactor = redactor();
    let mut files = 0;
    // What the search for secrets is fuzzed with has some.
    for path in
        tracked().into_iter().filter(|path| !path.components().any(|part| part.as_os_str() == "seeds"))
    {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        files += 1;
        if let Some(finding) = redactor.find(&text).into_iter().next() {
            let line = text[..finding.range.start].lines().count();
            panic!("{}:{line}: {} {:?}", path.display(), finding.kind, &text[finding.range]);
        }
    }
    assert!(files > 200, "{files}");
}

/// Nor in what real servers list. A few lists are committed; `ASTER_CAPTURED_TOOLS` names a folder with more.
#[test]
fn the_lists_of_real_servers_have_none() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools");
    let folders = [Some(committed), env::var_os("ASTER_CAPTURED_TOOLS").map(PathBuf::from)];
    let redactor = redactor();
    let mut tools = 0;
    for folder in folders.into_iter().flatten() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(redactor.find(&text), [], "{}", path.display());
            for tool in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
                tools += 1;
                assert_eq!(redactor.scan(tool.as_object().unwrap()).listed, [], "{}: {tool}", path.display());
            }
        }
    }
    assert!(tools > 10, "{tools}");
}
