//! The ways to a server.

mod http; // an address, and the headers it is asked with
mod program; // a program that is started
mod sse; // an address, as the first version of the protocol had it
mod wire; // somebody who passes messages on

use rmcp::service::{ClientInitializeError, RoleClient, RunningService, serve_client};

pub(crate) use self::wire::heard;
pub use self::wire::{Inbox, Wire};
use crate::config::{Reach, ServerConfig};
use crate::handler::Handler;
use crate::limits::REMOTE_WAIT;
use crate::server::{Surroundings, words};

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

/// Connects, and shakes hands. An address is tried several times.
pub(crate) async fn connect(
    config: &ServerConfig,
    surroundings: &Surroundings,
    tries: u32,
    handler: impl Fn() -> Handler,
) -> Result<RunningService<RoleClient, Handler>, NotReached> {
    match &config.reach {
        Reach::Program(program) => {
            let (transport, ending) = program::start(program, surroundings)?;
            match serve_client(handler(), transport).await {
                Ok(service) => Ok(service),
                // What the program said as it went explains more than a closed pipe.
                Err(error) => Err(NotReached::because(ending.explain(&config.written, &words(&error)).await)),
            }
        }
        Reach::Http(remote) => {
            again(tries, || async {
                let transport = http::transport(remote, &config.name, surroundings).await?;
                serve_client(handler(), transport).await.map_err(|error| not_reached(&error))
            })
            .await
        }
        Reach::Sse(remote) => {
            again(tries, || async {
                let transport = sse::open(remote, &config.name, surroundings).await?;
                serve_client(handler(), transport).await.map_err(|error| not_reached(&error))
            })
            .await
        }
        Reach::Nowhere(why) => Err(NotReached::because(why)),
        Reach::Wire(wire) => {
            serve_client(handler(), wire::transport(wire)).await.map_err(|error| not_reached(&error))
        }
    }
}

/// An address that does not answer is asked again a little later.
async fn again<F>(
    tries: u32,
    attempt: impl Fn() -> F,
) -> Result<RunningService<RoleClient, Handler>, NotReached>
where
    F: Future<Output = Result<RunningService<RoleClient, Handler>, NotReached>>,
{
    let mut wait = REMOTE_WAIT;
    for _ in 1..tries {
        match attempt().await {
            Err(not) if !not.needs_login => tokio::time::sleep(wait).await,
            ended => return ended,
        }
        wait *= 2;
    }
    attempt().await
}

fn not_reached(error: &ClientInitializeError) -> NotReached {
    let needs_login = error.is_authorization_required();
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "the connection was closed before it answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        _ if needs_login => "it wants somebody to log in".to_owned(),
        other => words(other),
    };
    NotReached { why, needs_login }
}
