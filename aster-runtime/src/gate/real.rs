//! Where a path really leads. The one place in the gate that asks the file system; the rules are handed it.

use std::path::{Component, Path, PathBuf};

/// How many links to what does not exist are followed one after the other, as Linux does with all links.
const MAX_LINKS: u8 = 40;

/// The path with its symbolic links followed. What does not exist is taken as it is written, below what does.
pub(crate) fn real(path: &Path) -> PathBuf {
    follow(path, MAX_LINKS)
}

fn follow(path: &Path, links: u8) -> PathBuf {
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // After a link `..` is the parent of what it leads to.
            Component::ParentDir => {
                real.pop();
            }
            other => {
                real.push(other);
                if let Ok(resolved) = real.canonicalize() {
                    real = plain(resolved);
                } else if let (Ok(target), true) = (real.read_link(), links > 0) {
                    // Whoever writes to a link to nothing makes what it leads to.
                    real.pop();
                    real = follow(&real.join(target), links - 1);
                }
            }
        }
    }
    real
}

/// Without the `\\?\` that Windows puts in front, which nobody writes in a rule.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(rest) if cfg!(windows) && !rest.starts_with("UNC") => PathBuf::from(rest),
        _ => path,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_what_is_missing_stays() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("secret/deep")).unwrap();
        symlink(root.join("secret/deep"), root.join("link")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        symlink("round", root.join("round")).unwrap();
        for (path, expected) in [
            ("link", "secret/deep"),
            ("link/new/file", "secret/deep/new/file"),
            ("link/../key", "secret/key"),
            ("link/./x", "secret/deep/x"),
            ("none/../secret", "secret"),
            ("broken", "nowhere"),
            ("broken/x", "nowhere/x"),
            ("round", "round"),
        ] {
            assert_eq!(real(&root.join(path)), root.join(expected), "{path}");
        }
    }
}
