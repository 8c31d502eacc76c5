//! The tests of a catalogue, where nothing is in scope but what is named.
#![no_implicit_prelude]

::tools::catalogue_tests!(
    ::aster_hygiene::CATALOGUE;
    agents [::aster_hygiene::WRITER]
);
