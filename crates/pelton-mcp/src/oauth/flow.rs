//! From an address to a login: who gives tokens for it, who we are to them, the page where somebody agrees, and the code
//! that they bring back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::{Host, Url};

use super::{Login, ask};
use crate::config::{Reach, Remote, ServerConfig};
use crate::surroundings::Surroundings;

/// A login that somebody has to agree to.
pub struct PendingLogin {
    url: Url,
    http: reqwest::Client,
    login: Login,
    state: String,
    verifier: String,
    redirect_uri: String,
    issuer: Option<String>,
}

/// Who gives tokens, and how.
struct Giver {
    issuer: Option<String>,
    authorize: Url,
    token: Url,
    register: Option<Url>,
    scopes: Option<String>,
}

/// Finds out who gives tokens for a server, and makes the address where somebody agrees. They are sent back to
/// `redirect_uri`; `chance` must be from a good source.
pub async fn begin_login(
    config: &ServerConfig,
    surroundings: &Surroundings,
    redirect_uri: &str,
    chance: &[u8; 64],
) -> Result<PendingLogin, String> {
    let (Reach::Http(remote) | Reach::Sse(remote)) = &config.reach else {
        return Err("nobody logs in there: it is no address".to_owned());
    };
    if remote.has_authorization() {
        return Err("its entry has an Authorization header, which is used instead of a login".to_owned());
    }
    let http = (surroundings.http)()?;
    let giver = giver(&http, remote).await?;
    let (client_id, client_secret) = match &remote.oauth.client_id {
        Some(known) => (known.clone(), surroundings.client_secret.clone()),
        None => register(&http, &giver, redirect_uri).await?,
    };
    let (state, verifier) = chance.split_at(32);
    let (state, verifier) = (URL_SAFE_NO_PAD.encode(state), URL_SAFE_NO_PAD.encode(verifier));
    let mut url = giver.authorize;
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge(&verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &ask::resource(&remote.url));
        if let Some(scopes) = remote.oauth.scopes.as_ref().or(giver.scopes.as_ref()) {
            query.append_pair("scope", scopes);
        }
    }
    let login = Login {
        url: remote.url.clone(),
        access: String::new(),
        refresh: None,
        token_endpoint: giver.token.to_string(),
        client_id,
        client_secret,
    };
    let redirect_uri = redirect_uri.to_owned();
    Ok(PendingLogin { url, http, login, state, verifier, redirect_uri, issuer: giver.issuer })
}

impl PendingLogin {
    /// Where somebody agrees.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The login, from what stood behind the `?` of the address they came back to.
    pub async fn finish(self, query: &str) -> Result<Login, String> {
        let pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let word = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        // Whoever sends something else was not sent by us.
        if word("state") != Some(self.state.as_str()) {
            return Err("somebody came back who was not sent (the state differs)".to_owned());
        }
        if let (Some(said), Some(known)) = (word("iss"), &self.issuer)
            && !is_same(said, known)
        {
            return Err(format!("the code comes from {said}, and was asked for at {known}"));
        }
        if let Some(error) = word("error") {
            return Err(match word("error_description") {
                Some(why) => format!("it was refused: {error}: {why}"),
                None => format!("it was refused: {error}"),
            });
        }
        let code = word("code").ok_or("they came back without a code")?;
        let given = ask::exchange(&self.http, self.login, code, &self.verifier, &self.redirect_uri).await;
        given.map_err(ask::NotGiven::words)
    }
}

