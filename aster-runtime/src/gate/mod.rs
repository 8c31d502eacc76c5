//! The gate: what turns a proposed call into an admitted or a denied one.

pub mod egress;
