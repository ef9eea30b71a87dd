//! Pages of the web: asked for at addresses that were judged before, and no others.

use std::net::IpAddr;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use reqwest::{ClientBuilder, Url};

use super::{ProxyRules, explain};
use crate::transport::{Get, Response, TransportError, TransportErrorKind};

/// Asks for a page, by a client of its own: what is pinned holds for this page alone.
pub(super) async fn get(plan: ClientBuilder, get: Get) -> Result<Response, TransportError> {
    let bad = || TransportError::new(TransportErrorKind::BadUrl, "this is no http address");
    let url = Url::parse(&get.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(bad)?;
    let host: Arc<str> = url.host_str().ok_or_else(bad)?.into();
    // Nobody comes back for a second page by this client. The name is never looked up here, not even where nothing is
    // pinned: it could stand for something else by now.
    let plan = plan.pool_max_idle_per_host(0).resolve_to_addrs(&host, &get.pinned);
    let unusable = |error| TransportError::new(TransportErrorKind::Other, explain::cause(&error));
    let client = plan.build().map_err(unusable)?;
    let sent = client.get(url).headers(get.headers).send().await;
    let response = sent.map_err(|error| explain::error(&host, error))?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes_stream().map_err(move |error| explain::error(&host, error)).boxed();
    Ok(Response { status, headers, body })
}

/// All addresses a name stands for.
pub(super) async fn addresses(host: String) -> Result<Vec<IpAddr>, TransportError> {
    let dns = |why: String| {
        TransportError::new(TransportErrorKind::Dns, format!("the name {host} cannot be resolved: {why}"))
    };
    // The port is only there because the system wants one.
    let found = tokio::net::lookup_host((host.as_str(), 0)).await;
    let mut addresses: Vec<IpAddr> =
        found.map_err(|error| dns(error.to_string()))?.map(|address| address.ip()).collect();
    addresses.dedup();
    if addresses.is_empty() { Err(dns("it stands for no address".to_owned())) } else { Ok(addresses) }
}

/// Whether a proxy is asked for pages of this host.
pub(super) fn goes_through(rules: &ProxyRules, scheme: &str, host: &str) -> bool {
    let proxy = if scheme == "http" { &rules.http } else { &rules.https };
    proxy.as_deref().is_some_and(|proxy| !proxy.is_empty())
        && !rules.no_proxy.as_deref().unwrap_or_default().split(',').any(|around| goes_around(around, host))
}

/// A host stands for itself and what is below it; an address for itself. Whoever is wrongly taken to go around a proxy is
/// judged by its address, so that is the side to err on: blocks of addresses go around it.
fn goes_around(around: &str, host: &str) -> bool {
    let around = around.trim().trim_start_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_block = around.contains('/') && host.parse::<IpAddr>().is_ok();
    around == "*"
        || is_block
        || (!around.is_empty()
            && host.strip_suffix(&around).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_asked_about_all_but_those_around_it() {
        let rules = ProxyRules {
            http: None,
            https: Some("http://proxy:3128".to_owned()),
            no_proxy: Some("example.com, .inner.org,10.0.0.0/8".to_owned()),
        };
        for (scheme, host, expected) in [
            ("https", "elsewhere.net", true),
            ("http", "elsewhere.net", false),
            ("https", "example.com", false),
            ("https", "WWW.example.com.", false),
            ("https", "badexample.com", true),
            ("https", "a.inner.org", false),
            ("https", "10.1.1.1", false),
        ] {
            assert_eq!(goes_through(&rules, scheme, host), expected, "{scheme} {host}");
        }
    }
}
