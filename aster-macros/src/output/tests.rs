//! Expansions as they are read, and the errors of a macro call as they are counted.

use quote::quote;

use super::*;
use crate::parse::source::Around;

fn tool(attribute: TokenStream, tokens: TokenStream) -> Output {
    callable(Kind::Tool, attribute, tokens)
}

/// The output as formatted source.
fn pretty((tokens, errors): Output) -> String {
    assert!(errors.is_empty(), "{errors:?}");
    prettyplease::unparse(&syn::parse2(expand::callable::flat(tokens)).unwrap())
}

/// Compares with the snapshot, without repeating the input there.
macro_rules! snapshot {
    ($output:expr) => {
        insta::with_settings!({omit_expression => true}, { insta::assert_snapshot!($output) })
    };
}

/// The first line of each error.
fn headlines((_, errors): &Output) -> Vec<String> {
    errors.iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_free_function() {
    snapshot!(pretty(tool(
        quote!(tier = Standard, hot),
        quote! {
            /// Adds two whole numbers.
            pub fn add(
                /// The first summand.
                a: i64,
                #[arg(default = 1, range(0..=10))] b: i64,
            ) -> i64 {
                a + b
            }
        },
    )));
}

#[test]
fn an_impl() {
    snapshot!(pretty(mcp_server(
        quote!(group = groups::RESEARCH, instructions = "Search first."),
        quote! {
            /// Looks things up.
            impl Web {
                /// Searches the web.
                #[mcp_tool(tier = Elevated, read_only, timeout = "30s")]
                async fn search(&self, ctx: &ToolContext, query: String) -> Result<Json<Vec<Hit>>, Error> {
                    self.find(ctx, query).await
                }

                /// Opens a page.
                #[cfg(unix)]
                #[mcp_tool(tier = Restricted, name = "open")]
                fn open_page(#[arg(url)] page: Url) {}

                fn find(&self) {}
            }
        },
    )));
}

#[test]
fn a_module_and_a_facade() {
    let output = pretty(mcp_server(
        quote!(crate = my_facade::aster),
        quote! {
            pub mod clock {
                //! Tells the time.

                /// Tells the time.
                #[mcp_tool(tier = Standard)]
                fn now() -> String {
                    time()
                }
            }
        },
    ));
    assert!(!output.contains("aster_runtime"), "{output}");
    snapshot!(output);
}

#[test]
fn a_resource_and_a_prompt() {
    let resource = callable(
        Kind::Resource,
        quote!(uri = "notes://{id}", mime_type = "text/plain", tier = Standard, server = "notes"),
        quote! {
            /// One note.
            async fn note(#[arg(complete = ids)] id: String) -> Option<String> {
                find(id).await
            }
        },
    );
    let prompt = callable(
        Kind::Prompt,
        quote!(tier = Standard, server = "notes"),
        quote! {
            /// Asks for a review.
            fn review(#[arg(complete = ["draft", "final"])] state: Option<String>) -> String {
                ask(state)
            }
        },
    );
    snapshot!(format!("{}\n{}", pretty(resource), pretty(prompt)));
}

#[test]
fn every_mistake_is_told_and_the_item_stays() {
    let output = mcp_server(
        quote!(titel = "The web", name = "the web"),
        quote! {
            impl Web {
                #[mcp_tool(tier = Standard, timeout = "soon")]
                fn search<T>(&mut self, (query, limit): (String, T)) {}
                /// Fetches a page.
                #[mcp_tool]
                fn fetch(page: &str, __aster: u8) -> impl Sized {}
                fn helper() {}
            }
        },
    );
    assert_eq!(
        headlines(&output),
        [
            "unknown option `titel` for `#[mcp_server]`",
            "` ` cannot appear in the name `the web`",
            "`timeout` takes a whole number above zero with the unit `ms`, `s` or `m`",
            "a tool cannot be generic",
            "tool `search` needs its server for itself",
            "an argument cannot be taken apart",
            "tool `search` has no description",
            "tool `fetch` does not name what it returns",
            "an argument cannot be borrowed",
            "the argument name `__aster` is reserved",
            "tool `fetch` has no tier",
        ]
    );
    let tokens = output.0.to_string();
    assert!(
        tokens.contains("fn helper") && tokens.contains("enum WebTool") && tokens.contains("BROKEN_SERVER")
    );
}

#[test]
fn a_misspelt_tier_is_not_missing_as_well() {
    let output = tool(
        quote!(teir = Standard),
        quote! {
            /// Fetches a page.
            fn fetch() {}
        },
    );
    assert_eq!(headlines(&output), ["unknown option `teir` for `#[mcp_tool]`"]);
}

#[test]
fn what_macro_rules_hands_over_is_understood() {
    // An invisible group is what `$ty:ty` becomes.
    let grouped = |tokens: TokenStream| {
        proc_macro2::TokenTree::from(proc_macro2::Group::new(proc_macro2::Delimiter::None, tokens))
    };
    let (context, borrowed) = (grouped(quote!(&ToolContext)), grouped(quote!(&str)));
    let output = tool(
        quote!(tier = Standard),
        quote! {
            /// Fetches a page.
            fn fetch(ctx: #context, page: #borrowed) {}
        },
    );
    assert_eq!(headlines(&output), ["an argument cannot be borrowed"]);
}

#[test]
fn a_method_without_its_server_stays_alone() {
    for method in [
        quote!(
            fn fetch(&self) {}
        ),
        quote!(
            fn fetch() -> Json<Self> {}
        ),
        quote!(
            fn fetch() -> Self;
        ),
    ] {
        let (tokens, errors) = tool(quote!(tier = Standard), quote!(#[doc = "Fetches a page."] #method));
        assert_eq!(errors.len(), 1);
        assert!(tokens.to_string().ends_with(&method.to_string()), "{tokens}");
    }
}

/// What stands for a function that is not right, by what is around it.
fn repaired(around: Around, function: TokenStream) -> String {
    let mut function = item::function(function).unwrap();
    expand::fallback::repair(&mut function, around);
    let (signature, body) = (&function.signature, &function.body);
    // What comes before `...` keeps its comma.
    quote!(#signature #body).to_string().replace(" ,)", ")")
}

#[test]
fn what_rustc_would_report_once_more_is_gone() {
    let is = |around, function: TokenStream, expected: TokenStream| {
        assert_eq!(repaired(around, function), expected.to_string(), "{around:?}");
    };
    use Around::{Extern, Impl, Module, Trait, Unknown};
    for around in [Module, Impl] {
        is(
            around,
            quote!(
                fn page(page: &Page) -> u8;
            ),
            quote!(
                fn page(_: &Page) -> u8 {
                    loop {}
                }
            ),
        );
        is(
            around,
            quote!(
                fn page(a: u8) -> Vec<impl Sized>;
            ),
            quote!(
                fn page(_: u8) -> ! {
                    loop {}
                }
            ),
        );
    }
    for around in [Trait, Extern, Unknown] {
        is(
            around,
            quote!(
                fn page(self, page: Page) -> u8;
            ),
            quote!(
                fn page(self, page: Page) -> u8;
            ),
        );
        is(
            around,
            quote!(
                fn page(a: u8, ...);
            ),
            quote!(
                fn page(a: u8, ...);
            ),
        );
    }
    for around in [Trait, Extern, Unknown, Module, Impl] {
        is(
            around,
            quote!(
                unsafe fn page(a: u8, ...) {
                    a
                }
            ),
            quote!(
                unsafe fn page(_: u8) {
                    loop {}
                }
            ),
        );
    }
    is(
        Module,
        quote!(
            fn page(&self, a: u8) -> impl Sized {
                self.0
            }
        ),
        quote!(
            fn page(_: u8) -> ! {
                loop {}
            }
        ),
    );
    for around in [Trait, Unknown, Impl] {
        let method = quote!(
            fn page(&mut self, a: u8) {
                self.0 = a
            }
        );
        is(around, method.clone(), method);
    }
}

#[test]
fn a_pair_of_attributes_is_told_at_its_second_name() {
    let output = mcp_server(
        quote!(),
        quote! {
            #[aster_runtime::mcp_server(name = "web")]
            impl Web {
                /// Reads a page.
                #[mcp_tool(tier = Standard)]
                fn page(&self) {}
            }
        },
    );
    assert_eq!(headlines(&output), ["`#[mcp_server]` is given twice"]);
    assert!(!output.0.to_string().contains("mcp_server"), "it would be expanded once more: {}", output.0);
}

#[test]
fn a_second_block_is_no_server_without_tools() {
    let mut errors = Errors::default();
    let item = quote! {
        impl Web {
            const SERVER: u8 = 1;
            fn helper() {}
        }
    };
    let item = item::server(item, &mut errors).unwrap();
    let ServerItem::Impl(block) = &item else { unreachable!("an `impl` was given") };
    let options = ServerOptions::parse(quote!(), &mut errors);
    check::server::second(&item, block, &options, &mut errors);
    assert!(errors.is_empty());
}

#[test]
fn numbers_are_compared_where_they_are_written() {
    let judged = |option: TokenStream| {
        let output = tool(
            quote!(tier = Standard),
            quote! {
                /// Lists the pages.
                fn list(#[arg(#option)] limit: i64) {}
            },
        );
        headlines(&output).join("; ")
    };
    assert_eq!(judged(quote!(range(-1..=-2))), "no number is in this range");
    assert_eq!(judged(quote!(range(1_000..=0x10))), "no number is in this range");
    assert_eq!(judged(quote!(range(1..=1), default = 1)), "");
    assert_eq!(judged(quote!(range(..=9), default = Some(10))), "the default is outside of the range");
    assert_eq!(judged(quote!(range(0..), default = (-1))), "the default is outside of the range");
    assert_eq!(judged(quote!(range(MAX..=1), default = DEFAULT)), "");
    assert_eq!(judged(quote!(range(0.5..))), "this bound is not a whole number");
    assert_eq!(judged(quote!(range("a"..))), "this bound is not a number");
    assert_eq!(judged(quote!(range(..=9223372036854775808))), "this bound is outside of its type");
    assert_eq!(judged(quote!(range(-9223372036854775808..))), "");
    assert_eq!(
        judged(quote!(length(-1..=1.5))),
        "this length is below zero; this length is not a whole number"
    );
}

#[test]
fn whole_bounds_are_bounds_of_floating_point_numbers() {
    let output = pretty(tool(
        quote!(tier = Standard),
        quote! {
            /// Mixes.
            fn mix(#[arg(range(-1..=(2)))] share: Option<f64>, #[arg(range(0..=1))] whole: Share) {}
        },
    ));
    assert!(output.contains("Some(-1.0)") && output.contains("Some((2.0))"), "{output}");
    // Of what an alias stands for nothing is known.
    assert!(output.contains("Some(0)") && output.contains("Some(1)"), "{output}");
}

#[test]
fn help_knows_the_case() {
    let help = |function: TokenStream| {
        let (_, errors) = tool(quote!(tier = Standard), quote!(#[doc = "Fetches a page."] #function));
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        error.to_string().lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        help(quote!(
            fn fetch() -> impl std::future::Future<Output = String> {}
        )),
        "help: write `async fn`, and what it gives"
    );
    assert_eq!(
        help(quote!(
            fn fetch(ctx: &Ctx) {}
        )),
        "help: use `Ctx`; if it is the context, write `&ToolContext` under its own name"
    );
    assert_eq!(
        help(quote!(
            fn fetch(first: u8, second: &Page) {}
        )),
        "help: use `Page`"
    );
    assert_eq!(
        help(quote!(
            fn fetch(page: &kurbo::Path) {}
        )),
        "help: use `kurbo::Path`; if it is the context, write `&ToolContext` under its own name"
    );
    for (borrowed, owned) in [
        (quote!(&Path), "help: use `PathBuf`, if `Path` is the standard library's"),
        (quote!(&std::path::Path), "help: use `std::path::PathBuf`"),
        (quote!(&OsStr), "help: use `OsString`, if `OsStr` is the standard library's"),
        (quote!(&mut core::ffi::CStr), "help: use `core::ffi::CString`"),
        (quote!(&axum::extract::Path<u8>), "help: use `axum::extract::Path<u8>`"),
        (quote!(&Option<&str>), "help: use `Option<String>`"),
        (quote!(Option<&path::Path>), "help: use `path::PathBuf`, if `Path` is the standard library's"),
        (quote!(&Cow<'_, str>), "help: use `String`"),
        (quote!(Option<Cow<'a, [u8]>>), "help: use `Option<Vec<u8>>`"),
        (quote!(&Page<'a>), "help: use an owned type"),
        (quote!(Page<'a>), "help: use an owned type"),
        (quote!(&(&str, u8)), "help: use an owned type"),
        (quote!(&(u8, u8)), "help: use `(u8, u8)`"),
        (quote!(&&str), "help: use `String`"),
        (quote!(&Box<str>), "help: use `Box<str>`"),
        (quote!(&std::sync::Arc<Path>), "help: use `std::sync::Arc<Path>`"),
        (quote!(&Arc<[&str]>), "help: use `Arc<Vec<String>>`"),
        (quote!(&Box<dyn Display>), "help: use an owned type"),
        (quote!(&[&str]), "help: use `Vec<String>`"),
        (quote!(&[Option<u8>]), "help: use `Vec<Option<u8>>`"),
        (quote!(&dyn Display), "help: use an owned type"),
    ] {
        assert_eq!(help(quote!(fn fetch(page: #borrowed) {})), owned);
    }
}

#[test]
fn an_entry_point_is_no_tool() {
    for attribute in [quote!(#[tokio::main]), quote!(#[test]), quote!(#[tokio::test(start_paused = true)])] {
        let (_, errors) =
            tool(quote!(tier = Standard), quote!(#[doc = "Fetches a page."] #attribute fn fetch() {}));
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        let path = attribute.to_string().split('(').next().unwrap().replace([' ', ']'], "");
        assert!(
            error.to_string().starts_with(&format!("`{path}]` cannot stand beside `#[mcp_tool]`\nhelp: ")),
            "{error}"
        );
    }
}

#[test]
fn a_named_lifetime_is_left_open() {
    let tokens = pretty(mcp_server(
        quote!(),
        quote! {
            impl Web {
                /// Reads a page.
                #[mcp_tool(tier = Standard)]
                fn page<'a>(&'a self) -> Result<Cow<'a, str>, &'static str> {}
            }
        },
    ));
    let words: Vec<&str> = tokens.split_whitespace().collect();
    assert!(words.join(" ").contains("Returned::< Result<Cow<'_, str>, &'static str>,"), "{tokens}");
}

#[test]
fn the_help_names_the_attribute_that_was_written() {
    for kind in [Kind::Tool, Kind::Resource, Kind::Prompt] {
        let (_, errors) = callable(
            kind,
            quote!(tier = Standard),
            quote!(
                struct Page;
            ),
        );
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        let help = format!("help: put `#[{}]` on a function", kind.attribute());
        assert!(error.to_string().contains(&help), "{error}");
    }
}

/// What `docs/errors/README.md` says of the mistakes that have no UI test of the same words.
#[test]
fn the_table_beside_the_official_sdk_is_right() {
    let told = |attribute: TokenStream, function: TokenStream| {
        let (_, errors) = tool(attribute, quote!(#[doc = "Fetches a page."] #function));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let fetch = quote!(
        fn fetch() {}
    );
    let misspelt = told(quote!(tier = Standard, descripton = "Fetches a page."), fetch.clone());
    assert!(
        misspelt.starts_with("unknown option `descripton`") && misspelt.contains("is the doc comment"),
        "{misspelt}"
    );
    let named = told(quote!(tier = Standard, name = "fetch page/now"), fetch);
    assert!(named.starts_with("` ` cannot appear") && named.contains("fetch_page_now"), "{named}");
    let whole = told(
        quote!(tier = Standard),
        quote!(
            fn fetch(#[arg(flatten)] page: String) {}
        ),
    );
    assert!(whole.starts_with("a single value is not a struct that could be flattened"), "{whole}");

    let both = mcp_server(
        quote!(),
        quote! {
            impl Web {
                /// Fetches a page.
                #[mcp_tool(tier = Standard, nam = "a")]
                fn fetch(&self) {}
                /// Searches the web.
                #[mcp_tool(tier = Standard, name = 3)]
                fn search(&self) {}
            }
        },
    );
    assert_eq!(headlines(&both), ["unknown option `nam` for `#[mcp_tool]`", "`name` takes a string literal"]);
}

/// What an expansion uses comes through the runtime, so that a crate needs neither serde nor schemars of its own.
#[test]
fn expansions_go_through_one_door() {
    let (tokens, errors) = mcp_server(
        quote!(group = RESEARCH),
        quote! {
            impl Web {
                /// Searches the web.
                #[mcp_tool(tier = Elevated, timeout = "30s", egress("example.com"))]
                async fn search(
                    &self,
                    ctx: &ToolContext,
                    #[arg(default = 5, range(1..=20), example = 3)] limit: u8,
                    #[arg(length(1..), pattern = "a", secret)] text: Vec<u8>,
                    url: Url,
                ) -> Json<u8> {}
            }
        },
    );
    assert!(errors.is_empty(), "{errors:?}");
    let tokens = tokens.to_string();
    for banned in ["serde", "schemars", "inventory", ":: std", ":: core", ":: alloc"] {
        assert!(!tokens.contains(banned), "`{banned}` in {tokens}");
    }
}

#[test]
fn an_item_is_known_by_its_name() {
    let name = |tokens: TokenStream| item::name(tokens).map(|name| name.to_string());
    assert_eq!(
        name(quote!(
            #[inline]
            pub async fn fetch() {}
        ))
        .as_deref(),
        Some("fetch")
    );
    assert_eq!(name(quote!(impl Web { fn fetch() {} })).as_deref(), Some("Web"));
    assert_eq!(
        name(quote!(
            pub mod clock {}
        ))
        .as_deref(),
        Some("clock")
    );
    for server in [
        quote!(impl Web<'_> {}),
        quote!(
            impl<T: Into<fn() -> u8>, const N: usize> Web<T> where T: Copy {}
        ),
        quote!(impl super::pages::Web {}),
        quote!(
            impl<'a> super::Server<'a> for crate::Web {}
        ),
    ] {
        assert_eq!(name(server).as_deref(), Some("Web"));
    }
    assert_eq!(name(quote!()), None);
}

/// An editor expands what is half typed. The item is there each time, so that it goes on knowing it.
#[test]
fn the_item_survives_an_attribute_that_is_half_typed() {
    let item = quote! {
        /// Fetches a page.
        fn fetch(page: String) -> String { page }
    };
    for attribute in [
        "",
        "t",
        "tier",
        "tier =",
        "tier = S",
        "tier = Standard,",
        "tier = Standard, name = ",
        "egress(",
        "tier = ,",
    ] {
        let Ok(attribute) = attribute.parse::<TokenStream>() else { continue };
        let (tokens, _) = tool(attribute.clone(), item.clone());
        let shown = tokens.to_string();
        assert!(shown.contains("fn fetch (page : String)") && shown.contains("TOOL"), "{attribute}: {shown}");

        let (tokens, _) = mcp_server(attribute.clone(), quote!(impl Web { #[mcp_tool(#attribute)] #item }));
        let shown = tokens.to_string();
        assert!(
            shown.contains("fn fetch (page : String)") && shown.contains("SERVER"),
            "{attribute}: {shown}"
        );
    }
    for half in [quote!(fn fetch(page: ) {}), quote!(fn fetch(page: String) -> ), quote!(impl Web { fn })] {
        let (tokens, errors) = tool(quote!(tier = Standard), half.clone());
        assert!(tokens.to_string() == half.to_string() && errors.len() == 1, "{tokens} {errors:?}");
    }
}

#[test]
fn a_section_of_arguments_describes_them() {
    let output = pretty(tool(
        quote!(tier = Standard),
        quote! {
            /// Fetches a page.
            ///
            /// # Arguments
            ///
            /// * `page` - which one,
            ///   by its address
            /// - depth: how far to follow links
            ///
            /// # When to use it
            ///
            /// Often.
            fn fetch(ctx: &ToolContext, page: String, #[arg(name = "levels")] depth: u8) {}
        },
    ));
    assert!(output.contains(r#""Fetches a page.\n\n# When to use it\n\nOften.""#), "{output}");
    assert!(
        output.contains(r#""which one,\nby its address""#) && output.contains(r#""how far to follow links""#),
        "{output}"
    );
}

#[test]
fn an_expansion_is_printed_as_source_where_there_is_a_formatter() {
    let source = "mod web { fn fetch ( ) { } }";
    assert_eq!(formatted("a formatter that is not there", source), None);
    assert_eq!(formatted("rustfmt", "fn ("), None);
    assert_eq!(formatted("rustfmt", source).as_deref(), Some("mod web {\n    fn fetch() {}\n}\n"));
}

/// What `ASTER_MACROS_DEBUG=name` prints.
#[test]
fn one_expansion_is_shown_by_its_name() {
    let item = quote!(
        /// Adds.
        fn add(a: i64) -> i64 {
            a
        }
    );
    let expansion = join(tool(quote!(tier = Standard), item.clone()));
    let printed = shown(&item, &expansion, "add").unwrap();
    for line in [
        "fn add(a: i64) -> i64 {",
        "enum add {}",
        "const TOOL: ",
        "tier: ::aster_runtime::__private::Tier::Standard,",
    ] {
        assert!(printed.contains(line), "{line} is missing in:\n{printed}");
    }
    assert_eq!(shown(&item, &expansion, "ad"), None);

    let item = quote!(
        impl Web {
            /// Adds.
            #[mcp_tool(tier = Standard)]
            fn add() {}
        }
    );
    let expansion = join(mcp_server(TokenStream::new(), item.clone()));
    assert!(shown(&item, &expansion, "Web").unwrap().contains("pub enum WebTool {"));
    assert_eq!(shown(&item, &expansion, "add"), None);
}
