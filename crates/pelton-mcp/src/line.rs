//! The connection to a server, and somebody who notices when it ends by itself.

use rmcp::service::{Peer, QuitReason, RoleClient, RunningService, RunningServiceCancellationToken as End};
use tokio::task::JoinHandle;

use crate::handler::Handler;

/// The one connection there is, or none.
#[derive(Default)]
pub(crate) struct Line {
    connection: Option<Connection>,
    /// Attempts so far: who waited for one does not make the next.
    pub attempts: u64,
}

struct Connection {
    peer: Peer<RoleClient>,
    end: Option<End>,
    watched: JoinHandle<()>,
}

impl Line {
    /// Whom to talk to, while the connection lasts.
    pub fn peer(&self) -> Option<&Peer<RoleClient>> {
        self.connection.as_ref().map(|connection| &connection.peer).filter(|peer| !peer.is_transport_closed())
    }

    /// Takes a new connection over. `lost` is called if it ends and nobody wanted that.
    pub fn open(
        &mut self,
        service: RunningService<RoleClient, Handler>,
        lost: impl FnOnce() + Send + 'static,
    ) {
        let (peer, end) = (service.peer().clone(), Some(service.cancellation_token()));
        let watched = tokio::spawn(async move {
            if let Ok(QuitReason::Closed) = service.waiting().await {
                lost();
            }
        });
        self.connection = Some(Connection { peer, end, watched });
    }

    /// Ends the connection, and waits until everything about it has ended.
    pub async fn close(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        connection.end();
        // Whatever became of the task that served it, it is gone.
        let _ = (&mut connection.watched).await;
    }
}

impl Connection {
    fn end(&mut self) {
        if let Some(end) = self.end.take() {
            end.cancel();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end();
    }
}
