//! Two crates that have a server of one name: this one and `aster-hygiene`. That `catalogue!` does not compile with both is
//! shown by `tests/ui/several/a_server_name_of_two_crates.rs`; here it is told where no macro sees both.

use aster_runtime::testing::Suite;
use aster_runtime::{Entry, Host, NativeCatalogue, catalogue, lint, mcp_server};

/// Tells the time.
#[mcp_server]
mod clock {
    /// Tells how late it is.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(crate) fn now() {}
}

const OURS: NativeCatalogue = catalogue![clock::SERVER];
const BOTH: NativeCatalogue = NativeCatalogue {
    entries: &[Entry::Server(aster_hygiene::clock::SERVER), Entry::Server(clock::SERVER)],
    ..NativeCatalogue::EMPTY
};

#[track_caller]
fn names_both(said: &str) {
    assert!(said.contains("clock"), "{said}");
    for place in ["tests/hygiene/src/lib.rs:", "tests/one_name.rs:"] {
        assert!(said.contains(place), "{place} is missing in: {said}");
    }
}

#[tokio::test]
async fn start_up_refuses_them_with_both_places() {
    names_both(&Host::builder().catalogue(BOTH).build().await.unwrap_err().to_string());
    // The list has one of them, and the binary both.
    names_both(&Host::builder().whole_catalogue(OURS).build().await.unwrap_err().to_string());
}

#[test]
fn the_tests_of_a_catalogue_fail_with_both_places() {
    let failed = |catalogue, test: fn(&Suite<'static>)| {
        let suite = Suite { catalogue, agents: &[], accepted: &[], package: env!("CARGO_MANIFEST_DIR") };
        let panic = std::panic::catch_unwind(|| test(&suite)).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    names_both(&failed(BOTH, Suite::the_list_is_a_catalogue));
    names_both(&failed(OURS, Suite::what_is_linked_is_listed));
}

/// What `check` prints.
#[test]
fn a_check_of_the_binary_names_both_places() {
    let said = |list| {
        let findings = lint::binary(list, None).unwrap_err().0;
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    names_both(&said(&BOTH));
    names_both(&said(&OURS));
}
