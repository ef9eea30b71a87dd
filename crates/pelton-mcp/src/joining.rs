//! The servers of a session as it begins: which are waited for before the model is asked first, and which come when they
//! come.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::config::{Reach, Scope};
use crate::limits::{ALWAYS_LOADED_WAIT, INSIDE_WAIT};
use crate::server::Server;
use crate::surroundings::Surroundings;

/// Servers on their way into a session.
pub struct Joining {
    /// Ends when the model may be asked: those that were named for this run are there or have had their time, and those
    /// whose tools are sent with every request have had a little.
    pub first: BoxFuture<'static, ()>,
    /// Ends when those inside the client are there, which is a matter of a few words, or have had a moment.
    pub inside: BoxFuture<'static, ()>,
    /// Connects to all of them, whether anybody waits or not. They are given up when it is dropped.
    pub connecting: JoinSet<()>,
}

impl Joining {
    /// Begins to connect.
    pub fn of(servers: Vec<Arc<Server>>) -> Self {
        let is_inside = |server: &Arc<Server>| matches!(server.config().reach, Reach::Wire(_));
        let (inside, outside): (Vec<_>, Vec<_>) = servers.into_iter().partition(is_inside);
        let (named, others): (Vec<_>, Vec<_>) =
            outside.into_iter().partition(|server| server.config().scope == Scope::Dynamic);
        let mut connecting = JoinSet::new();
        let mut begin = |servers: Vec<Arc<Server>>, is_waited_for: fn(&Server) -> bool| {
            let (mut met, mut meetings) = (Vec::new(), Vec::new());
            for server in servers {
                let (sender, receiver) = oneshot::channel();
                if is_waited_for(&server) {
                    met.push(receiver);
                }
                meetings.push((server, Some(sender)));
            }
            connecting.spawn(connect(meetings));
            join_all(met).map(drop)
        };
        let inside = begin(inside, |_| true).shared();
        let named = begin(named, |_| true);
        let always = begin(others, |server| server.config().always_load);
        let moment = tokio::time::timeout(INSIDE_WAIT, inside.clone()).map(drop);
        let first = async move {
            let always = tokio::time::timeout(ALWAYS_LOADED_WAIT, always);
            // Those that need longer join later, like all others.
            let _ = tokio::join!(inside, named, always);
        };
        Self { first: first.boxed(), inside: moment.boxed(), connecting }
    }
}

/// Connects to all of them, a few at a time: programs cost more than connections, and those inside the client nothing.
pub async fn connect_all(servers: Vec<Arc<Server>>) {
    connect(servers.into_iter().map(|server| (server, None)).collect()).await;
}

type Meeting = (Arc<Server>, Option<oneshot::Sender<()>>);

async fn connect(meetings: Vec<Meeting>) {
    let is_inside = |(server, _): &Meeting| matches!(server.config().reach, Reach::Wire(_));
    let (inside, outside): (Vec<_>, Vec<_>) = meetings.into_iter().partition(is_inside);
    let (here, there): (Vec<_>, Vec<_>) =
        outside.into_iter().partition(|(server, _)| server.config().reach.is_local());
    let at_once = |meetings: &[Meeting], of: fn(&Surroundings) -> usize| {
        meetings.first().map(|(server, _)| of(server.surroundings()).max(1))
    };
    let programs = at_once(&here, |surroundings| surroundings.programs_at_once);
    let addresses = at_once(&there, |surroundings| surroundings.addresses_at_once);
    let meet = |meetings: Vec<Meeting>, at_once: Option<usize>| {
        futures::stream::iter(meetings).for_each_concurrent(at_once, |(server, met)| async move {
            server.connect().await;
            if let Some(met) = met {
                // Nobody may have waited for it.
                let _ = met.send(());
            }
        })
    };
    tokio::join!(meet(inside, None), meet(here, programs), meet(there, addresses),);
}