/// Who gives tokens for a server: its own description says so, or the one that its refusal names.
async fn giver(http: &reqwest::Client, remote: &Remote) -> Result<Giver, String> {
    let server = Url::parse(&remote.url).map_err(|error| error.to_string())?;
    if let Some(named) = &remote.oauth.metadata_url {
        let named = safe(named)?;
        let described = ask::description(http, &named).await?;
        return read(&described.ok_or_else(|| format!("there is no description at {named}"))?, None, None);
    }
    let mut places: Vec<Url> = challenged(http, &server).await.into_iter().collect();
    places.extend(well_known(&server, "oauth-protected-resource"));
    let mut described = None;
    for place in &places {
        described =
            ask::description(http, place).await?.filter(|found| found["authorization_servers"].is_array());
        if described.is_some() {
            break;
        }
    }
    let described = described.unwrap_or_default();
    if let Some(resource) = described["resource"].as_str() {
        let is_it = Url::parse(resource).is_ok_and(|resource| {
            resource.origin() == server.origin()
                && server.path().starts_with(resource.path().trim_end_matches('/'))
        });
        if !is_it {
            return Err(format!("its description is that of another server: {resource}"));
        }
    }
    let scopes = described["scopes_supported"]
        .as_array()
        .map(|scopes| scopes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    let scopes = scopes.filter(|scopes| !scopes.is_empty());
    let issuer = match described["authorization_servers"][0].as_str() {
        Some(issuer) => safe(issuer)?,
        // Those of the first days are their own.
        None => server.join("/").map_err(|error| error.to_string())?,
    };
    let mut places = well_known(&issuer, "oauth-authorization-server");
    places.extend(well_known(&issuer, "openid-configuration"));
    let behind = format!("{}/.well-known/openid-configuration", issuer.as_str().trim_end_matches('/'));
    places.extend(Url::parse(&behind).ok());
    for place in &places {
        if let Some(described) = ask::description(http, place).await? {
            return read(&described, Some(issuer.as_str()), scopes);
        }
    }
    // Nobody describes it: then the usual places are meant.
    let usual = |path: &str| issuer.join(path).map_err(|error| error.to_string());
    Ok(Giver {
        issuer: None,
        authorize: usual("/authorize")?,
        token: usual("/token")?,
        register: Some(usual("/register")?),
        scopes,
    })
}

/// Reads what somebody says about the tokens they give.
fn read(described: &Value, asked: Option<&str>, scopes: Option<String>) -> Result<Giver, String> {
    let issuer = described["issuer"].as_str().map(str::to_owned);
    if let (Some(said), Some(asked)) = (&issuer, asked)
        && !is_same(said, asked)
    {
        return Err(format!("{asked} says that it is {said}"));
    }
    let methods = described["code_challenge_methods_supported"].as_array();
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err(
            "who gives tokens for it does not know S256, without which a code could be stolen".to_owned()
        );
    }
    let needed = |name: &str| {
        let place = described[name].as_str().ok_or_else(|| format!("the description has no `{name}`"))?;
        safe(place)
    };
    let register = described["registration_endpoint"].as_str().map(safe).transpose()?;
    Ok(Giver {
        issuer,
        authorize: needed("authorization_endpoint")?,
        token: needed("token_endpoint")?,
        register,
        scopes,
    })
}

/// Tells who gives tokens that we are there.
async fn register(
    http: &reqwest::Client,
    giver: &Giver,
    redirect_uri: &str,
) -> Result<(String, Option<String>), String> {
    let place = giver.register.as_ref().ok_or(
        "who gives tokens for it takes nobody unknown: put the client id they gave you under `oauth.clientId`",
    )?;
    let us = json!({
        "client_name": "Pelton",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let said = ask::post(http, place, &us).await?;
    let id = said["client_id"].as_str().ok_or("the registration brought no client id")?;
    Ok((id.to_owned(), said["client_secret"].as_str().map(str::to_owned)))
}

/// The description that a server names when it refuses somebody without a token.
async fn challenged(http: &reqwest::Client, server: &Url) -> Option<Url> {
    let answer = http.get(server.clone()).header(header::ACCEPT, "text/event-stream").send();
    let answer = tokio::time::timeout(crate::limits::OAUTH_ANSWER_TIME, answer).await.ok()?.ok()?;
    let named = answer.headers().get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
    let named = named.split_once("resource_metadata=")?.1.trim_start();
    let named = match named.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => named.split([',', ' ']).next()?,
    };
    // A server describes itself.
    safe(named).ok().filter(|named| named.origin() == server.origin())
}

/// Where a description of something at an address is: with its path behind the name, then without.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut places: Vec<Url> = url.join(&format!("/.well-known/{name}{path}")).into_iter().collect();
    if !path.is_empty() {
        places.extend(url.join(&format!("/.well-known/{name}")));
    }
    places
}

/// An address that secrets may be sent to.
fn safe(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| format!("'{url}' is no address: {error}"))?;
    let is_here = match parsed.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match parsed.scheme() {
        "https" => Ok(parsed),
        "http" if is_here => Ok(parsed),
        _ => Err(format!("'{url}' is not safe: tokens are sent by https alone")),
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn descriptions_are_looked_for_where_the_standards_put_them() {
        let places = |url: &str| -> Vec<String> {
            well_known(&Url::parse(url).unwrap(), "x").into_iter().map(String::from).collect()
        };
        assert_eq!(
            places("https://a.example/b/c"),
            ["https://a.example/.well-known/x/b/c", "https://a.example/.well-known/x"]
        );
        assert_eq!(places("https://a.example/"), ["https://a.example/.well-known/x"]);
    }

    #[test]
    fn tokens_are_sent_over_safe_roads_alone_and_to_whom_was_asked() {
        assert!(
            safe("https://a.example/x").is_ok()
                && safe("http://127.0.0.1:3/x").is_ok()
                && safe("http://[::1]/").is_ok()
        );
        for url in ["http://a.example/x", "ftp://a.example", "http://127.0.0.1.evil.example/", "x"] {
            assert!(safe(url).is_err(), "{url}");
        }
        let described = |extra: Value| {
            let mut all = json!({"issuer": "https://a.example", "authorization_endpoint": "https://a.example/a", "token_endpoint": "https://a.example/t"});
            all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            all
        };
        let check = |extra: Value| read(&described(extra), Some("https://a.example/"), None).map(drop);
        assert_eq!(check(json!({})), Ok(()));
        assert!(check(json!({"issuer": "https://b.example"})).is_err());
        assert!(check(json!({"code_challenge_methods_supported": ["plain"]})).is_err());
        assert!(check(json!({"token_endpoint": "http://b.example/t"})).is_err());
    }
}
