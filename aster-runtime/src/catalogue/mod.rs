//! The catalogue.

mod external;

pub use external::{AnnotationTrust, ExternalSettings, Health, Listing};
