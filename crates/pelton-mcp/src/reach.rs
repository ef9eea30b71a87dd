//! The ways to a server.

mod asked; // answers that nobody waits for
mod bounded; // requests to an address, and answers that end
mod http; // an address, and the headers it is asked with
mod program; // a program that is started
mod sse; // an address, as the first version of the protocol had it
mod wire; // somebody who passes messages on

use rmcp::service::{ClientInitializeError, RoleClient, RunningService, serve_client};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use self::asked::Asked;
use self::wire::WireError;
pub(crate) use self::wire::heard;
pub use self::wire::{Inbox, Wire};
use crate::config::{Reach, Remote, ServerConfig};
use crate::handler::Handler;
use crate::limits::REMOTE_WAIT;
use crate::oauth::Bearer;
use crate::server::words;
use crate::surroundings::Surroundings;

/// What is told of a server that knows nobody yet.
pub(crate) const LOG_IN: &str = "it wants somebody to log in: pelton mcp login";

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotReached {
    pub why: String,
    /// Somebody has to log in first.
    pub needs_login: bool,
}

impl NotReached {
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_login: false }
    }
}

/// A connection, and what its requests carry.
pub(crate) type Connected = (RunningService<RoleClient, Handler>, Option<String>);

/// Connects, and shakes hands. An address is tried several times.
pub(crate) async fn connect(
    config: &ServerConfig,
    surroundings: &Surroundings,
    tries: u32,
    handler: impl Fn() -> Handler,
) -> Result<Connected, NotReached> {
    match &config.reach {
        Reach::Program(program) => {
            let (transport, ending) = program::start(program, surroundings)?;
            match serve_client(handler(), Asked::over(transport)).await {
                Ok(service) => Ok((service, None)),
                // What the program said as it went explains more than a closed pipe.
                Err(error) => Err(NotReached::because(ending.explain(&config.written, &words(&error)).await)),
            }
        }
        Reach::Http(remote) | Reach::Sse(remote) => {
            address(config, remote, surroundings, tries, &handler).await
        }
        Reach::Nowhere(why) => Err(NotReached::because(why)),
        Reach::Wire(wire) => {
            let service = serve_client(handler(), Asked::over(wire::transport(wire))).await;
            service.map(|service| (service, None)).map_err(|error| not_reached(&error))
        }
    }
}

/// Whether somebody was refused because they are not logged in.
pub(crate) fn needs_login(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut error = Some(error);
    while let Some(current) = error {
        let refused = match current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::AuthRequired(_)) => true,
            Some(StreamableHttpError::Client(error)) => {
                error.status() == Some(reqwest::StatusCode::UNAUTHORIZED)
            }
            _ => false,
        };
        if refused || current.downcast_ref::<WireError>().is_some_and(WireError::needs_login) {
            return true;
        }
        error = current.source();
    }
    false
}

/// An address that does not answer is asked again a little later.
async fn address(
    config: &ServerConfig,
    remote: &Remote,
    surroundings: &Surroundings,
    tries: u32,
    handler: &impl Fn() -> Handler,
) -> Result<Connected, NotReached> {
    let bearer = surroundings.bearer(&config.name, remote);
    let (mut left, mut wait) = (tries, REMOTE_WAIT);
    loop {
        let visited = visit(config, remote, surroundings, bearer.as_ref(), handler).await;
        left = left.saturating_sub(1);
        match visited {
            Err(not) if !not.needs_login && left > 0 => tokio::time::sleep(wait).await,
            ended => return ended,
        }
        wait *= 2;
    }
}

/// An attempt with the token there is, and one with a newer token if that is refused.
async fn visit(
    config: &ServerConfig,
    remote: &Remote,
    surroundings: &Surroundings,
    bearer: Option<&Bearer>,
    handler: &impl Fn() -> Handler,
) -> Result<Connected, NotReached> {
    let token = bearer.and_then(Bearer::token);
    let attempted = attempt(config, remote, surroundings, token.clone(), handler()).await;
    match (attempted, bearer) {
        (Err(not), Some(bearer)) if not.needs_login && token.is_some() => {
            match bearer.after(token.as_deref()).await {
                Some(newer) => attempt(config, remote, surroundings, Some(newer), handler()).await,
                None => Err(not),
            }
        }
        (ended, _) => ended,
    }
}

async fn attempt(
    config: &ServerConfig,
    remote: &Remote,
    surroundings: &Surroundings,
    token: Option<String>,
    handler: Handler,
) -> Result<Connected, NotReached> {
    let name = &config.name;
    let service = if matches!(config.reach, Reach::Sse(_)) {
        let way = sse::open(remote, name, token.clone(), surroundings).await?;
        serve_client(handler, Asked::over(way)).await
    } else {
        let way = http::transport(remote, name, token.clone(), surroundings).await?;
        serve_client(handler, Asked::over(way)).await
    };
    service.map(|service| (service, token)).map_err(|error| not_reached(&error))
}

fn not_reached(error: &ClientInitializeError) -> NotReached {
    let needs_login = error.is_authorization_required() || needs_login(error);
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "the connection was closed before it answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        _ if needs_login => LOG_IN.to_owned(),
        // What could not be sent does not count itself among the causes.
        ClientInitializeError::TransportError { error, .. } => words(error),
        other => words(other),
    };
    NotReached { why, needs_login }
}
