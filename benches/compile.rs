//! What annotations cost the compiler: the same tools published with Aster, with the official SDK's macros, and as plain
//! functions of the same bodies.
//!
//! ```text
//! cargo bench --bench compile              # sizes 50, 200 and 500
//! cargo bench --bench compile -- 50        # or these
//! ```
//!
//! Each crate is generated, in `target/compile`, with the lock file of this workspace. What depends on nothing of the
//! generated crate is compiled before the clock runs. Of each time the median of five runs is taken.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the figures are to be read")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const RUNS: usize = 5;

/// How tools are published.
#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Plain,
    Rmcp,
    Aster,
}

impl Subject {
    /// The one that the others are compared with comes first.
    const ALL: [Self; 3] = [Self::Rmcp, Self::Plain, Self::Aster];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain functions",
            Self::Rmcp => "rmcp",
            Self::Aster => "aster",
        }
    }

    fn dependencies(self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Rmcp => {
                let rmcp = "rmcp = { version = \"3.11\", default-features = false, features = [\"server\", \"macros\"] }";
                format!(
                    "{rmcp}\nschemars = \"1.2\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\n"
                )
            }
            Self::Aster => {
                format!("aster-runtime = {{ path = {:?} }}\n", Path::new(ROOT).join("aster-runtime"))
            }
        }
    }

    /// A program with this many tools, the body of the first of which adds `salt`.
    fn source(self, tools: usize, salt: u32) -> String {
        let mut tools_text = String::new();
        for number in 0..tools {
            let (salt, tool) = (if number == 0 { salt } else { 0 }, self.tool(number));
            tools_text += &tool.replace("SALT", &salt.to_string());
        }
        let main = match self {
            Self::Plain => {
                let calls: String = (0..tools).fold(String::new(), |mut calls, number| {
                    let _ = writeln!(calls, "    length += tool_{number}(text.clone(), 1, None).len();");
                    calls
                });
                format!(
                    "fn main() {{\n    let text = std::env::args().next().unwrap_or_default();\n    let mut length = \
                     0;\n{calls}    println!(\"{{length}}\");\n}}\n"
                )
            }
            Self::Rmcp => {
                "fn main() { println!(\"{}\", Tools::tool_router().list_all().len()); }\n".to_owned()
            }
            Self::Aster => {
                let count = "catalogue.entries.iter().map(|entry| entry.tools().len()).sum::<usize>()";
                format!(
                    "fn main() {{\n    let catalogue = aster_runtime::catalogue![tools::SERVER];\n    println!(\"{{}}\", \
                     {count});\n}}\n"
                )
            }
        };
        match self {
            Self::Plain => tools_text + &main,
            Self::Rmcp => format!(
                "use rmcp::handler::server::wrapper::Parameters;\nuse rmcp::{{schemars, tool, tool_router}};\npub struct \
                 Tools;\n#[tool_router]\nimpl Tools {{\n{tools_text}}}\n{}{main}",
                (0..tools).map(parameters).collect::<String>()
            ),
            Self::Aster => format!(
                "/// Tools.\n#[aster_runtime::mcp_server]\npub mod tools {{\n    use \
                 aster_runtime::mcp_tool;\n{tools_text}}}\n{main}"
            ),
        }
    }

    fn tool(self, number: usize) -> String {
        let body = "    format!(\"{text}{count}{loud:?}{}\", SALT)\n}\n";
        let head = match self {
            Self::Plain => {
                format!("pub fn tool_{number}(text: String, count: u32, loud: Option<bool>) -> String {{\n")
            }
            Self::Rmcp => format!(
                "#[tool(description = \"Says the text number {number}.\")]\nfn tool_{number}(&self, \
                 Parameters(Parameters{number} {{ text, count, loud }}): Parameters<Parameters{number}>) -> String {{\n"
            ),
            Self::Aster => format!(
                "/// Says the text number {number}.\n#[mcp_tool(tier = Standard)]\npub fn tool_{number}(\n    /// What to \
                 say.\n    text: String,\n    /// How often.\n    count: u32,\n    /// Whether to shout.\n    loud: \
                 Option<bool>,\n) -> String {{\n"
            ),
        };
        head + body
    }
}

