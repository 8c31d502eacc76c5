//! What the command offers of its own is consistent, and as it was reviewed. Here and not beside the list, for the unit tests of
//! the command link a server of their own.

aster_runtime::catalogue_tests!(aster_servers::CATALOGUE);
