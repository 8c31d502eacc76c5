//! The formats of secrets that can be told by their looks: the table, and nothing else.
//!
//! A row says what to look for first (a few bytes that one automaton finds for all rows at once), the pattern that is
//! tried where they stand, and what speaks against a match. Patterns are matched against bytes, anchored at a
//! candidate's first byte, and free of look-around. What a needle's own bytes could be part of has an upper bound, so that
//! a text which is nothing but needles is read in a time linear in its length too.
//!
//! Sources: the vendors' documentation, and the rules of gitleaks, betterleaks, ripsecrets and detect-secrets as of
//! July 2026, of which the facts were taken and no text.

use super::Severity;

/// One format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    /// What a finding is called.
    pub(super) kind: &'static str,
    pub(super) severity: Severity,
    /// The bytes that give a candidate away.
    pub(super) needles: &'static [&'static str],
    /// Whether they do so in small letters, in capitals and with a capital in front.
    pub(super) any_case: bool,
    /// Where a candidate begins, seen from a needle.
    pub(super) begins: Begins,
    /// The whole of it; group 1, where there is one, is the secret.
    pub(super) pattern: &'static str,
    /// Bytes that go on with it, besides letters, digits and `_`: it is none where one of them stands next to it. `=` counts
    /// behind it only, since a name and `=` may stand before.
    pub(super) edge: &'static [u8],
    pub(super) checks: &'static [Check],
    /// How far apart two tries are, in bytes, where one is expensive.
    pub(super) apart: usize,
}

/// Where a candidate begins, seen from a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// With the needle, which is the beginning of a word.
    With,
    /// With the word that goes on, or up to, the needle.
    Word,
    /// With the needle, whatever stands before and after: the pattern looks for its own ends.
    Anywhere,
    /// This many bytes before the needle.
    At(usize),
    /// At most this many bytes before the needle.
    Before(usize),
    /// At most this many bytes after the needle.
    After(usize),
}

/// What a match must stand up to besides looking like no placeholder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Check {
    /// At least this much entropy, in bits a byte.
    Entropy(f32),
    /// Letters of both cases: a digest in hexadecimal and a path in small letters are none.
    MixedCase,
    /// A digit, and letters of both cases: prose is none.
    Varied,
    /// One of these words, in any case, in the text just before it.
    Near(&'static [&'static str]),
    /// A JSON Web Token: its first part is a JSON object with `alg` (RFC 7515).
    Jwt,
    /// The first part is a number in base64.
    NumberInBase64,
    /// Base64 of a name and a password (RFC 7617).
    UserAndPassword,
    /// A password in a URL: people write `user:password@host` for what is none.
    UrlPassword,
    /// Not this one, which is public.
    Not(&'static str),
    /// No filter of placeholders: the text is long, and a run of one letter is an ordinary part of it.
    Long,
}

use Begins::{After, Anywhere, At, Before, With, Word};
use Check::{Entropy, Jwt, Long, MixedCase, Near, Not, NumberInBase64, UrlPassword, UserAndPassword, Varied};
use Severity::{Low, Medium};

const fn row(kind: &'static str, needles: &'static [&'static str], pattern: &'static str) -> Format {
    let (severity, any_case) = (Severity::High, false);
    Format { kind, severity, needles, any_case, begins: With, pattern, edge: b"", checks: &[], apart: 0 }
}

impl Format {
    const fn begins(self, begins: Begins) -> Self {
        Self { begins, ..self }
    }

    const fn checks(self, checks: &'static [Check]) -> Self {
        Self { checks, ..self }
    }

    const fn apart(self, apart: usize) -> Self {
        Self { apart, ..self }
    }

    const fn any_case(self) -> Self {
        Self { any_case: true, ..self }
    }

    const fn edge(self, edge: &'static [u8]) -> Self {
        Self { edge, ..self }
    }

    const fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }
}

const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";

