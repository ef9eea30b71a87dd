//! From an address to an answer, hop by hop. Every hop is judged by the addresses its host has, and only those are connected to: a name
//! that stands for something else a moment later leads nowhere.

use std::net::{IpAddr, SocketAddr};

use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use pelton_model::{Get, Response};
use url::{Host, Url};

use super::Web;
use super::body::Body;
use crate::addresses::is_public;
use crate::limits::{WEB_BODY_BYTES_MAX, WEB_REDIRECTS_MAX, WEB_TIME_MAX};
use crate::tools::tool::ToolCx;

/// Whom a server reads that we are: clients of this kind are known by the first word.
const AGENT: &str = concat!("Claude-User (pelton/", env!("CARGO_PKG_VERSION"), ")");
const WANTED: &str = "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5";

/// Names that stand for this machine or its neighbours wherever they are looked up.
const NEAR: &[&str] = &["localhost", "local", "internal", "intranet", "lan", "home.arpa"];

/// Where the hops ended.
pub(super) enum Arrived {
    There {
        url: Url,
        code: u16,
        body: Body,
    },
    /// Another host was named, which nobody has judged.
    Elsewhere {
        code: u16,
        from: Url,
        to: String,
    },
}

impl Web {
    /// Goes where an address leads, as long as that is the same host.
    pub(super) async fn follow(&self, tool: &str, url: Url, cx: &ToolCx) -> Result<Arrived, String> {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err("interrupted by the user".to_owned()),
            () = cx.world.sleep(WEB_TIME_MAX) => {
                Err(format!("it took longer than {} seconds", WEB_TIME_MAX.as_secs()))
            }
            arrived = self.hop_on(tool, url) => arrived,
        }
    }

    async fn hop_on(&self, tool: &str, mut url: Url) -> Result<Arrived, String> {
        for _ in 0..=WEB_REDIRECTS_MAX {
            let pinned = self.judge(tool, &mut url).await?;
            let get = Get { url: url.to_string(), headers: headers(), pinned };
            let response = self.transport.get(get).await.map_err(|error| error.message)?;
            let code = response.status;
            let Some(to) = redirect(&response) else {
                let body = read(response).await?;
                return Ok(Arrived::There { url, code, body });
            };
            match url.join(&to) {
                Ok(next) if is_same_host(&url, &next) => url = next,
                Ok(next) => return Ok(Arrived::Elsewhere { code, from: url, to: next.into() }),
                Err(_) => return Err("it redirects to something that is no address".to_owned()),
            }
        }
        Err(format!("it was redirected more than {WEB_REDIRECTS_MAX} times"))
    }

    /// The addresses that may be connected to. Whatever is on the open internet is asked over TLS.
    async fn judge(&self, tool: &str, url: &mut Url) -> Result<Vec<SocketAddr>, String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_named = self.permissions.name_host(tool, host.trim_start_matches('[').trim_end_matches(']'));
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
            Some(Host::Domain(name)) => match self.transport.addresses(name).await {
                Ok(addresses) => addresses,
                // Behind a proxy names need not stand for anything here.
                Err(_) if self.transport.has_proxy("https", name) => Vec::new(),
                Err(error) => return Err(error.message),
            },
            None => return Err("it names no host".to_owned()),
        };
        // One that is nobody's business is enough: whoever owns the name chose them all.
        let near = addresses.iter().find(|address| !is_public(**address));
        if near.is_none() && !is_near(&host) {
            // The other way round is never refused by the parser.
            let _ = url.set_scheme("https");
        } else if !is_named {
            let why = near
                .map_or_else(|| "is a name of this network".to_owned(), |near| format!("leads to {near}"));
            return Err(format!(
                "{host} {why}, which is not part of the open internet. Such a host is asked only if a permission rule names \
                 it: {tool}(domain:{host})"
            ));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// Reads as much of a body as is ever read.
async fn read(mut response: Response) -> Result<Body, String> {
    let media_type = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or_default().to_owned();
    let mut content = Vec::new();
    while let Some(piece) = response.body.next().await {
        let piece = piece.map_err(|error| error.message)?;
        let room = WEB_BODY_BYTES_MAX - content.len();
        content.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok(Body { media_type, content, is_cut: true });
        }
    }
    Ok(Body { media_type, content, is_cut: false })
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT, HeaderValue::from_static(WANTED));
    headers
}

/// Where an answer sends whoever asked.
fn redirect(response: &Response) -> Option<String> {
    let to = response.headers.get(LOCATION)?;
    // Some servers write addresses as they are read.
    matches!(response.status, 301 | 302 | 303 | 307 | 308)
        .then(|| String::from_utf8_lossy(to.as_bytes()).trim().to_owned())
}

fn is_same_host(one: &Url, other: &Url) -> bool {
    let plain = |url: &Url| url.host_str().map(|host| host.trim_end_matches('.').to_ascii_lowercase());
    matches!(other.scheme(), "http" | "https")
        && plain(one) == plain(other)
        && other.username().is_empty()
        && other.password().is_none()
}

/// Whether a name can only be one of this machine or its neighbours.
fn is_near(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.parse::<IpAddr>().is_err()
        && !host.starts_with('[')
        && (!host.contains('.')
            || NEAR.iter().any(|near| {
                host.strip_suffix(near).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }))
}
