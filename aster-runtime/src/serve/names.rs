//! Names in direct mode: what a client calls a tool by, whose id is `server/tool`.
//!
//! A name is `server__tool`, and a pure function of the id wherever that is unambiguous. Model providers take
//! `[a-zA-Z0-9_-]{1,64}`, so other characters become `_`. What cannot keep that plain name is cut where it must be and ends
//! in `_` and six hexadecimal digits of the id's digest:
//!
//! * a name of more than 64 characters;
//! * every one of several tools whose plain names are the same. None of them keeps it: of a name that a client has stored,
//!   perhaps as always allowed, it must not depend on the order of a list which of two tools it means;
//! * a name that reads as if it began with another server's, because the server's has `__` in it or ends in `_`. It
//!   does not matter whether that server is there;
//! * a plain name that itself ends like one that was cut, so that the two kinds can never meet.
//!
//! Where six digits of two ids agree, both have twelve, and so on. Names depend on the set of ids and on nothing else: a
//! session's are made from what it sees, so that what is hidden from it moves none of them.

use std::collections::HashMap;

use crate::id::{ToolId, is_legal, legal};

/// The longest name that OpenAI and Anthropic take for a function.
const MAX_NAME: usize = 64;

/// The number of digits of the digest that a name ends in, from the shortest; nobody makes two ids agree in the last.
const DIGITS: [usize; 4] = [6, 12, 24, 48];

/// The names of a set of ids, in their order.
pub(super) fn names(ids: &[&ToolId]) -> Vec<String> {
    let mut names: Vec<Option<String>> = ids.iter().map(|id| plain(id)).collect();
    drop_shared(&mut names);
    for digits in DIGITS {
        for (name, id) in names.iter_mut().zip(ids) {
            name.get_or_insert_with(|| cut(id, digits));
        }
        drop_shared(&mut names);
    }
    let longest = DIGITS[DIGITS.len() - 1];
    names.into_iter().zip(ids).map(|(name, id)| name.unwrap_or_else(|| cut(id, longest))).collect()
}

/// What every name of a server's tools begins with, unless it had to be cut.
pub(super) fn prefix(server: &str) -> String {
    format!("{}__", legal(server))
}

/// Whether something can be a name.
pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(is_legal)
}

/// Takes away the names that more than one has.
fn drop_shared(names: &mut [Option<String>]) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    let shared: Vec<bool> =
        names.iter().map(|name| name.as_deref().is_some_and(|name| counts[name] > 1)).collect();
    for (name, shared) in names.iter_mut().zip(shared) {
        name.take_if(|_| shared);
    }
}

/// `server__tool`, where nothing speaks against it.
fn plain(id: &ToolId) -> Option<String> {
    let prefix = prefix(id.server());
    let name = id.direct_name();
    let reads_as_meant = name.find("__") == Some(prefix.len() - 2);
    (name.len() <= MAX_NAME && reads_as_meant && !looks_cut(&name)).then_some(name)
}

fn cut(id: &ToolId, digits: usize) -> String {
    let mut name = id.direct_name();
    name.truncate(MAX_NAME - 1 - digits);
    name.push('_');
    name.push_str(&blake3::hash(id.as_str().as_bytes()).to_hex()[..digits]);
    name
}