/// The key of Azure's storage emulator, which is in its documentation.
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// First the clouds, then code and packages, then services, then models, then what has no vendor.
pub(super) const FORMATS: &[Format] = &[
    row(
        "aws-access-key-id",
        &["AKIA", "ASIA", "ABIA", "ACCA", "A3T"],
        r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}",
    )
    .checks(&[Entropy(3.0)]),
    // Thirty bytes in base64, which need no padding.
    row(
        "aws-secret-access-key",
        &[
            "aws",
            "secret_access_key",
            "secret-access-key",
            "secret access key",
            "secretAccessKey",
            "SecretAccessKey",
        ],
        "[A-Za-z0-9/+]{40}",
    )
    .begins(After(20))
    .any_case()
    .edge(b"/+=")
    .checks(&[MixedCase, Entropy(4.0)]),
    row("aws-bedrock-key", &["ABSK"], "ABSK[A-Za-z0-9+/]{109,269}={0,2}"),
    row("google-api-key", &["AIza"], r"AIza[\w-]{35}"),
    row("gemini-api-key", &["AQ.Ab8RN6"], r"AQ\.Ab8RN6[\w-]{44}"),
    row("google-oauth-client-secret", &["GOCSPX-"], r"GOCSPX-[\w-]{28}"),
    row("azure-client-secret", &["Q~"], r"[A-Za-z0-9_~.]{3}\dQ~[\w~.-]{31,34}").begins(At(4)),
    row("azure-storage-key", &["AccountKey="], "AccountKey=([A-Za-z0-9+/]{86}==)")
        .checks(&[Not(EMULATOR_KEY)]),
    row("azure-service-bus-key", &["SharedAccessKey="], "SharedAccessKey=([A-Za-z0-9+/]{43,44}=?)")
        .checks(&[Near(&["endpoint=sb://"])]),
    row("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], "do[opr]_v1_[0-9a-f]{64}"),
    row("cloudflare-origin-ca-key", &["v1.0-"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    row("cloudflare-api-token", &["cloudflare"], r"[\w-]{40}")
        .begins(After(30))
        .any_case()
        .edge(b"-")
        .checks(&[MixedCase, Entropy(4.0)]),
    row("heroku-api-key", &["HRKU-AA"], r"HRKU-AA[\w-]{58}"),
    row(
        "heroku-api-key",
        &["heroku_api_key", "heroku-api-key", "heroku api key", "herokuApiKey"],
        UUID,
    )
    .begins(After(8))
    .any_case()
    .edge(b"-"),
    row("fly-token", &["fo1_", "fm1_", "fm1r_", "fm1a_", "fm2_"], r"fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,2000}={0,3}"),
    row("render-api-key", &["rnd_"], "rnd_[A-Za-z0-9]{28}").checks(&[Entropy(3.5)]),
    row("vercel-token", &["vcp_", "vck_", "vci_"], "vc[pki]_[A-Za-z0-9]{56}"),
    row("planetscale-token", &["pscale_tkn_", "pscale_oauth_", "pscale_pw_"], r"pscale_(?:tkn|oauth|pw)_[\w.=-]{32,64}"),
    row("supabase-token", &["sbp_", "sb_secret_"], r"sbp_[A-Za-z0-9]{40}|sb_secret_[\w-]{31}"),
    row("neon-api-key", &["napi_"], "napi_[A-Za-z0-9]{64}"),
    row("databricks-token", &["dapi"], r"dapi[0-9a-f]{32}(?:-\d)?"),
    row("terraform-cloud-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}").begins(At(14)),
    row("pulumi-token", &["pul-"], "pul-[0-9a-f]{40}"),
    row("vault-token", &["hvs.", "hvb."], r"hvs\.[\w-]{90,120}|hvb\.[\w-]{138,300}"),
    row("vault-token", &["vault"], r"s\.[A-Za-z0-9]{24}").begins(After(20)).any_case().checks(&[Entropy(3.0)]),
    row("doppler-token", &["dp.pt.", "dp.st."], r"dp\.[ps]t\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{43}"),
    row("tailscale-key", &["tskey-api-", "tskey-auth-", "tskey-client-"], "tskey-(?:api|auth|client)-[A-Za-z0-9]{1,40}-[A-Za-z0-9]{20,80}"),
    row("1password-service-account", &["ops_eyJ"], "ops_eyJ[A-Za-z0-9+/_-]{200,4000}={0,3}"),
    row(
        "1password-secret-key",
        &["A3-"],
        "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    row("github-token", &["ghp_", "gho_", "ghr_"], "gh[por]_[A-Za-z0-9]{36}"),
    // The newer ones hold more, in parts.
    row("github-token", &["ghu_", "ghs_"], r"gh[us]_[\w.-]{35,520}[A-Za-z0-9]"),
    row("github-fine-grained-token", &["github_pat_"], r"github_pat_\w{82}"),
    row("gitlab-token", &["glpat-"], r"glpat-(?:[\w-]{27,300}\.[0-9a-z]{2}[0-9a-z]{7}|[\w-]{20})"),
    row(
        "gitlab-token",
        &["gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-", "glagent-", "gloas-", "glimt-"],
        r"gl(?:dt|rt|ft|soat)-[\w-]{20}|glcbt-(?:[A-Za-z0-9]{1,5}_)?[\w-]{20}|glptt-[0-9a-f]{40}|glagent-[\w-]{50}|gloas-[\w-]{64}|glimt-[\w-]{25}",
    ),
    row("npm-token", &["npm_"], "npm_[A-Za-z0-9]{36}"),
    row("npm-auth-token", &["_authToken="], r#"_authToken=["']?([^\s"'$&]{16,500})"#).begins(Anywhere),
    row("pypi-token", &["pypi-AgEIcHlwaS5vcmc"], r"pypi-AgEIcHlwaS5vcmc[\w-]{50,1000}"),
    row("cargo-registry-token", &["cio"], "cio[A-Za-z0-9]{32}").checks(&[Near(&["cargo", "crates", "registry"])]),
    row("rubygems-key", &["rubygems_"], "rubygems_[0-9a-f]{48}"),
    row("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_(?:pat_[\w-]{27}|oat_[\w-]{32})"),
    row("sourcegraph-token", &["sgp_"], "sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}"),
    row("slack-token", &["xoxb-"], r"xoxb-\d{10,13}-\d{10,13}[A-Za-z0-9-]{0,100}"),
    row(
        "slack-token",
        &["xoxp-", "xoxe-", "xoxa-", "xoxr-", "xoxs-", "xapp-"],
        r"xox[pears]-(?:\d{1,20}-){1,3}[A-Za-z0-9-]{8,200}|xox[ar]-[A-Za-z0-9]{8,48}|xapp-\d-[A-Z0-9]{1,40}-\d{1,20}-[A-Za-z0-9]{8,200}",
    ),
    row(
        "slack-webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}",
    ),
    row(
        "stripe-key",
        &["sk_live_", "rk_live_", "sk_prod_", "rk_prod_"],
        "[rs]k_(?:live|prod)_[A-Za-z0-9]{10,99}",
    ),
    row("stripe-test-key", &["sk_test_", "rk_test_"], "[rs]k_test_[A-Za-z0-9]{10,99}").severity(Low),
    row("square-token", &["sq0atp-"], r"sq0atp-[\w-]{22}"),
    row("square-token", &["EAAA"], r"EAAA[\w-]{60}").checks(&[Entropy(4.0)]),
    row("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    // A key of Twilio's is short and has no sign of its own but two letters: hexadecimal, and a small digit to begin with.
    row("twilio-api-key", TWILIO_KEY, "SK[0-9a-f]{32}"),
    row("twilio-account-sid", TWILIO_ACCOUNT, "AC[0-9a-f]{32}").checks(&[Near(&["twilio"])]),
    row("sendgrid-key", &["SG."], r"SG\.[\w-]{22}\.[\w-]{43}"),
    row("mailgun-key", &["key-", "pubkey-"], "(?:pub)?key-[0-9a-f]{32}").checks(&[Near(&["mailgun"])]),
    row(
        "mailchimp-key",
        &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"],
        r"[0-9a-f]{32}-us\d{1,2}",
    )
    .begins(At(32)),
    row("brevo-key", &["xkeysib-"], "xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    row("telegram-bot-token", &[":AA"], r"\d{8,10}:AA[\w-]{33}").begins(Before(10)),
    row(
        "discord-bot-token",
        &["MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT", "Oj", "Oz"],
        r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}",
    )
    .checks(&[NumberInBase64]),
    row(
        "discord-webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{60,100}",
    ),
    row("sentry-token", &["sntrys_eyJpYXQiO", "sntryu_"], "sntrys_eyJpYXQiO[A-Za-z0-9+/_=-]{40,1000}|sntryu_[0-9a-f]{64}"),
    row("linear-key", &["lin_api_", "lin_oauth_"], "lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    row("notion-token", &["ntn_"], r"ntn_\d{11}[A-Za-z0-9]{35}"),
    row("notion-token", &["secret_"], "secret_[A-Za-z0-9]{43}").checks(&[Entropy(3.8)]),
    row("figma-token", &["figd_"], r"figd_[\w-]{38,42}"),
    row("postman-key", &["PMAK-"], "PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    row("airtable-token", &["pat"], r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    row("atlassian-token", &["ATATT3"], r"ATATT3[\w=-]{180,400}"),
    row("grafana-token", &["glsa_"], "glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    row("grafana-token", &["glc_", "eyJrIjoi"], "glc_[A-Za-z0-9+/]{32,400}={0,2}|eyJrIjoi[A-Za-z0-9+/]{70,400}={0,2}"),
    row("new-relic-key", &["NRAK-"], "NRAK-[A-Z0-9]{27}"),
    row("prefect-key", &["pnu_"], "pnu_[A-Za-z0-9]{36}"),
    row("readme-key", &["rdme_"], "rdme_[a-z0-9]{70}"),
    row("posthog-key", &["phx_"], "phx_[A-Za-z0-9]{32,64}"),
    row("apify-token", &["apify_api_"], "apify_api_[A-Za-z0-9-]{30,46}"),
    row(
        "openai-key",
        &["T3BlbkFJ"],
        r"sk-(?:(?:proj|svcacct|admin)-(?:[\w-]{74}|[\w-]{58})T3BlbkFJ(?:[\w-]{74}|[\w-]{58})|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
    )
    .begins(Before(86)),
    // OpenAI's first ones, and those of several that copied them.
    row("sk-key", &["sk-"], "sk-[A-Za-z0-9]{48}").severity(Medium).checks(&[Entropy(3.8)]),
    row("anthropic-key", &["sk-ant-api03-", "sk-ant-admin01-"], r"sk-ant-(?:api03|admin01)-[\w-]{93}AA"),
    row("anthropic-key", &["sk-ant-oat01-"], r"sk-ant-oat01-[\w-]{40,120}"),
    row("hugging-face-token", &["hf_", "api_org_"], "(?:hf|api_org)_[A-Za-z]{34}").checks(&[Entropy(3.9)]),
    row("replicate-token", &["r8_"], "r8_[A-Za-z0-9]{37}"),
    row("groq-key", &["gsk_"], "gsk_[A-Za-z0-9]{52}"),
    row("openrouter-key", &["sk-or-v1-"], "sk-or-v1-[0-9a-f]{64}"),
    row("perplexity-key", &["pplx-"], "pplx-[A-Za-z0-9]{48}"),
    row("xai-key", &["xai-"], r"xai-[\w-]{70,120}"),
    row("nvidia-key", &["nvapi-"], r"nvapi-[\w-]{60,70}"),
    row("brave-key", &["BSA"], r"BSA[\w-]{24,40}").checks(&[MixedCase, Entropy(3.5)]),
    row("pinecone-key", &["pcsk_"], r"pcsk_\w{40,100}"),
    row("langsmith-key", &["lsv2_pt_", "lsv2_sk_"], "lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    row("together-key", &["tgp_v1_"], r"tgp_v1_[\w-]{40,50}"),
    row("firecrawl-key", &["fc-"], "fc-[0-9a-f]{32}"),
    row("tavily-key", &["tvly-"], r"tvly-[\w-]{20,60}").checks(&[Entropy(3.0)]),
    row("jina-key", &["jina_"], r"jina_[\w-]{30,80}").checks(&[Entropy(3.5)]),
    row("exa-key", &["exa_api_key", "exa-api-key", "exa api key", "exaApiKey"], UUID).begins(After(8)).any_case().edge(b"-"),
    row("private-key", &["-----BEGIN"], PRIVATE_KEY).begins(Anywhere).checks(&[Long]),
    row("age-secret-key", &["AGE-SECRET-KEY-1"], "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    row("jwt", &[".eyJ", ".eyA", ".ewo", ".ew0"], r"e[yw][\w-]{16,}\.e[yw][\w-]{16,}\.[\w-]{10,}")
        .begins(Word)
        .severity(Medium)
        .checks(&[Jwt, Long]),
    row("authorization-header", &["bearer ", "bearer+"], r"(?i:bearer)[ +]{1,4}([\w.~+/-]{20,2000}={0,2})")
        .begins(Anywhere)
        .any_case()
        .checks(&[Near(&["authorization"]), Entropy(3.0)]),
    row("authorization-header", &["bearer ", "bearer+"], r"(?i:bearer)[ +]{1,4}([\w.~+/-]{20,2000}={0,2})")
        .begins(Anywhere)
        .any_case()
        .severity(Medium)
        .checks(&[Varied, Entropy(3.5)]),
    row("authorization-header", &["basic ", "basic+"], r"(?i:basic)[ +]{1,4}([A-Za-z0-9+/_-]{18,2000}={0,2})")
        .begins(Anywhere)
        .any_case()
        .checks(&[UserAndPassword]),
    row(
        "database-url",
        &[
            "mongodb://", "mongodb+srv://", "postgres://", "postgresql://", "mysql://", "mariadb://", "redis://",
            "rediss://", "amqp://", "amqps://", "sqlserver://", "clickhouse://",
        ],
        r#"[a-z+]{5,14}://[^\s/?#@:"'<>\\`]{0,100}:([^\s/?#@"'<>\\`]{4,200})@[\w\[%.-]{1,253}"#,
    )
    .checks(&[UrlPassword]),
    row("url-credentials", &["://"], r#"://[^\s/?#@:"'<>\\`]{0,100}:([^\s/?#@"'<>\\`]{8,200})@[\w\[%.-]{1,253}"#)
        .begins(Anywhere)
        .checks(&[UrlPassword]),
    row(
        "kubernetes-secret",
        &["kind: Secret", r#"kind":"Secret""#, r#"kind": "Secret""#],
        KUBERNETES_KIND_FIRST,
    )
    .begins(Anywhere)
    .apart(256),
    row("kubernetes-secret", &["\ndata:", "\\ndata:", r#""data":"#, r#"\"data\":"#], KUBERNETES_DATA_FIRST).begins(Anywhere).apart(256),
    // Anything at all that somebody called a secret.
    row(
        "named-secret",
        &["api_key", "apiKey", "api-key", "secret", "token", "passwd", "password"],
        r#"(?i:api[_-]?key|secret|token|passwd|password)\\{0,3}["']?\s{0,4}(?:=>|:=|[:=])\s{0,4}\\{0,3}["']?([\w.+/=~-]{16,150})"#,
    )
    .begins(Anywhere)
    .any_case()
    .severity(Low)
    .checks(&[Varied, Entropy(3.5)]),
];

const TWILIO_KEY: &[&str] = &[
    "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc", "SKd", "SKe",
    "SKf",
];
const TWILIO_ACCOUNT: &[&str] = &[
    "AC0", "AC1", "AC2", "AC3", "AC4", "AC5", "AC6", "AC7", "AC8", "AC9", "ACa", "ACb", "ACc", "ACd", "ACe",
    "ACf",
];

/// RFC 7468, and the older headers of RFC 1421: the first line, and a body, without which it is only talked about. Line
/// feeds may be written as JSON and shells escape them.
const PRIVATE_KEY: &str = concat!(
    r"-----BEGIN[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----",
    r#"(?:\s|\\+[nrt]|["',+])*"#,
    r"(?:[A-Za-z][A-Za-z-]{2,20}:[ +][^\r\n\\]{0,120}(?:\s|\\+[nr])+){0,5}",
    r#"[A-Za-z0-9+/]{40}(?:[A-Za-z0-9+/=]|\s|\\+[nrt/]|["',])*"#,
    r"(?:-----END[ +][A-Z0-9 +]{0,60}-----)?",
);

/// A Secret of Kubernetes as YAML or JSON, whose values are in base64. All of its data is taken.
const KUBERNETES_KIND_FIRST: &str = concat!(
    r#"kind"?: ?"?Secret"?(?:[\s,}]|\\+[nr])(?s:.){0,600}?(?:[\s"{,]|\\+[nr])data"?:"#,
    r#"[ {]*((?:(?:\s|\\+[nr])*"?[\w.-]{1,253}"?:[ \t]*"?[A-Za-z0-9+/]{4,}={0,2}"?,?){1,40})"#,
);
const KUBERNETES_DATA_FIRST: &str = concat!(
    r#"(?:\n|\\+n|\\?")data\\?"?:[ {]*((?:(?:\s|\\+[nr])*"?[\w.-]{1,253}"?:[ \t]*"?[A-Za-z0-9+/]{4,}={0,2}"?,?){1,40})"#,
    r#"(?s:.){0,600}?(?:[\s"{,]|\\+[nr])kind"?: ?"?Secret"?(?:[\s,}]|\\+[nr]|$)"#,
);
