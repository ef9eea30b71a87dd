//! Asking a model.
//!
//! A [`Client`] sends an [`Ask`] and yields a [`Call`]: a stream of [`Step`]s that ends in a reply or an error.
//! What stands between the two, from the outside in:
//!
//! - [`call`](Call): the loop: send, read, repeat what failed.
//! - `retry`: when a failure is repeated, and after which wait. Pure.
//! - [`credentials`]: who pays, where that changes while we run; [`Sign`], where a secret in a header will not do.
//! - `dialect`: what the bytes mean. Pure.
//! - `assemble`: events become content blocks. Pure.
//! - [`sse`]: bytes become events. Pure.
//! - [`Transport`]: how bytes travel; [`HttpTransport`] is the real one.
//! - [`catalogue`]: what the known models can do and cost.

mod answer;
mod ask;
mod assemble;
mod call;
pub mod catalogue;
mod client;
pub mod credentials;
mod dialect;
mod error;
mod fast;
mod http;
pub mod json;
mod limits;
mod retry;
mod sign;
pub mod sse;
mod step;
pub mod stream;
mod transport;
mod watch;
mod world;

pub use self::http::{HttpOptions, HttpTransport, ProxyRules, Roots};
pub use ask::{
    Ask, Earlier, Effort, Prefix, RefusedBetas, Source, Speed, TaskBudget, Thinking, ThinkingDisplay,
    UnknownEffort,
};
pub use call::Call;
pub use client::{Auth, Client, DEFAULT_VERSION, Endpoint, Secret};
pub use credentials::Credentials;
pub use error::{ErrorKind, ModelError, Tried};
pub use fast::FastMode;
pub use limits::{Limit, RateLimits, Subscription};
pub use pelton_wire::cache::CacheLife;
pub use retry::RetryPolicy;
pub use sign::{Sign, Signing};
pub use step::{Again, BadInput, Block, BlockKind, Delta, DeltaKind, Notice, Opened, Reply, Started, Step};
pub use transport::{Body, Get, Post, Response, Transport, TransportError, TransportErrorKind};
pub use world::{RealWorld, World};