/// Whether a name ends in `_` and at least as many hexadecimal digits as the end of one that was cut has.
fn looks_cut(name: &str) -> bool {
    let digits = name.bytes().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    digits >= DIGITS[0] && name[..name.len() - digits].ends_with('_')
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use proptest::prelude::*;

    use super::*;

    fn named<const N: usize>(ids: [&str; N]) -> Vec<String> {
        let ids = ids.map(|id| ToolId::parse(id).unwrap());
        names(&ids.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_is_unambiguous_is_plain() {
        assert_eq!(
            named([
                "files/read_file",
                "files/_hidden",
                "hub/admin.tools.list",
                "hub/a__b",
                "io.x/find a user"
            ]),
            ["files__read_file", "files___hidden", "hub__admin_tools_list", "hub__a__b", "io_x__find_a_user"]
        );
    }

    #[test]
    fn what_is_not_ends_in_digits() {
        let digits = |name: &str| name.rsplit_once('_').unwrap().1.to_owned();
        let names = named(["a__b/c", "a_/c", "a/b_0123ab", &format!("a/{}", "x".repeat(62))]);
        assert!(names[0].starts_with("a__b__c_") && names[1].starts_with("a___c_"), "{names:?}");
        assert!(names[2].starts_with("a__b_0123ab_"), "{names:?}");
        assert_eq!(names[3], format!("a__{}_{}", "x".repeat(54), digits(&names[3])));
        assert!(names.iter().all(|name| digits(name).len() == 6), "{names:?}");
        assert_eq!(digits(&names[0]), blake3::hash(b"a__b/c").to_hex()[..6]);
        assert_eq!(named([&format!("a/{}", "x".repeat(61))])[0].len(), MAX_NAME);
    }

    #[test]
    fn of_two_that_collide_neither_keeps_the_name() {
        let [alone, beside] = [named(["a/b.c"])[0].clone(), named(["a/b.c", "a/b_c"])[0].clone()];
        assert_eq!(alone, "a__b_c");
        let both = named(["a/b.c", "a/b_c", "a/d"]);
        assert_eq!(both[0], beside);
        assert!(both[..2].iter().all(|name| name.starts_with("a__b_c_") && name.len() == 13), "{both:?}");
        assert_eq!(both[2], "a__d");
    }

    #[test]
    fn ids_that_agree_in_six_digits_have_twelve() {
        // Two of this length whose digests begin alike, as among so many some must.
        let mut seen: HashMap<String, String> = HashMap::new();
        let tool = |n: u32| format!("a/{}{n}", "x".repeat(100));
        let (one, other) = (0..)
            .find_map(|n| {
                let digest = blake3::hash(tool(n).as_bytes()).to_hex()[..6].to_owned();
                seen.insert(digest, tool(n)).map(|one| (one, tool(n)))
            })
            .unwrap();
        let names = named([&one, &other, "a/b"]);
        assert_ne!(names[0], names[1]);
        assert!(
            names[..2].iter().all(|name| name.len() == MAX_NAME && name.as_bytes()[51] == b'_'),
            "{names:?}"
        );
        assert_eq!(names[2], "a__b");
    }

    /// Ids that are near each other, so that they collide: few characters, and pieces of names that were cut.
    fn id() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("_".to_owned()),
            "[ab._é/-]{1,3}",
            "_[0-9a-f]{6}",
            Just("_000000".to_owned()),
            "x{30,70}",
        ];
        let word = proptest::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat());
        (word.clone(), word).prop_map(|(server, tool)| format!("{}/{tool}", server.replace('/', "")))
    }

    proptest! {
        #[test]
        fn names_are_legal_injective_and_stable(ids in proptest::collection::vec(id(), 1..16)) {
            let ids: BTreeSet<String> = ids.into_iter().filter(|id| ToolId::parse(id).is_some()).collect();
            let ids: Vec<ToolId> = ids.iter().map(|id| ToolId::parse(id).unwrap()).collect();
            let forward = names(&ids.iter().collect::<Vec<_>>());
            prop_assert!(forward.iter().all(|name| is_name(name)), "{forward:?}");
            prop_assert_eq!(forward.iter().collect::<HashSet<_>>().len(), ids.len(), "{:?}", forward);
            let mut backward = names(&ids.iter().rev().collect::<Vec<_>>());
            backward.reverse();
            prop_assert_eq!(&forward, &backward);
            // A tool that goes takes no name with it that another then gets.
            for gone in 0..ids.len() {
                let rest: Vec<&ToolId> = ids.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, id)| id).collect();
                for (id, name) in rest.iter().zip(names(&rest)) {
                    let meant = forward.iter().position(|known| *known == name);
                    prop_assert!(meant.is_none_or(|meant| ids[meant] == **id));
                }
            }
        }

        #[test]
        fn whatever_a_server_is_called_and_calls_its_tools(ids in proptest::collection::btree_set(any::<String>(), 1..20)) {
            let ids: Vec<ToolId> = ids.iter().filter_map(|id| ToolId::parse(id)).collect();
            let names = names(&ids.iter().collect::<Vec<_>>());
            prop_assert!(names.iter().all(|name| is_name(name)));
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), ids.len());
        }
    }
}
