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

/// The first lines of what is said to a tool.
fn told(attribute: TokenStream, function: TokenStream) -> String {
    headlines(&tool(attribute, quote!(#[doc = "Fetches a page."] #function))).join("; ")
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

/// What is all arguments has no name on the wire, so that no rule of such names is about it.
#[test]
fn what_is_all_arguments_may_be_bound_to_anything() {
    for pattern in [quote!(arguments), quote!(_page), quote!(_), quote!(Page { number }), quote!(mut _meta)] {
        let flattened = quote! { fn fetch(#[arg(flatten)] #pattern: Page) {} };
        assert_eq!(told(quote!(tier = Standard), flattened), "", "{pattern}");
        let own = quote! { fn fetch(#pattern: JsonObject) {} };
        assert_eq!(told(quote!(tier = Standard, schema = SCHEMA), own), "", "{pattern}");
    }
    let two = quote! { fn fetch(_: JsonObject, _: u8) {} };
    assert_eq!(
        told(quote!(tier = Standard, schema = SCHEMA), two),
        "tool `fetch` has a schema of its own, and 2 parameters"
    );
    let beside = quote! { fn fetch(#[arg(flatten)] page: Page, page: u8) {} };
    assert_eq!(told(quote!(tier = Standard), beside), "another argument stands beside a flattened one");
}

#[test]
fn a_schema_that_is_read_later_may_have_urls() {
    let flattened = quote! { fn fetch(#[arg(flatten)] page: Page) {} };
    assert_eq!(told(quote!(tier = Standard, egress("example.com")), flattened), "");
    let own = quote! { fn fetch(page: JsonObject) {} };
    assert_eq!(told(quote!(tier = Standard, schema = SCHEMA, egress("example.com")), own), "");
    let none = quote! { fn fetch(page: u8) {} };
    assert_eq!(
        told(quote!(tier = Standard, egress("example.com")), none),
        "`egress` limits URLs, and there are none"
    );
}

#[test]
fn an_argument_may_be_freed_where_the_gate_would_judge_it() {
    let freed = |attribute: TokenStream, argument: TokenStream| {
        let attribute = quote!(tier = Standard #attribute);
        told(attribute, quote! { fn fetch(#[arg(url = false)] #argument) {} })
    };
    for argument in [
        quote!(domain: String),
        quote!(page_url: Option<Box<str>>),
        quote!(pageUrl: Cow<'static, str>),
        quote!(link: Vec<String>),
        quote!(page: Url),
        quote!(page: Page),
    ] {
        assert_eq!(freed(quote!(), argument.clone()), "", "{argument}");
    }
    assert_eq!(freed(quote!(, open_world), quote!(page: String)), "");
    for argument in [quote!(page: String), quote!(link_type: String), quote!(domain: u8), quote!(url: bool)] {
        let name = argument.to_string().split(' ').next().unwrap().to_owned();
        let said = format!("argument `{name}` is not taken for a destination");
        assert_eq!(freed(quote!(), argument), said);
    }
}

#[test]
fn a_text_is_a_url_by_the_words_of_its_name() {
    let output = pretty(tool(
        quote!(tier = Standard, egress("example.com")),
        quote! {
            /// Fetches pages.
            fn fetch(
                #[arg(name = "pageUrl")] page: String,
                #[arg(name = "baseURLs")] bases: Vec<String>,
                curl: String,
                domain: String,
            ) {}
        },
    ));
    assert!(output.contains(r#"url_arguments: &["pageUrl", "baseURLs"]"#), "{output}");
}

#[test]
fn what_a_server_cannot_read_is_told() {
    let said = |members: TokenStream| {
        let (tokens, errors) = mcp_server(quote!(), quote!(mod web { #members }));
        (headlines(&(TokenStream::new(), errors)).join("; "), tokens.to_string())
    };
    let hidden = |attribute: TokenStream| {
        said(quote! {
            #[cfg_attr(#attribute)]
            fn fetch() {}
        })
    };
    for attribute in [
        quote!(unix, mcp_tool(tier = Standard)),
        quote!(all(unix, test), inline, aster::mcp_tool(tier = Standard)),
        quote!(unix, cfg_attr(test, mcp_tool(tier = Standard))),
    ] {
        let (told, tokens) = hidden(attribute);
        assert_eq!(told, "`cfg_attr` hides `mcp_tool` from `#[mcp_server]`");
        assert!(
            tokens.contains("fn fetch") && !tokens.contains("mcp_tool"),
            "it would be expanded: {tokens}"
        );
    }
    let published = |attribute: TokenStream| {
        let tool = quote! {
            #[doc = "Fetches a page."]
            #[mcp_tool(tier = Standard)]
            #[cfg_attr(#attribute)]
            fn fetch() {}
        };
        said(tool).0
    };
    assert_eq!(published(quote!(unix, cfg(test))), "`cfg_attr` hides `cfg` from `#[mcp_server]`");
    // What it says more is for those who read the source.
    assert_eq!(published(quote!(docsrs, doc = "More.")), "");
    assert_eq!(published(quote!(mcp_tool, inline)), "");
    assert_eq!(published(quote!(docsrs, doc(cfg(unix)))), "");
    assert_eq!(
        said(quote! {
            use aster::{mcp_tool as tool, mcp_prompt};
            #[tool(tier = Standard)]
            fn fetch() {}
        })
        .0,
        "`#[mcp_server]` does not know `#[mcp_tool]` as `#[tool]`"
    );
}

#[test]
fn a_server_whose_only_tool_is_not_known_is_told_once() {
    let (_, errors) = mcp_server(quote!(), quote!(impl Web { #[tool(tier = Standard)] fn fetch(&self) {} }));
    assert!(errors.is_empty(), "the attribute tells it: {errors:?}");
    let (_, errors) = tool(
        quote!(tier = Standard),
        quote!(
            #[doc = "Fetches a page."]
            fn fetch(&self) {}
        ),
    );
    assert!(errors[0].to_string().contains("under its own name"), "{errors:?}");
    // In a module that attribute makes a tool of the package, and tells nothing.
    let module = mcp_server(
        quote!(),
        quote!(
            mod web {
                #[tool(tier = Standard)]
                fn fetch() {}
            }
        ),
    );
    assert_eq!(headlines(&module), ["server `web` has no tools"]);
    let other = mcp_server(quote!(), quote!(impl Web { #[other(retries = 3)] fn fetch(&self) {} }));
    assert_eq!(headlines(&other), ["server `web` has no tools"]);
}

#[test]
fn a_parameter_hides_nothing_under_a_condition() {
    for attribute in [quote!(arg(url)), quote!(doc = "Which one."), quote!(cfg(test))] {
        let output = tool(
            quote!(tier = Standard),
            quote! {
                /// Fetches a page.
                fn fetch(#[cfg_attr(unix, #attribute)] #[cfg_attr(unix, allow(unused))] page: String) {}
            },
        );
        assert_eq!(headlines(&output), ["an argument cannot have a condition"]);
        let tokens = output.0.to_string();
        assert!(tokens.contains("allow (unused)") && !tokens.contains(&attribute.to_string()), "{tokens}");
    }
}

/// What a path means where the module stands, and is made to mean inside of it.
#[test]
fn the_runtime_is_found_from_inside_of_a_module() {
    let inside = |path: TokenStream| {
        let output = mcp_server(
            quote!(crate = #path, group = GROUP),
            quote! {
                mod clock {
                    /// Tells the time.
                    #[mcp_tool(tier = Standard)]
                    fn now() {}
                }
            },
        );
        let output = pretty(output).replace(char::is_whitespace, "");
        let (inside, outside) = output.split_once("implrt").or(output.split_once("impl")).unwrap();
        (inside.to_owned(), outside.to_owned())
    };
    for (path, is) in [
        (quote!(self::facade::aster), "super::facade::aster::__private"),
        (quote!(super::aster), "super::super::aster::__private"),
        (quote!(crate::aster), "crate::aster::__private"),
        (quote!(::aster), "::aster::__private"),
        (quote!(mycrate::aster), "__aster_facade::__private"),
        (quote!(rt::aster), "__aster_facade::__private"),
    ] {
        let (inside, _) = inside(path.clone());
        assert!(inside.contains(&format!("&'static{is}::ServerSpec")), "{path}: {inside}");
    }
    let (inside, _) = inside(quote!(rt));
    assert!(inside.contains("usesuper::super::*;pub(super)usert::__private;"), "{inside}");
}

#[test]
fn a_tier_under_another_name_is_not_missing_as_well() {
    let help = |attribute: TokenStream| {
        let (_, errors) = tool(
            attribute,
            quote!(
                #[doc = "Fetches a page."]
                fn fetch() {}
            ),
        );
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        error.to_string().lines().take(2).collect::<Vec<_>>().join("; ")
    };
    let unknown = "unknown option `level` for `#[mcp_tool]`; help: write `tier = Elevated`";
    assert_eq!(help(quote!(level = Elevated)), unknown);
    assert_eq!(help(quote!(level = "elevated")), unknown);
    assert_eq!(help(quote!(level = Tier::Elevated)), unknown);
    assert!(help(quote!(level = 3, tier = Standard)).contains("expected one of: `tier`, "));
    for written in [quote!(tier = "restricted"), quote!(tier("RESTRICTED")), quote!(tier = Tier::Restricted)]
    {
        assert!(help(written.clone()).ends_with("help: write `tier = Restricted`"), "{written}");
    }
}

#[test]
fn a_section_of_arguments_stays_where_one_value_is_all_of_them() {
    let parameter = |parameter: TokenStream, attribute: TokenStream| {
        pretty(tool(
            quote!(tier = Standard #attribute),
            quote! {
                /// Fetches a page.
                ///
                /// # Arguments
                ///
                /// * `number` - which one
                fn fetch(#parameter) {}
            },
        ))
    };
    let whole = r#""Fetches a page.\n\n# Arguments\n\n* `number` - which one""#;
    let flattened = parameter(quote!(#[arg(flatten)] page: Page), quote!());
    assert!(flattened.contains(whole), "{flattened}");
    let own = parameter(quote!(page: JsonObject), quote!(, schema = SCHEMA));
    assert!(own.contains(whole), "{own}");
    let alone = parameter(quote!(number: u8), quote!());
    assert!(alone.contains(r#""Fetches a page.""#) && !alone.contains(whole), "{alone}");
}

#[test]
fn an_argument_is_described_with_a_word_in_brackets() {
    let output = pretty(tool(
        quote!(tier = Standard),
        quote! {
            /// Fetches a page.
            ///
            /// # Arguments
            ///
            /// * `page` - which one
            /// * `depth` (optional) - how far to follow links
            fn fetch(page: String, depth: Option<u8>) {}
        },
    ));
    assert!(
        output.contains(r#""which one""#) && output.contains(r#""(optional) how far to follow links""#),
        "{output}"
    );
}

#[test]
fn lifetimes_and_receivers_that_share_are_let_through() {
    let said = |method: TokenStream| {
        let method = quote!(#[doc = "Fetches a page."] #[mcp_tool(tier = Standard)] #method);
        headlines(&mcp_server(quote!(), quote!(impl Web { #method }))).join("; ")
    };
    assert_eq!(
        said(quote!(
            fn fetch<'a, 'b>(&self)
            where
                'a: 'b,
            {
            }
        )),
        ""
    );
    assert_eq!(
        said(quote!(
            fn fetch<'a>(&self)
            where
                'a: 'a,
                u8: Copy,
            {
            }
        )),
        "a tool cannot be generic"
    );
    assert_eq!(
        said(quote!(
            fn fetch(self: &Web) {}
        )),
        ""
    );
    assert_eq!(
        said(quote!(
            fn fetch(self: &crate::Web) {}
        )),
        ""
    );
    let needs = "tool `fetch` needs its server for itself";
    assert_eq!(
        said(quote!(
            fn fetch(self: &Arc<Self>) {}
        )),
        needs
    );
    assert_eq!(
        said(quote!(
            fn fetch(self: &mut Web) {}
        )),
        needs
    );
    let lent = "tool `fetch` has its server for one call";
    assert_eq!(
        said(quote!(
            fn fetch(&'static self) {}
        )),
        lent
    );
    assert_eq!(
        said(quote!(
            fn fetch(self: &'static Self) {}
        )),
        lent
    );
    assert_eq!(
        said(quote!(
            fn fetch(&self, ctx: &'static ToolContext) {}
        )),
        "the context is shared with the host"
    );
}

#[test]
fn a_context_of_another_is_an_argument() {
    let said = |parameter: TokenStream| told(quote!(tier = Standard), quote!(fn fetch(#parameter) {}));
    assert_eq!(said(quote!(context: mine::ToolContext)), "");
    assert_eq!(said(quote!(context: Option<mine::ToolContext>)), "");
    for own in [quote!(ToolContext), quote!(&mut mine::ToolContext), quote!(Arc<aster_runtime::ToolContext>)]
    {
        assert_eq!(said(quote!(context: #own)), "the context is shared with the host", "{own}");
    }
}

#[test]
fn a_sentence_may_begin_with_a_mark() {
    let said = |text: &str| {
        headlines(&tool(quote!(tier = Standard), quote!(#[doc = #text] fn fetch() {}))).join("; ")
    };
    assert_eq!(said("TODO items due today."), "");
    let nothing = "the description of tool `fetch` says nothing";
    for text in ["TODO", "TODO.", "TODO: say what it does", "TODO(anna) say what it does", "FIXME - soon"] {
        assert_eq!(said(text), nothing, "{text}");
    }
}

#[test]
fn a_resource_is_judged_to_its_end() {
    let said = |uri: &str, parameter: TokenStream| {
        let output = callable(
            Kind::Resource,
            quote!(uri = #uri, tier = Standard, mime_type = "text"),
            quote!(#[doc = "One note."] fn note(#parameter) -> String {}),
        );
        headlines(&output).join("; ")
    };
    let both = "`text` is no MIME type; the URI is not right: it does not begin with a scheme";
    assert_eq!(said("notes", quote!()), both);
    let option = proc_macro2::TokenTree::from(proc_macro2::Group::new(
        proc_macro2::Delimiter::None,
        quote!(Option<String>),
    ));
    assert_eq!(
        said("notes:{id}", quote!(id: #option)),
        "`text` is no MIME type; the variable `id` is never `None`"
    );
}

#[test]
fn a_raw_name_is_the_same_option() {
    assert_eq!(
        told(
            quote!(tier = Standard, r#name = "a", name = "b"),
            quote!(
                fn fetch() {}
            )
        ),
        "`name` is given twice; the first one is here"
    );
}

#[test]
fn a_type_that_is_called_almost_like_a_number_is_not_one() {
    let said =
        |ty: TokenStream| told(quote!(tier = Standard), quote!(fn fetch(#[arg(default = 256)] page: #ty) {}));
    assert_eq!(said(quote!(u8)), "this default is outside of its type");
    for own in [quote!(i0), quote!(u0), quote!(i2), quote!(u65)] {
        assert_eq!(said(own.clone()), "", "{own}");
    }
}

/// A crate may forbid what it does not do; a lint that is forbidden cannot be allowed.
#[test]
fn nothing_is_allowed_that_is_not_done() {
    let server = |attribute: TokenStream| {
        pretty(mcp_server(
            quote!(),
            quote!(impl Web { #[doc = "Fetches a page."] #attribute #[mcp_tool(tier = Standard)] fn fetch() {} }),
        ))
    };
    assert!(!server(quote!()).contains("allow(deprecated") && !server(quote!()).contains("unreachable_code"));
    for attribute in [
        quote!(#[deprecated = "use `get`"]),
        quote!(#[allow(unused, deprecated)]),
        quote!(#[cfg_attr(feature = "v2", deprecated)]),
    ] {
        assert!(server(attribute.clone()).contains("allow(deprecated,"), "{attribute}");
    }
}
