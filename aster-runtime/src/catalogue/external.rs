//! What is known of an external server, as its upstream reports it.

use std::fmt;
use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Problem, Reason};
use crate::gate::secrets::{Incoming, Places, SecretPolicy};
use crate::spec::{Group, Tier};

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "reason", rename_all = "snake_case")]
pub enum Health {
    /// Its tools can be called.
    Ready,
    /// It has not listed its tools yet.
    Starting,
    /// It could not start, or it stopped; the reason.
    Down(String),
    /// The configuration switches it off.
    Disabled,
    /// The user has not consented to its command yet: a project's file declares it, or it has changed; what to type.
    NeedsConsent(String),
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Starting => f.write_str("starting"),
            Self::Down(reason) => write!(f, "down: {reason}"),
            Self::Disabled => f.write_str("disabled"),
            Self::NeedsConsent(what) => write!(f, "needs consent: {what}"),
        }
    }
}

/// What a server said of itself and of its tools the last time it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// How it is doing.
    pub health: Health,
    /// The tools as it sent them, each a JSON value that nobody has checked yet.
    pub tools: Vec<Value>,
    /// The resources and templates of resources, likewise.
    pub resources: Vec<Value>,
    /// The prompts, likewise.
    pub prompts: Vec<Value>,
    /// Its own title or name.
    pub title: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its instructions to clients.
    pub instructions: Option<String>,
    /// The protocol revision that was agreed on.
    pub protocol: Option<String>,
}

impl Listing {
    /// A server without tools, in this state.
    #[must_use]
    pub fn without_tools(health: Health) -> Self {
        Self {
            health,
            tools: Vec::new(),
            resources: Vec::new(),
            prompts: Vec::new(),
            title: None,
            version: None,
            instructions: None,
            protocol: None,
        }
    }

    /// Whether both offer the same, however the server is doing.
    pub(crate) fn offers_as(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || (&self.tools, &self.resources, &self.prompts)
                == (&other.tools, &other.resources, &other.prompts)
    }

    /// The listing without secrets, and where they were, where there are any: what a server says of itself is shown to
    /// models, kept with the pins and passed on to clients.
    pub(crate) fn without_secrets(
        &self,
        server: &str,
        policy: &SecretPolicy,
    ) -> Option<(Self, Vec<Problem>)> {
        if policy.incoming == Incoming::Allow {
            return None;
        }
        let mut clean: Option<Self> = None;
        let mut problems = Vec::new();
        let mut found = |tool: Option<&str>, places: Places| {
            problems.extend(places.listed.into_iter().map(|place| Problem {
                server: server.to_owned(),
                tool: tool.map(str::to_owned),
                reason: Reason::Secret { pointer: place.pointer, kind: place.kind },
            }));
        };
        for (which, list) in [&self.tools, &self.resources, &self.prompts].into_iter().enumerate() {
            for (at, entry) in list.iter().enumerate() {
                let Some((redacted, places)) = entry.as_object().and_then(|entry| policy.redact(entry))
                else {
                    continue;
                };
                let place = format!("#{}", at + 1);
                found(Some(redacted.get("name").and_then(Value::as_str).unwrap_or(&place)), places);
                let clean = clean.get_or_insert_with(|| self.clone());
                [&mut clean.tools, &mut clean.resources, &mut clean.prompts][which][at] =
                    Value::Object(redacted);
            }
        }
        let own = [("title", &self.title), ("version", &self.version), ("instructions", &self.instructions)];
        let said = own.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())));
        if let Some((redacted, places)) = policy.redact(&Map::from_iter(said)) {
            found(None, places);
            let text = |name: &str| redacted.get(name).and_then(Value::as_str).map(str::to_owned);
            let clean = clean.get_or_insert_with(|| self.clone());
            (clean.title, clean.version) = (text("title"), text("version"));
            clean.instructions = text("instructions");
        }
        clean.map(|clean| (clean, problems))
    }
}

/// How much a server's own annotations count when its tools get their tiers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnnotationTrust {
    /// `destructiveHint: true` raises the tier to Restricted; nothing lowers it.
    #[default]
    Tighten,
    /// They count for nothing.
    Ignore,
    /// As `Tighten`, and an explicit `readOnlyHint: true` lowers an unconfigured tool to Standard.
    Trust,
}

/// When a tool of an external server counts as trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pinning {
    /// Always, whatever it changes into.
    Off,
    /// As it is when it is seen first, and then until it changes.
    #[default]
    TrustFirst,
    /// As the user has seen it, and no other way.
    Strict,
}

/// What the configuration says of an external server's tools, resources and prompts.
#[derive(Debug, Clone, Default)]
pub struct ExternalSettings {
    /// The group of all that it has; `None` is one that is called like the server.
    pub group: Option<Group>,
    /// The tier of tools that no entry of `tiers` matches; `None` is Elevated.
    pub tier: Option<Tier>,
    /// Tiers by glob over tool names; of several that match, the strictest.
    pub tiers: Vec<(GlobMatcher, Tier)>,
    /// How much its annotations count.
    pub annotations: AnnotationTrust,
    /// Arguments that name a URL or a host although neither their names nor the schema say so, at whatever depth.
    pub url_arguments: Vec<String>,
    /// Arguments that name none although it looks as if they did.
    pub free_arguments: Vec<String>,
    /// When its tools count as trusted, where the host has a store of pins.
    pub pins: Pinning,
    /// Whether its code is this program's own, mounted and not started: it counts as native for rules, and its annotations
    /// are its author's word.
    pub native: bool,
}

impl ExternalSettings {
    /// The same, with this group.
    ///
    /// ```
    /// use aster_runtime::Tier;
    /// use aster_runtime::catalogue::ExternalSettings;
    ///
    /// aster_runtime::groups! { RESEARCH }
    ///
    /// # fn main() -> Result<(), globset::Error> {
    /// let settings = ExternalSettings::default()
    ///     .group(RESEARCH)
    ///     .tier(Tier::Standard)
    ///     .tier_of("delete_*", Tier::Restricted)?;
    /// assert_eq!(settings.tier, Some(Tier::Standard));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn group(self, group: Group) -> Self {
        Self { group: Some(group), ..self }
    }

    /// The same, with this tier for all that no [`tier_of`](Self::tier_of) is about.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        Self { tier: Some(tier), ..self }
    }

    /// The same, with this tier for what has such a name; of several that match, the strictest counts.
    ///
    /// # Errors
    ///
    /// Where the glob does not parse.
    pub fn tier_of(mut self, glob: &str, tier: Tier) -> Result<Self, globset::Error> {
        self.tiers.push((Glob::new(glob)?.compile_matcher(), tier));
        Ok(self)
    }
}
