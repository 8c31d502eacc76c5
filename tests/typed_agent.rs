//! The tests that the example `typed_agent` has of its own catalogue. As an example that is tested it would not be built to
//! be run.
#![allow(dead_code, reason = "what the example does when it runs is tested with the other examples")]

#[path = "../examples/typed_agent.rs"]
mod typed_agent;
