//! What the macros say to each misuse, and the surroundings in which their expansions compile. `tests/ui/README.md` says
//! how to add a case and how to bless one.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("../tests/ui/*/a*.rs");
}

#[test]
fn surroundings() {
    let cases = trybuild::TestCases::new();
    cases.pass("../tests/ui/pass/*.rs");
}
