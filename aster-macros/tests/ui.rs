//! What the macros say to each misuse. `tests/ui/README.md` says how to add a case and how to bless one.

#[test]
fn ui() {
    // No `pass` cases: with one, trybuild would build every dependency once more instead of checking it. The surroundings
    // in `tests/ui/pass/` are test targets of this package.
    trybuild::TestCases::new().compile_fail("../tests/ui/*/a*.rs");
}
