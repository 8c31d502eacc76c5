//! A catalogue of 50 servers with 500 tools in 50 groups, all of them raised, and one of 500 free tools, whose checks rustc
//! evaluates without its lint against long evaluations.
#![deny(warnings, long_running_const_eval)]

use aster_runtime::__private::{BROKEN_SERVER, BROKEN_TOOL, ascii};
use aster_runtime::{Group, NativeCatalogue, ServerSpec, Tier, ToolSpec, catalogue};

/// The texts `server_00` and `a_tool_with_a_common_beginning_00_0`.
struct Text<const SERVER: usize, const TOOL: usize>;

const fn with_digits<const N: usize>(text: &[u8; N], server: usize, tool: usize) -> [u8; N] {
    let mut bytes = *text;
    let mut at = 0;
    while at < N {
        match bytes[at] {
            b'X' => bytes[at] = b'0' + (server / 10) as u8,
            b'Y' => bytes[at] = b'0' + (server % 10) as u8,
            b'Z' => bytes[at] = b'0' + tool as u8,
            _ => {}
        }
        at += 1;
    }
    bytes
}

impl<const SERVER: usize, const TOOL: usize> Text<SERVER, TOOL> {
    const SERVER_BYTES: [u8; 9] = with_digits(b"server_XY", SERVER, TOOL);
    const TOOL_BYTES: [u8; 35] = with_digits(b"a_tool_with_a_common_beginning_XY_Z", SERVER, TOOL);
    const GROUP_BYTES: [u8; 34] = with_digits(b"a_group_with_a_common_beginning_XY", SERVER, TOOL);
    const GROUP: Group = Group::__declare(ascii(&Self::GROUP_BYTES));
    const ON_SERVER: ToolSpec = ToolSpec {
        server: ascii(&Self::SERVER_BYTES),
        name: ascii(&Self::TOOL_BYTES),
        tier: Tier::Standard,
        group: Some(Self::GROUP),
        ..BROKEN_TOOL
    };
    const FREE: ToolSpec = ToolSpec { server: "free", ..Self::ON_SERVER };
}

struct Server<const SERVER: usize>;

impl<const SERVER: usize> Server<SERVER> {
    const SPEC: ServerSpec = ServerSpec {
        name: ascii(&Text::<SERVER, 0>::SERVER_BYTES),
        group: Some(Text::<SERVER, 0>::GROUP),
        tools: &[
            Text::<SERVER, 0>::ON_SERVER,
            Text::<SERVER, 1>::ON_SERVER,
            Text::<SERVER, 2>::ON_SERVER,
            Text::<SERVER, 3>::ON_SERVER,
            Text::<SERVER, 4>::ON_SERVER,
            Text::<SERVER, 5>::ON_SERVER,
            Text::<SERVER, 6>::ON_SERVER,
            Text::<SERVER, 7>::ON_SERVER,
            Text::<SERVER, 8>::ON_SERVER,
            Text::<SERVER, 9>::ON_SERVER,
        ],
        ..BROKEN_SERVER
    };
}

macro_rules! both {
    ($($server:literal)*) => {
        const SERVERS: NativeCatalogue = catalogue![
            $(Server::<$server>::SPEC),*;
            groups { $(Text::<$server, 0>::GROUP),* };
            raise {
                $(
                    Text::<$server, 0>::ON_SERVER => Elevated,
                    Text::<$server, 1>::ON_SERVER => Restricted,
                    Text::<$server, 2>::ON_SERVER => Elevated,
                    Text::<$server, 3>::ON_SERVER => Restricted,
                    Text::<$server, 4>::ON_SERVER => Elevated,
                    Text::<$server, 5>::ON_SERVER => Restricted,
                    Text::<$server, 6>::ON_SERVER => Elevated,
                    Text::<$server, 7>::ON_SERVER => Restricted,
                    Text::<$server, 8>::ON_SERVER => Elevated,
                    Text::<$server, 9>::ON_SERVER => Restricted
                ),*
            }
        ];
        both!(@free [] $($server)*);
    };
    (@free [$($done:tt)*] $server:literal $($more:literal)*) => {
        both!(@free [
            $($done)* $server 0, $server 1, $server 2, $server 3, $server 4, $server 5, $server 6, $server 7, $server 8, $server 9,
        ] $($more)*);
    };
    (@free [$($server:literal $tool:literal,)*]) => {
        const FREE: NativeCatalogue = catalogue![$(Text::<$server, $tool>::FREE),*];
    };
}

both! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42
    43 44 45 46 47 48 49
}

fn main() {
    let tools: usize = SERVERS.entries.iter().map(|entry| entry.tools().len()).sum();
    assert_eq!((SERVERS.entries.len(), tools, FREE.entries.len()), (50, 500, 500));
    assert_eq!(
        (SERVERS.raises.len(), SERVERS.raises[499].tool.name),
        (500, FREE.entries[499].tools()[0].name)
    );
    assert_eq!(FREE.entries[499].tools()[0].name, "a_tool_with_a_common_beginning_49_9");
}
