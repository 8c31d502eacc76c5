//! Where a path really leads. The one place in the gate that asks the file system; the rules are handed it.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf, Prefix};

/// How many links are followed in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// How often the file system is asked about one path.
const MAX_ASKED: usize = 1000;

/// How long a path is that the file system is no longer asked about, in bytes: `PATH_MAX`.
const MAX_BYTES: usize = if cfg!(any(windows, target_os = "linux")) { 4096 } else { 1024 };

/// How long the name of a file may be, in bytes: `NAME_MAX`.
const MAX_NAME: usize = 255;

/// The path with its symbolic links followed. What does not exist is taken as it is written, below what does. `None` where
/// finding out would take more than one question should, or would ask another machine, and where the file system does not
/// say.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    let mut walk = Walk::default();
    walk.follow(path)?;
    if walk.is_unsure { None } else { walk.end() }
}

/// The same for what a rule names, which must hold when the file system says more: what it does not say is taken as it is
/// written too.
#[cfg(any(test, feature = "config"))]
pub(crate) fn real_or_written(path: &Path) -> Option<PathBuf> {
    let mut walk = Walk::default();
    walk.follow(path)?;
    walk.end()
}

/// A path on the way to where it leads.
#[derive(Default)]
struct Walk {
    real: PathBuf,
    /// How many of the last components do not exist: nothing is to be asked about what is below them.
    missing: usize,
    /// Whether something that is taken for missing may be there.
    is_unsure: bool,
    asked: usize,
    links: usize,
}

impl Walk {
    fn follow(&mut self, path: &Path) -> Option<()> {
        for component in path.components() {
            match component {
                Component::CurDir => {}
                // After a link `..` is the parent of what it leads to.
                Component::ParentDir => {
                    self.real.pop();
                    self.missing = self.missing.saturating_sub(1);
                }
                Component::Normal(name) => {
                    self.real.push(name);
                    self.look(name)?;
                }
                Component::Prefix(prefix) => {
                    // A share is on another machine, which would learn who asks; a device does as it likes.
                    if !matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)) {
                        return None;
                    }
                    self.real.push(component);
                    self.missing = 0;
                }
                Component::RootDir => {
                    self.real.push(component);
                    self.missing = 0;
                }
            }
        }
        Some(())
    }

    /// Looks at the last component, of this name.
    fn look(&mut self, name: &OsStr) -> Option<()> {
        if self.missing > 0 {
            self.missing += 1;
            return Some(());
        }
        // Who goes step by step comes further than who asks for the whole path, but not through a name that cannot be: most
        // long texts are no paths.
        let is_far = self.real.as_os_str().len() >= MAX_BYTES && name.len() <= MAX_NAME;
        if self.asked == MAX_ASKED || is_far {
            return None;
        }
        self.asked += 1;
        match self.real.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                if self.links == MAX_LINKS {
                    return None;
                }
                self.links += 1;
                match self.real.read_link() {
                    // Whoever writes to a link to nothing makes what it leads to.
                    Ok(target) => {
                        self.real.pop();
                        self.follow(&target)?;
                    }
                    Err(error) => self.stop(&error),
                }
            }
            Ok(_) => {}
            Err(error) => self.stop(&error),
        }
        Some(())
    }

    /// Nothing is known of the last component.
    fn stop(&mut self, error: &io::Error) {
        self.missing = 1;
        // Where it is not allowed to look, or looking fails, another may see more.
        let is_nothing = matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
        );
        self.is_unsure |= !is_nothing;
    }

    /// What exists by the names that the file system has for it: Windows has short ones too.
    fn end(self) -> Option<PathBuf> {
        let existing = self.real.ancestors().nth(self.missing)?;
        let Ok(resolved) = existing.canonicalize() else { return Some(self.real) };
        let rest = self.real.strip_prefix(existing).ok()?;
        Some(if rest.as_os_str().is_empty() { plain(resolved) } else { plain(resolved).join(rest) })
    }
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
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn links_are_followed_and_what_is_missing_stays() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("secret/deep")).unwrap();
        symlink(root.join("secret/deep"), root.join("link")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        for (path, expected) in [
            ("link", "secret/deep"),
            ("link/new/file", "secret/deep/new/file"),
            ("link/../key", "secret/key"),
            ("link/./x", "secret/deep/x"),
            ("none/../secret", "secret"),
            ("none/none/../../link/x", "secret/deep/x"),
            ("none/link/../../link", "secret/deep"),
            ("broken", "nowhere"),
            ("broken/x", "nowhere/x"),
            ("broken/../link", "secret/deep"),
        ] {
            assert_eq!(real(&root.join(path)), Some(root.join(expected)), "{path}");
        }
    }

    #[test]
    fn what_the_file_system_does_not_say_is_not_known() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("closed")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        symlink("closed", root.join("link")).unwrap();
        // What it does not even ask for.
        let paths = ["link/in\0side", "link/in\0side/x"];
        for path in paths {
            assert_eq!(real(&root.join(path)), None, "{path:?}");
            let written = root.join(path.replace("link", "closed"));
            assert_eq!(real_or_written(&root.join(path)), Some(written), "{path:?}");
        }
        // What it says.
        for path in ["file/x", "closed/x/y"] {
            assert_eq!(real(&root.join(path)), Some(root.join(path)), "{path}");
        }
        std::fs::set_permissions(root.join("closed"), Permissions::from_mode(0o000)).unwrap();
        let link = root.join("link/x");
        // Root may look everywhere.
        if matches!(link.symlink_metadata(), Err(error) if error.kind() == ErrorKind::PermissionDenied) {
            assert_eq!(real(&link), None);
            assert_eq!(real_or_written(&link), Some(root.join("closed/x")));
        }
        assert_eq!(real(&root.join("link")), Some(root.join("closed")));
        // So that it can be removed.
        std::fs::set_permissions(root.join("closed"), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn what_would_take_too_long_is_not_found_out() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        symlink("round", root.join("round")).unwrap();
        assert_eq!(real(&root.join("round")), None);

        // Every link asks twice for the next, which doubles with each of them.
        for at in 0..60 {
            symlink(format!("L{next}/../L{next}", next = at + 1), root.join(format!("L{at}"))).unwrap();
        }
        assert_eq!(real(&root.join("L0")), None);
        assert_eq!(real(&root.join("L59")), Some(root.join("L60")));

        std::fs::create_dir(root.join("d")).unwrap();
        assert_eq!(real(&root.join("d/../".repeat(100))), Some(root.clone()));
        assert_eq!(real(&root.join("d/../".repeat(MAX_ASKED))), None);

        // A long text that is no path is not asked about word for word.
        let long = root.join("none/".repeat(40_000));
        let mut walk = Walk::default();
        assert_eq!(walk.follow(&long), Some(()));
        assert!(walk.asked <= root.components().count(), "{}", walk.asked);
        assert_eq!(walk.end().unwrap().components().count(), long.components().count());
    }

    #[test]
    fn a_long_text_is_no_path_and_a_deep_one_may_be() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for text in ["word ".repeat(1000), format!("{}/word", "word ".repeat(1000))] {
            let text = root.join(text);
            assert_eq!(real(&text), Some(text));
        }

        let mut deep = root;
        while deep.as_os_str().len() + 200 < MAX_BYTES {
            deep.push("d".repeat(199));
        }
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(real(&deep), Some(deep.clone()));
        assert_eq!(real(&deep.join("d".repeat(200))), None);
        let unnamable = deep.join("d".repeat(MAX_NAME + 1));
        assert_eq!(real(&unnamable), Some(unnamable));
    }
}
