//! The catalogue.

mod external;
mod native;

pub use external::{AnnotationTrust, ExternalSettings, Health, Listing};
pub use native::NativeCatalogue;
