//! For the tests of whoever publishes tools: [`catalogue_tests!`](crate::catalogue_tests) proves that a catalogue is
//! consistent, and [`TestHost`] calls a tool through the real gate, with answers in a human's place and the audit at hand.

mod document;
mod host;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub use document::document;
pub use host::{Answer, Recording, Script, TestHost};
pub use table::table;

use crate::catalogue::NativeCatalogue;
use crate::lint::{self, Accepted, Finding, Rule};
use crate::scope::Agent;

/// The variable with which the generated document is written anew.
pub const BLESS: &str = "ASTER_BLESS";

/// Makes the tests of a catalogue, to be called once in a test of the package that builds the binary. What the tests around it
/// declare is linked as well: where unit tests have tools of their own, it stands in a file of `tests/`.
///
/// ```
/// # use aster_runtime::{NativeCatalogue, catalogue, catalogue_tests, mcp_tool};
/// /// Adds two whole numbers.
/// #[mcp_tool(tier = Standard, server = "calculator")]
/// fn add(
///     /// The first summand.
///     a: i64,
///     /// The second summand.
///     b: i64,
/// ) -> i64 {
///     a + b
/// }
///
/// const CATALOGUE: NativeCatalogue = catalogue![add::TOOL];
///
/// #[cfg(test)]
/// mod tests {
///     aster_runtime::catalogue_tests!(super::CATALOGUE);
/// }
/// # fn main() {}
/// ```
///
/// | test | fails where |
/// |---|---|
/// | `the_list_is_a_catalogue` | start-up would refuse it |
/// | `what_is_linked_is_listed` | a server is linked and not listed, or listed and not linked |
/// | `server_crates_are_linked` | a package that publishes tools is a dependency, and not linked |
/// | `descriptions_say_something` | one is missing, a placeholder, a name, too long, or another tool's |
/// | `urls_are_under_egress` | a parameter takes a URL that the gate does not look at |
/// | `names_are_plain` | a property inside of a parameter has a name that providers refuse of parameters |
/// | `arguments_are_held_to_their_schemas` | a part of a schema is not checked before the call |
/// | `the_manifest_names_what_can_be_called` | it names more or less than is listed, or a call arrives elsewhere |
/// | `agents_are_given_what_there_is` | a group is given to none of `agents`, or an agent something that is not there |
/// | `what_was_reviewed_is_what_there_is` | a tier, group, hint, schema or what a provider loses of one differs from the committed snapshot |
/// | `the_document_is_current` | `TOOLS.md` is not what the catalogue would write; `ASTER_BLESS=1` writes it |
///
/// The snapshot is [insta](https://insta.rs)'s: `INSTA_UPDATE=always` writes it. Clauses may follow, in this order. `agents
/// […]` names the [`Agent`]s of the binary. `document "…"` is another place for the document, below the package's folder.
/// `accept […]` lists what is right as it is: the [`Rule`], the id of the tool with the parameter where there is one, and why.
/// Attributes before the catalogue go to every test.
///
/// ```
/// # aster_runtime::groups! { pub NOTES }
/// # #[aster_runtime::mcp_server(group = NOTES)]
/// # mod notes {
/// #     /// Remembers where something was found.
/// #     #[aster_runtime::mcp_tool(tier = Standard)]
/// #     pub fn cite(
/// #         /// Where it was found.
/// #         #[arg(url = false)]
/// #         url: String,
/// #     ) -> String { url }
/// # }
/// # use aster_runtime::{NativeCatalogue, agent, catalogue};
/// # const CATALOGUE: NativeCatalogue = catalogue![notes::SERVER];
/// # agent! { pub WRITER = { groups: [NOTES] } }
/// #[cfg(test)]
/// mod tests {
///     aster_runtime::catalogue_tests!(
///         super::CATALOGUE;
///         agents [super::WRITER];
///         document "docs/TOOLS.md";
///         accept [Egress "notes/cite url" => "it is kept as text, and nothing is fetched"]
///     );
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! catalogue_tests {
    (
        $(#[$meta:meta])*
        $catalogue:path
        $(; agents [$($agent:expr),* $(,)?])?
        $(; document $document:literal)?
        $(; accept [$($rule:ident $key:literal => $why:literal),* $(,)?])?
        $(;)?
    ) => {
        const __SUITE: $crate::testing::Suite<'static> = $crate::testing::Suite {
            catalogue: $catalogue,
            agents: &[$($($agent),*)?],
            accepted: &[$($($crate::lint::Accepted {
                rule: $crate::lint::Rule::$rule,
                key: $key,
                why: $why,
            }),*)?],
            package: $crate::__private::env!("CARGO_MANIFEST_DIR"),
        };

        $(#[$meta])*
        #[$crate::__private::test]
        fn the_list_is_a_catalogue() {
            __SUITE.the_list_is_a_catalogue();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn what_is_linked_is_listed() {
            __SUITE.what_is_linked_is_listed();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn server_crates_are_linked() {
            __SUITE.server_crates_are_linked();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn descriptions_say_something() {
            __SUITE.descriptions_say_something();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn urls_are_under_egress() {
            __SUITE.urls_are_under_egress();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn names_are_plain() {
            __SUITE.names_are_plain();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn arguments_are_held_to_their_schemas() {
            __SUITE.arguments_are_held_to_their_schemas();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn the_manifest_names_what_can_be_called() {
            __SUITE.the_manifest_names_what_can_be_called();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn agents_are_given_what_there_is() {
            __SUITE.agents_are_given_what_there_is();
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn what_was_reviewed_is_what_there_is() {
            // insta's macro takes them to be in scope.
            use $crate::__private::{Into as _, Some};
            $crate::__private::insta::assert_snapshot!("catalogue", $crate::testing::table(&__SUITE.catalogue));
        }

        $(#[$meta])*
        #[$crate::__private::test]
        fn the_document_is_current() {
            __SUITE.the_document_is_current($crate::__document!($($document)?));
        }
    };
}

/// Where the document stands unless it is said.
#[doc(hidden)]
#[macro_export]
macro_rules! __document {
    () => {
        "TOOLS.md"
    };
    ($document:literal) => {
        $document
    };
}

/// What [`catalogue_tests!`](crate::catalogue_tests) was given. Each method is a test of it, and panics with all that it
/// found.
#[derive(Debug, Clone, Copy)]
pub struct Suite<'a> {
    /// The list.
    pub catalogue: NativeCatalogue,
    /// The agents that it is for.
    pub agents: &'a [Agent],
    /// What is right as it is.
    pub accepted: &'a [Accepted],
    /// The folder of the package's `Cargo.toml`.
    pub package: &'a str,
}

#[expect(clippy::missing_panics_doc, reason = "every test fails by panicking, as the type says")]
impl Suite<'_> {
    /// See [`lint::problems`].
    pub fn the_list_is_a_catalogue(&self) {
        self.hold(&[Rule::Catalogue], lint::problems(&self.catalogue));
    }

    /// See [`lint::listed`].
    pub fn what_is_linked_is_listed(&self) {
        #[cfg(feature = "inventory")]
        self.hold(&[Rule::Listed], lint::listed(&self.catalogue, &NativeCatalogue::registered()));
    }

    /// See [`lint::unlinked`].
    pub fn server_crates_are_linked(&self) {
        #[cfg(feature = "inventory")]
        let linked = [self.catalogue, NativeCatalogue::registered()];
        #[cfg(not(feature = "inventory"))]
        let linked = [self.catalogue];
        match lint::unlinked(Path::new(self.package), &linked) {
            Ok(findings) => self.hold(&[Rule::Linked], findings),
            Err(error) => panic!("the dependencies of {} cannot be looked at: {error}", self.package),
        }
    }

    /// See [`lint::descriptions`].
    pub fn descriptions_say_something(&self) {
        let rules = [
            Rule::Described,
            Rule::Placeholder,
            Rule::RepeatsName,
            Rule::Length,
            Rule::Same,
            Rule::Parameter,
        ];
        self.hold(&rules, lint::descriptions(&self.catalogue));
    }

    /// See [`lint::urls`].
    pub fn urls_are_under_egress(&self) {
        self.hold(&[Rule::Egress], lint::urls(&self.catalogue));
    }

    /// See [`lint::names`].
    pub fn names_are_plain(&self) {
        self.hold(&[Rule::Name], lint::names(&self.catalogue));
    }

    /// See [`lint::schemas`].
    pub fn arguments_are_held_to_their_schemas(&self) {
        self.hold(&[Rule::Schema], lint::schemas(&self.catalogue));
    }

    /// See [`lint::manifest`]. It holds Aster to what it promises of any list; no list that is a catalogue is known to break it.
    pub fn the_manifest_names_what_can_be_called(&self) {
        self.hold(&[Rule::Manifest], lint::manifest(&self.catalogue));
    }

    /// See [`lint::agents`].
    pub fn agents_are_given_what_there_is(&self) {
        self.hold(&[Rule::Agents], lint::agents(&self.catalogue, self.agents));
    }

    /// Whether [`document()`] is what stands in this file of the package; with [`BLESS`] in the environment, after it has
    /// been written.
    pub fn the_document_is_current(&self, file: &str) {
        let path = Path::new(self.package).join(file);
        let due = document(&self.catalogue);
        if std::env::var_os(BLESS).is_some() {
            if let Err(error) = fs::write(&path, due) {
                panic!("{} cannot be written: {error}", path.display());
            }
            return;
        }
        let help = format!("run the tests with {BLESS}=1 to write it, and commit it");
        let found = match fs::read_to_string(&path) {
            // As git may check it out on Windows.
            Ok(found) => found.replace("\r\n", "\n"),
            Err(error) => panic!("{} cannot be read: {error}\n  help: {help}", path.display()),
        };
        if found != due {
            let differs = found.lines().zip(due.lines()).position(|(found, due)| found != due);
            let line = differs.unwrap_or_else(|| found.lines().count().min(due.lines().count()));
            let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
            panic!(
                "{}:{} is not what the catalogue says\n  it is:  {}\n  is due: {}\n  help: {help}",
                path.display(),
                line + 1,
                at(&found),
                at(&due)
            );
        }
    }

    fn hold(&self, rules: &[Rule], findings: Vec<Finding>) {
        let findings = lint::without(findings, rules, self.accepted);
        if findings.is_empty() {
            return;
        }
        let mut told = format!("{} found in the catalogue", findings.len());
        for finding in &findings {
            let _ = write!(told, "\n\n{finding}");
        }
        panic!("{told}\n");
    }
}