/// What the official SDK's macros want for the parameters of one tool.
fn parameters(number: usize) -> String {
    format!(
        "#[derive(serde::Deserialize, schemars::JsonSchema)]\npub struct Parameters{number} {{\n    /// What to say.\n    \
         text: String,\n    /// How often.\n    count: u32,\n    /// Whether to shout.\n    loud: Option<bool>,\n}}\n"
    )
}

/// A generated crate.
struct Generated {
    subject: Subject,
    tools: usize,
    folder: PathBuf,
}

impl Generated {
    fn new(subject: Subject, tools: usize, base: &Path) -> Self {
        let name = subject.name().replace(' ', "-");
        let folder = base.join(format!("{name}-{tools}"));
        fs::create_dir_all(folder.join("src")).expect("a folder");
        let manifest = format!(
            "[package]\nname = \"measured\"\nversion = \"0.0.0\"\nedition = \
             \"2024\"\n\n[dependencies]\n{}\n[workspace]\n\n[profile.release]\nstrip = true\n",
            subject.dependencies()
        );
        fs::write(folder.join("Cargo.toml"), manifest).expect("written");
        // The same versions for all.
        fs::copy(Path::new(ROOT).join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
        let generated = Self { subject, tools, folder };
        generated.write(0);
        generated
    }

    fn write(&self, salt: u32) {
        fs::write(self.folder.join("src/main.rs"), self.subject.source(self.tools, salt)).expect("written");
    }

    fn cargo(&self, arguments: &[&str]) -> Duration {
        let target = self.folder.with_file_name(self.subject.name().replace(' ', "-"));
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(&self.folder).env("CARGO_TARGET_DIR", &target);
        command.env_remove("CARGO_INCREMENTAL").stdout(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let output = command.output().expect("cargo runs");
        let took = began.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        took
    }

    /// Of the crate alone: what it depends on is there.
    fn check(&self) -> Duration {
        self.cargo(&["check"]);
        median(|| {
            self.cargo(&["clean", "--package", "measured"]);
            self.cargo(&["check"])
        })
    }

    /// After a change in one body.
    fn recheck(&self) -> Duration {
        let mut salt = 0;
        median(|| {
            salt += 1;
            self.write(salt);
            self.cargo(&["check"])
        })
    }

    /// The size of the program, in bytes.
    fn size(&self) -> u64 {
        self.cargo(&["build", "--release"]);
        let target = self.folder.with_file_name(self.subject.name().replace(' ', "-"));
        let program = target.join("release").join(format!("measured{}", std::env::consts::EXE_SUFFIX));
        program.metadata().expect("a program").len()
    }
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..RUNS).map(|_| run()).collect();
    times.sort();
    times[RUNS / 2]
}

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![50, 200, 500] } else { given };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let base = target.join("compile");
    let mut rows = String::new();
    let mut empty = Vec::new();
    for subject in Subject::ALL {
        eprintln!("{}: what it depends on", subject.name());
        empty.push(Generated::new(subject, 1, &base).size());
    }
    for tools in sizes {
        let mut official: Option<[f64; 3]> = None;
        for (subject, empty) in Subject::ALL.into_iter().zip(&empty) {
            eprintln!("{tools} tools, {}", subject.name());
            let generated = Generated::new(subject, tools, &base);
            let (check, recheck, size) = (generated.check(), generated.recheck(), generated.size());
            let per_tool = size.saturating_sub(*empty) as f64 / tools.saturating_sub(1).max(1) as f64;
            let measured = [check.as_secs_f64(), recheck.as_secs_f64(), per_tool];
            let official = official.get_or_insert(measured);
            let [checked, rechecked, sized] = std::array::from_fn(|at| measured[at] / official[at]);
            let row = format!(
                "| {tools} | {} | {check:.2?} | {checked:.2} | {recheck:.2?} | {rechecked:.2} | {per_tool:.0} B | \
                 {sized:.2} |\n",
                subject.name(),
            );
            eprint!("{row}");
            rows += &row;
        }
    }
    println!(
        "\n| tools | | `cargo check` | ratio | again, after one body changed | ratio | program, a tool | ratio |"
    );
    println!("|--:|---|--:|--:|--:|--:|--:|--:|\n{rows}");
}
