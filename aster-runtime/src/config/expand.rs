//! `${NAME}` and `${NAME:-default}` in the texts of a configuration.
//!
//! A text is parsed when its file is read, so that a malformed one is named with its line, and filled in later, so
//! that a variable which is not set costs one server and not the file.

/// A text with variables in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Variable { name: String, default: Option<String> },
}

/// A filled-in text, and what was taken from the environment for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// Names and values of the variables.
    pub(super) taken: Vec<(String, String)>,
}

impl Template {
    pub(super) fn empty() -> Self {
        Self(Vec::new())
    }

    /// Reads `$$` as `$`, `${NAME}` as a variable, and every other `$` as itself.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            literal.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                literal.push('$');
                rest = tail;
                continue;
            }
            let Some(inner) = after.strip_prefix('{') else {
                literal.push('$');
                rest = after;
                continue;
            };
            let end = inner.find('}').ok_or("`${` without a closing `}`")?;
            let (name, default) = match inner[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (&inner[..end], None),
            };
            if !is_name(name) {
                return Err("the name in `${…}` is not one of letters, digits and `_`");
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable { name: name.to_owned(), default });
            rest = &inner[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    pub(super) fn has_variables(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Variable { .. }))
    }

    /// The names of the variables, in order.
    pub(super) fn into_names(self) -> impl Iterator<Item = String> {
        self.0.into_iter().filter_map(|piece| match piece {
            Piece::Variable { name, .. } => Some(name),
            Piece::Literal(_) => None,
        })
    }

    /// The text with its variables filled in; the name of the first one that has no value. As in a shell, a default
    /// stands in for a variable that is empty too.
    pub(super) fn expand(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, String> {
        let mut expanded = Expanded { text: String::new(), taken: Vec::new() };
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => expanded.text.push_str(literal),
                Piece::Variable { name, default } => match (lookup(name), default) {
                    (Some(value), None) => expanded.take(name, value),
                    (Some(value), Some(_)) if !value.is_empty() => expanded.take(name, value),
                    (_, Some(default)) => expanded.text.push_str(default),
                    (None, None) => return Err(name.clone()),
                },
            }
        }
        Ok(expanded)
    }
}

impl Expanded {
    fn take(&mut self, name: &str, value: String) {
        self.text.push_str(&value);
        self.taken.push((name.to_owned(), value));
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "KEY" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_defaults_and_escapes() {
        for (text, expected) in [
            ("plain", Ok("plain")),
            ("a ${KEY} b", Ok("a value b")),
            ("${KEY}${KEY}", Ok("valuevalue")),
            ("${NONE:-x y}", Ok("x y")),
            ("${NONE:-}", Ok("")),
            ("${KEY:-x}", Ok("value")),
            ("${EMPTY}", Ok("")),
            ("${EMPTY:-x}", Ok("x")),
            ("$$ $5 $KEY $", Ok("$ $5 $KEY $")),
            ("$${KEY}", Ok("${KEY}")),
            ("$$${KEY}", Ok("$value")),
            ("ü${KEY}ü", Ok("üvalueü")),
            ("${NONE}", Err("NONE")),
        ] {
            let found = Template::parse(text).unwrap().expand(&lookup);
            assert_eq!(
                found.map(|found| found.text),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
        for text in ["${", "${KEY", "${}", "${1A}", "${a-b}", "${ KEY }", "${:-x}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_comes_back(text in any::<String>()) {
            let expanded = Template::parse(&text.replace('$', "$$")).unwrap().expand(&|_| None).unwrap();
            prop_assert_eq!(expanded.text, text);
        }

        #[test]
        fn no_text_panics(text in "[${}:A_0 -]{0,24}") {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.expand(&lookup);
            }
        }
    }
}
