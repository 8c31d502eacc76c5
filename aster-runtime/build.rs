//! Says for which target the runtime is built. `links` in `Cargo.toml` asks for a build script as well, and is what keeps a second
//! runtime out of a binary.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(target) = std::env::var("TARGET") {
        println!("cargo::rustc-env=ASTER_TARGET={target}");
    }
}
