//! What the linker is told, so that the program starts soon and is small in memory. Each holds where it is known to be
//! understood; elsewhere the program is the same, and larger in memory.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=start.order");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" || env::var("HOST") != env::var("TARGET") {
        return;
    }
    // The program's own relocations are packed, which is read from glibc 2.36 on, of 2022: 1.5 MB less to read, and to keep,
    // at every start.
    if glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // The functions that run at a start lie side by side. Around each that runs, the kernel maps 64 KiB: spread over the
    // whole program, these are half of it.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && links_with_lld(&target("ARCH")) {
        let order = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("start.order");
        // Not by `-Wl`, which takes a comma in the path for the end of the argument.
        println!("cargo:rustc-link-arg-bins=-Xlinker");
        println!("cargo:rustc-link-arg-bins=--symbol-ordering-file={}", order.display());
        // It was written for one version of the compiler and of every dependency; a name that is none any more is passed over.
        println!("cargo:rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}

/// Whether rustc links with the lld that it brings: from 1.90 on it does for this target, unless it is told otherwise.
fn links_with_lld(arch: &str) -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_told = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    let is_new = || {
        let version = rustc(&["--version"])?;
        let minor = version.strip_prefix("rustc 1.")?.split('.').next()?.parse::<u32>().ok()?;
        Some(minor >= 90)
    };
    let is_there = || {
        let libraries = rustc(&["--print", "target-libdir"])?;
        Some(Path::new(libraries.trim()).join("../bin/gcc-ld/ld.lld").exists())
    };
    arch == "x86_64" && !is_told && is_new() == Some(true) && is_there() == Some(true)
}

fn rustc(arguments: &[&str]) -> Option<String> {
    let answer = Command::new(env::var_os("RUSTC")?).args(arguments).output().ok()?;
    String::from_utf8(answer.stdout).ok()
}

/// The version of this system's C library.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
