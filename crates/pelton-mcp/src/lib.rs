//! Tools that MCP servers offer, brought into a Pelton session.
//!
//! A [`Server`] is one server, however it is reached: a program that is started ([`Reach::Program`]), an address
//! ([`Reach::Http`], and [`Reach::Sse`] for those of the first days), or somebody who passes messages on
//! ([`Reach::Wire`]: a server inside the program that drives the session). It connects when it is told to, and again when
//! a call finds the connection gone (an address also by itself, a few times); whatever happens, it says at once what is known of it.
//!
//! What configuration files say is read by [`read_servers`], which touches nothing. The protocol itself is `rmcp`'s.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

mod config; // what configuration says: pure
mod content; // what a call brought, in the model's terms: pure
mod handler; // what servers may ask of us
mod joining; // all of them, when a session begins
mod limits;
mod line; // the connection to one
mod oauth; // logins
mod plugin; // servers that plugins bring: pure
mod reach; // the ways to a server
mod schema; // inputs as the model's API takes them: pure
mod server; // one server
mod surroundings; // what servers are started in and reached by
mod tool; // one of its tools
mod prompt; // one of its prompts
mod library; // what else it has to read

pub use config::{OauthConfig, Program, Reach, Read, Remote, Scope, ServerConfig, read_servers};
pub use joining::{Joining, connect_all};
pub use oauth::{Login, Logins, PendingLogin, begin_login};
pub use plugin::servers_of_plugin;
pub use reach::{Inbox, Wire};
pub use server::{Caller, Server};
pub use surroundings::Surroundings;
