//! The servers of this crate as a model meets them: behind a host, its gate and the bridge.
#![cfg(all(feature = "web", feature = "shortcuts"))]

use aster_runtime::catalogue::{Health, NativeCatalogue};
use aster_runtime::gate::egress::EgressPolicy;
use aster_runtime::{Host, Profile, Tier, catalogue};
use aster_servers::{shortcuts, web};
use serde_json::json;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

const CATALOGUE: NativeCatalogue = catalogue![web::SERVER, shortcuts::SERVER];

#[test]
fn the_crates_own_list_is_complete() {
    let names = |catalogue: NativeCatalogue| {
        let mut names: Vec<_> = catalogue.entries.iter().map(|entry| entry.server()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(aster_servers::CATALOGUE), names(CATALOGUE));
    assert_eq!(names(aster_servers::CATALOGUE), names(NativeCatalogue::registered()));
}

#[test]
fn tiers_groups_and_urls_are_what_they_should_be() {
    let tools: Vec<_> = CATALOGUE
        .entries
        .iter()
        .flat_map(|entry| entry.tools())
        .map(|tool| (tool.server, tool.name, tool.tier, tool.annotations.read_only, tool.url_arguments))
        .collect();
    assert_eq!(
        tools,
        [
            ("web", "extract", Tier::Elevated, Some(true), ["url"].as_slice()),
            ("shortcuts", "list", Tier::Standard, Some(true), &[]),
            ("shortcuts", "run", Tier::Restricted, None, &[]),
        ]
    );
    assert_eq!(web::SERVER.group.map(|group| group.name()), Some("research"));
    assert_eq!(shortcuts::SERVER.group.map(|group| group.name()), Some("desktop"));
}

#[tokio::test]
async fn a_page_is_read_through_the_bridge_under_the_hosts_policy() {
    let site = MockServer::start().await;
    let inside = MockServer::start().await;
    let page = ResponseTemplate::new(200).set_body_raw("<title>T</title><p>Some <b>text</b>.", "text/html");
    let trap = ResponseTemplate::new(302).insert_header("location", inside.uri().as_str());
    Mock::given(path("/page")).respond_with(page).mount(&site).await;
    Mock::given(path("/trap")).respond_with(trap).mount(&site).await;

    let policy = EgressPolicy::default().allow_private([site.address().to_string()]).unwrap();
    let host = Host::builder().catalogue(CATALOGUE).egress(policy).build().await.unwrap();
    let session = host.session(Profile::new("reader").groups(["research"])).unwrap();
    let extract = async |url: String| {
        let call = json!({"action": "execute", "name": "web/extract", "arguments": {"url": url}});
        session.call(&call).await
    };

    let read = extract(format!("{}/page", site.uri())).await;
    assert!(!read.is_error(), "{}", read.to_text());
    assert!(read.to_text().ends_with("Some **text**."), "{}", read.to_text());

    for url in [inside.uri(), format!("{}/trap", site.uri()), "http://169.254.169.254/".into()] {
        let refused = extract(url.clone()).await;
        assert!(refused.is_error(), "{url}");
        assert!(refused.to_text().contains("egress.allow_private"), "{url}: {}", refused.to_text());
    }
    assert!(inside.received_requests().await.unwrap().is_empty());
}

#[cfg(not(target_os = "macos"))]
#[tokio::test]
async fn shortcuts_are_absent_elsewhere_and_the_reason_is_kept() {
    let host = Host::builder().catalogue(CATALOGUE).build().await.unwrap();
    let catalogue = host.catalogue();
    let server = catalogue.servers().iter().find(|server| server.name == "shortcuts").unwrap();
    assert_eq!(server.tools, 0);
    let Health::Down(reason) = &server.health else { panic!("{:?}", server.health) };
    assert!(reason.contains("macOS only"), "{reason}");
    let session = host.session(Profile::new("helper")).unwrap();
    let called = session.call(&json!({"action": "execute", "name": "shortcuts/list"})).await;
    assert!(
        called.is_error() && called.to_text().contains("no tool `shortcuts/list`"),
        "{}",
        called.to_text()
    );
}
