//! Questions over HTTP: descriptions, registrations, tokens.

use futures::StreamExt;
use http::header;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::Login;
use crate::limits::{OAUTH_ANSWER_BYTES_MAX, OAUTH_ANSWER_TIME};
use crate::server::words;

/// Why there is no token.
#[derive(Debug)]
pub(super) enum NotGiven {
    /// The server said no.
    Refused(String),
    /// It could not be asked, or not be understood.
    Failed(String),
}

impl NotGiven {
    pub fn words(self) -> String {
        match self {
            Self::Refused(why) | Self::Failed(why) => why,
        }
    }
}

/// A description at an address; `None` if there is none.
pub(super) async fn description(http: &reqwest::Client, url: &Url) -> Result<Option<Value>, String> {
    let asked = http.get(url.clone()).header(header::ACCEPT, "application/json");
    let (status, text) = answer(asked).await?;
    match status {
        200..=299 => Ok(serde_json::from_slice(&text).ok().filter(Value::is_object)),
        400..=499 => Ok(None),
        status => Err(format!("{url} answered {status}")),
    }
}

/// Posts JSON, and gives what comes back.
pub(super) async fn post(http: &reqwest::Client, url: &Url, body: &Value) -> Result<Value, String> {
    let asked =
        http.post(url.clone()).header(header::CONTENT_TYPE, "application/json").body(body.to_string());
    let (status, text) = answer(asked).await?;
    let said: Value = serde_json::from_slice(&text).unwrap_or_default();
    match status {
        200..=299 => Ok(said),
        status => Err(format!("{url} answered {status}{}", reason(&said))),
    }
}

/// A token for a code.
pub(super) async fn exchange(
    http: &reqwest::Client,
    login: Login,
    code: &str,
    verifier: &str,
    redirect_uri: &str,
) -> Result<Login, NotGiven> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier),
    ];
    token(http, login, &fields).await
}

/// A new token for an old login.
pub(super) async fn renew(http: &reqwest::Client, login: &Login) -> Result<Login, NotGiven> {
    let refresh = login.refresh.clone();
    let refresh = refresh.ok_or_else(|| NotGiven::Refused("the login cannot be renewed".to_owned()))?;
    token(http, login.clone(), &[("grant_type", "refresh_token"), ("refresh_token", &refresh)]).await
}

async fn token(http: &reqwest::Client, mut login: Login, fields: &[(&str, &str)]) -> Result<Login, NotGiven> {
    let asked = http
        .post(&login.token_endpoint)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(form(&login, fields));
    let (status, text) = answer(asked).await.map_err(NotGiven::Failed)?;
    let said: Value = serde_json::from_slice(&text).unwrap_or_default();
    let word = |name: &str| {
        said.get(name).and_then(Value::as_str).filter(|word| !word.is_empty()).map(str::to_owned)
    };
    match (status, word("access_token")) {
        (200..=299, Some(access)) => {
            login.access = access;
            // Without a new one the old one stays good.
            login.refresh = word("refresh_token").or(login.refresh);
            Ok(login)
        }
        (200..=299, None) => Err(NotGiven::Failed("the answer holds no token".to_owned())),
        (400..=403, _) => {
            Err(NotGiven::Refused(format!("the login was refused ({status}){}", reason(&said))))
        }
        (status, _) => Err(NotGiven::Failed(format!("{} answered {status}", login.token_endpoint))),
    }
}

/// A question for a token, in the form of the standard.
fn form(login: &Login, fields: &[(&str, &str)]) -> String {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(fields).append_pair("client_id", &login.client_id);
    // The token is for this server alone.
    form.append_pair("resource", &resource(&login.url));
    if let Some(secret) = &login.client_secret {
        form.append_pair("client_secret", secret);
    }
    form.finish()
}

/// The name of a server among those that tokens are for.
pub(super) fn resource(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            url.set_fragment(None);
            url.to_string()
        }
        Err(_) => url.to_owned(),
    }
}

fn reason(said: &Value) -> String {
    let word = |name: &str| said.get(name).and_then(Value::as_str);
    match word("error_description").or_else(|| word("error")) {
        Some(why) => format!(": {why}"),
        None => String::new(),
    }
}

async fn answer(asked: reqwest::RequestBuilder) -> Result<(u16, Vec<u8>), String> {
    let read = async {
        let answer = asked.send().await.map_err(|error| words(&error))?;
        let status = answer.status().as_u16();
        let mut text = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            text.extend_from_slice(&chunk.map_err(|error| words(&error))?);
            if text.len() > OAUTH_ANSWER_BYTES_MAX {
                return Err("the answer is too long".to_owned());
            }
        }
        Ok((status, text))
    };
    tokio::time::timeout(OAUTH_ANSWER_TIME, read)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", OAUTH_ANSWER_TIME.as_secs())))
}
