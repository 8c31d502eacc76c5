//! A catalogue of 50 servers with 500 tools in 50 groups, as the macros write them and all of them raised, and one of 500 free
//! tools: what rustc evaluates for them, the static maps among it, passes without its lint against long evaluations.
#![deny(warnings, long_running_const_eval)]

use aster_runtime::__private::{BROKEN_TOOL, ascii};
use aster_runtime::{NativeCatalogue, Tier, ToolSpec, catalogue, groups};

macro_rules! servers {
    ($($server:ident $group:ident $number:literal)*) => {
        groups! { $(pub $group),* }

        $(
            /// One of fifty.
            #[aster_runtime::mcp_server(group = $group)]
            pub mod $server {
                use aster_runtime::mcp_tool;

                /// The first one of the server.
                #[mcp_tool(tier = Standard)]
                pub fn a_tool_with_a_common_beginning_0() {}
                /// The second one of the server.
                #[mcp_tool(tier = Standard)]
                pub fn a_tool_with_a_common_beginning_1() {}
                /// The third one of the server.
                #[mcp_tool(tier = Standard)]
                pub fn a_tool_with_a_common_beginning_2() {}
                /// The fourth one of the server.
                #[mcp_tool(tier = Standard)]
                pub fn a_tool_with_a_common_beginning_3() {}
                /// The fifth one of the server.
                #[mcp_tool(tier = Standard)]
                pub fn a_tool_with_a_common_beginning_4() {}
                /// The sixth one of the server.
                #[mcp_tool(tier = Elevated)]
                pub fn a_tool_with_a_common_beginning_5() {}
                /// The seventh one of the server.
                #[mcp_tool(tier = Elevated)]
                pub fn a_tool_with_a_common_beginning_6() {}
                /// The eighth one of the server.
                #[mcp_tool(tier = Elevated)]
                pub fn a_tool_with_a_common_beginning_7() {}
                /// The ninth one of the server.
                #[mcp_tool(tier = Elevated)]
                pub fn a_tool_with_a_common_beginning_8() {}
                /// The tenth one of the server.
                #[mcp_tool(tier = Elevated)]
                pub fn a_tool_with_a_common_beginning_9() {}
            }
        )*

        const SERVERS: NativeCatalogue = catalogue![
            $($server::SERVER),*;
            groups { $($group),* };
            raise {
                $(
                    $server::Tool::AToolWithACommonBeginning0 => Elevated,
                    $server::Tool::AToolWithACommonBeginning1 => Restricted,
                    $server::Tool::AToolWithACommonBeginning2 => Elevated,
                    $server::Tool::AToolWithACommonBeginning3 => Restricted,
                    $server::Tool::AToolWithACommonBeginning4 => Elevated,
                    $server::Tool::AToolWithACommonBeginning5 => Restricted,
                    $server::Tool::AToolWithACommonBeginning6 => Restricted,
                    $server::Tool::AToolWithACommonBeginning7 => Restricted,
                    $server::Tool::AToolWithACommonBeginning8 => Restricted,
                    $server::Tool::AToolWithACommonBeginning9 => Restricted
                ),*
            }
        ];

        /// The static maps of all servers, in the order of the list.
        const MAPS: &[(&[Tier], &[&str])] = &[$(($server::TIERS, $server::GROUPS)),*];

        const FREE: NativeCatalogue = catalogue![
            $(
                Free::<$number, 0>::SPEC, Free::<$number, 1>::SPEC, Free::<$number, 2>::SPEC, Free::<$number, 3>::SPEC,
                Free::<$number, 4>::SPEC, Free::<$number, 5>::SPEC, Free::<$number, 6>::SPEC, Free::<$number, 7>::SPEC,
                Free::<$number, 8>::SPEC, Free::<$number, 9>::SPEC
            ),*
        ];
    };
}

/// A free tool, `a_tool_with_a_common_beginning_00_0`.
struct Free<const FIRST: usize, const LAST: usize>;

impl<const FIRST: usize, const LAST: usize> Free<FIRST, LAST> {
    const NAME: [u8; 35] = {
        let mut name = *b"a_tool_with_a_common_beginning_XY_Z";
        name[31] = b'0' + (FIRST / 10) as u8;
        name[32] = b'0' + (FIRST % 10) as u8;
        name[34] = b'0' + LAST as u8;
        name
    };
    const SPEC: ToolSpec =
        ToolSpec { server: "free", name: ascii(&Self::NAME), tier: Tier::Standard, ..BROKEN_TOOL };
}

servers! {
    server_00 GROUP_00 0 server_01 GROUP_01 1 server_02 GROUP_02 2 server_03 GROUP_03 3
    server_04 GROUP_04 4 server_05 GROUP_05 5 server_06 GROUP_06 6 server_07 GROUP_07 7
    server_08 GROUP_08 8 server_09 GROUP_09 9 server_10 GROUP_10 10 server_11 GROUP_11 11
    server_12 GROUP_12 12 server_13 GROUP_13 13 server_14 GROUP_14 14 server_15 GROUP_15 15
    server_16 GROUP_16 16 server_17 GROUP_17 17 server_18 GROUP_18 18 server_19 GROUP_19 19
    server_20 GROUP_20 20 server_21 GROUP_21 21 server_22 GROUP_22 22 server_23 GROUP_23 23
    server_24 GROUP_24 24 server_25 GROUP_25 25 server_26 GROUP_26 26 server_27 GROUP_27 27
    server_28 GROUP_28 28 server_29 GROUP_29 29 server_30 GROUP_30 30 server_31 GROUP_31 31
    server_32 GROUP_32 32 server_33 GROUP_33 33 server_34 GROUP_34 34 server_35 GROUP_35 35
    server_36 GROUP_36 36 server_37 GROUP_37 37 server_38 GROUP_38 38 server_39 GROUP_39 39
    server_40 GROUP_40 40 server_41 GROUP_41 41 server_42 GROUP_42 42 server_43 GROUP_43 43
    server_44 GROUP_44 44 server_45 GROUP_45 45 server_46 GROUP_46 46 server_47 GROUP_47 47
    server_48 GROUP_48 48 server_49 GROUP_49 49
}

fn main() {
    let tools: usize = SERVERS.entries.iter().map(|entry| entry.tools().len()).sum();
    assert_eq!((SERVERS.entries.len(), tools, FREE.entries.len()), (50, 500, 500));
    assert_eq!((SERVERS.raises.len(), SERVERS.raises[499].tool.server), (500, "server_49"));
    for (at, (tiers, groups)) in MAPS.iter().enumerate() {
        assert_eq!((tiers.len(), groups.len()), (10, 10));
        assert_eq!((tiers[4], tiers[5]), (Tier::Standard, Tier::Elevated));
        assert_eq!(groups[9], format!("group_{at:02}"));
    }
    assert_eq!(server_49::Tool::AToolWithACommonBeginning9.spec().name, "a_tool_with_a_common_beginning_9");
    assert_eq!(FREE.entries[499].tools()[0].name, "a_tool_with_a_common_beginning_49_9");
}
