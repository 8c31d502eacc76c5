//! The URI of a resource. It repeats `aster_runtime::uri::Template` with an arrow at the user's own literal; a test below
//! holds the two together.

use syn::{LitStr, Type};

use super::args::Judged;
use crate::diag::{Errors, codes};
use crate::parse::attr::CallableOptions;
use crate::parse::item::bare;

/// The variables of a URI in their order. `None` where it is none, which has then been reported.
pub(super) fn variables(literal: &LitStr, errors: &mut Errors) -> Option<Vec<String>> {
    match parse(&literal.value()) {
        Ok(variables) => Some(variables),
        Err(what) => {
            errors.push(literal, &codes::URI, format!("the URI is not right: {what}"));
            None
        }
    }
}

/// Whether the variables are the arguments.
pub(super) fn agrees(
    literal: &LitStr,
    variables: &[String],
    arguments: &[Judged<'_>],
    errors: &mut Errors,
) -> bool {
    let mut agrees = true;
    for variable in variables {
        if !arguments.iter().any(|(argument, _)| argument.name == *variable) {
            errors.push(literal, &codes::NO_PARAMETER, format!("the variable `{variable}` is no parameter"));
            agrees = false;
        }
    }
    for (argument, wire) in arguments {
        if !variables.contains(&argument.name) {
            let what = format!("the parameter `{}` is no variable of the URI", argument.name);
            let help = format!("write `{{{}}}` into the URI, or remove the parameter", argument.name);
            errors.push_with_help(wire, &codes::NO_VARIABLE, what, help);
            agrees = false;
        }
        if let Some(default) = &argument.default {
            let what = format!("the variable `{}` needs no default", argument.name);
            errors.push_with_help(default, &codes::ALWAYS_THERE, what, "remove `default`");
        } else if is_option(&argument.ty) {
            let what = format!("the variable `{}` is never `None`", argument.name);
            errors.push(&argument.ty, &codes::ALWAYS_THERE, what);
        }
    }
    agrees
}

/// Whether a type is written as an `Option`; by another name it is only of no use.
fn is_option(ty: &Type) -> bool {
    matches!(bare(ty), Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

/// A size where there is more than one resource to have it.
pub(super) fn size(options: &CallableOptions, variables: &[String], errors: &mut Errors) {
    if let Some(key) = options.keys.get("size").filter(|_| !variables.is_empty()) {
        errors.push(key, &codes::SIZE, "a template has no size");
    }
}

/// A MIME type that is none.
pub(super) fn mime_type(options: &CallableOptions, errors: &mut Errors) {
    let Some(literal) = &options.mime_type else { return };
    let value = literal.value();
    if !is_mime_type(&value) {
        let what = format!("`{}` is no MIME type", value.escape_debug());
        errors.push(literal, &codes::MIME_TYPE, what);
    }
}

fn is_mime_type(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= 127
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    let (names, parameters) = text.split_once(';').unwrap_or((text, "a=b"));
    let has_value = |parameter: &str| {
        let value = parameter.trim_start().split_once('=');
        value.is_some_and(|(name, value)| is_name(name) && !value.is_empty())
    };
    names.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
        && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        && parameters.split(';').all(has_value)
}

fn is_reserved(c: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(c)
}

/// The variables, or the first rule that the URI breaks.
fn parse(text: &str) -> Result<Vec<String>, String> {
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(of_scheme)
    });
    if scheme.is_none() {
        return Err("it does not begin with a scheme".to_owned());
    }
    let mut written: Vec<Written> = Vec::new();
    let mut separated = true;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, after) = rest.split_at(at);
        characters(literal)?;
        separated |= literal.contains(is_reserved);
        let inner = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let Some((expression, after)) = inner else { return Err("a brace has no other".to_owned()) };
        let name = variable(expression)?;
        written.push(Written { name, greedy: expression.starts_with('+'), separated });
        separated = false;
        rest = after;
    }
    characters(rest)?;
    for (at, variable) in written.iter().enumerate() {
        let (name, before) = (&variable.name, &written[..at]);
        if before.iter().any(|other| other.name == *name) {
            return Err(format!("the variable `{name}` stands twice"));
        }
        let greedy = before.iter().find(|other| other.greedy && variable.greedy);
        if let Some(other) = greedy.or(before.last().filter(|_| !variable.separated)) {
            return Err(format!("nothing tells where `{}` ends and `{name}` begins", other.name));
        }
    }
    Ok(written.into_iter().map(|variable| variable.name).collect())
}

/// A variable, and whether something stands before it that shows where the one before ends.
struct Written {
    name: String,
    greedy: bool,
    separated: bool,
}

fn characters(literal: &str) -> Result<(), String> {
    let mut rest = literal;
    while let Some(c) = rest.chars().next() {
        let escape = rest.as_bytes().get(1..3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match c {
            '%' if escape => rest = &rest[3..],
            c if is_reserved(c) || c.is_ascii_alphanumeric() || "-._~".contains(c) => rest = &rest[1..],
            c => return Err(format!("`{}` cannot stand in a URI", c.escape_debug())),
        }
    }
    Ok(())
}

fn variable(expression: &str) -> Result<String, String> {
    let name = expression.strip_prefix('+').unwrap_or(expression);
    if name.starts_with(|c| "#./;?&+=!@|".contains(c)) || name.contains([',', ':', '*']) {
        return Err(format!("`{{{expression}}}` is neither `{{name}}` nor `{{+name}}`"));
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)) {
        return Err(format!("`{{{expression}}}` has no name that a variable can have"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use aster_runtime::uri::Template;

    use super::*;

    #[test]
    fn what_is_a_mime_type() {
        for right in [
            "text/plain",
            "image/svg+xml",
            "application/vnd.a-b.c+json",
            "text/html; charset=utf-8;a=\"b c\"",
        ] {
            assert!(is_mime_type(right), "{right}");
        }
        for wrong in [
            "",
            "text",
            "text/",
            "/plain",
            "text/a/b",
            "text plain",
            " text/plain",
            "text/plain;",
            "text/plain; x",
            "text/plain\n",
            "text/ä",
        ] {
            assert!(!is_mime_type(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_grammar_is_the_runtimes() {
        let fixed = [
            "notes",
            "1x:a",
            "x:",
            "x:a b",
            "x:%41",
            "x:%4",
            "x:ä",
            "{a}:b",
            "x:{ä}",
            "x:{+a}/{b}/{+c}",
            "x:{a,b}",
            "x:{a:3}",
            "x:{a}/{a}",
            "x+y://{a}",
        ];
        let pieces = &["a", "/", "{a}", "{+b}", "{c}", "{", "}", ".", "{?d}", "{}"];
        let short = pieces.iter().flat_map(|first| {
            pieces.iter().flat_map(move |second| {
                pieces
                    .iter()
                    .flat_map(move |third| pieces.map(|fourth| format!("x:{first}{second}{third}{fourth}")))
            })
        });
        for text in fixed.map(str::to_owned).into_iter().chain(short) {
            let runtimes = Template::parse(&text)
                .map(|template| template.variables().map(str::to_owned).collect::<Vec<_>>())
                .map_err(|error| error.to_string());
            assert_eq!(parse(&text), runtimes, "{text}");
        }
    }
}
