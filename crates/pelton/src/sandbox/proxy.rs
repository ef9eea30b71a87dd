//! The way out for commands that may reach some hosts: a proxy (HTTP, CONNECT, SOCKS 5) behind a socket on the file system, to
//! which the bridge in the box leads. It runs while the command is waited for, and ends with that.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream, lookup_host};
use tokio::time::timeout;

use super::door::{Answered, Door};
use super::hosts::Hosts;
use crate::limits::{
    PROXY_CONNECT_TIME_MAX, PROXY_CONNECTIONS_MAX, PROXY_HEAD_BYTES_MAX, PROXY_REFUSALS_MAX,
};

/// A proxy of the user's on this machine, which decides instead of ours: its ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsersProxy {
    pub http: Option<u16>,
    pub socks: Option<u16>,
}

/// Decides for one command.
#[derive(Debug)]
pub(crate) struct Proxy {
    listener: UnixListener,
    socket: PathBuf,
    hosts: Hosts,
    users: UsersProxy,
    /// Who decides about hosts that no list names; they are refused if nobody does.
    door: Option<(Door, Answered)>,
    refused: Mutex<Vec<String>>,
}

impl Proxy {
    /// Listens at a path where nothing is.
    pub fn bind(
        socket: PathBuf,
        hosts: Hosts,
        users: UsersProxy,
        door: Option<(Door, Answered)>,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        Ok(Self { listener, socket, hosts, users, door, refused: Mutex::default() })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Hosts that were asked for and refused, and why.
    pub fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves until it is dropped.
    pub async fn serve(&self) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < PROXY_CONNECTIONS_MAX => {
                    if let Ok((stream, _)) = accepted {
                        open.push(self.connection(stream));
                    } else {
                        // Out of descriptors, perhaps: others have to end first.
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    }
                }
                // A connection that broke is the client's to notice.
                Some(_) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    async fn connection(&self, mut client: UnixStream) -> io::Result<()> {
        let first = client.read_u8().await?;
        let theirs = if first == 5 { self.users.socks } else { self.users.http };
        if let Some(port) = theirs {
            let mut server = TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).await?;
            server.write_u8(first).await?;
            return copy_bidirectional(&mut client, &mut server).await.map(drop);
        }
        if first == 5 { self.socks(client).await } else { self.http(client, first).await }
    }

    async fn http(&self, mut client: UnixStream, first: u8) -> io::Result<()> {
        let mut head = vec![first];
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= PROXY_HEAD_BYTES_MAX {
                return client.write_all(b"HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n").await;
            }
            head.push(client.read_u8().await?);
        }
        let Some(request) = Request::read(&head) else {
            return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        };
        match self.reach(&request.host, request.port).await {
            Ok(mut server) => {
                match request.forwarded {
                    None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
                    Some(head) => server.write_all(&head).await?,
                }
                copy_bidirectional(&mut client, &mut server).await.map(drop)
            }
            Err(Refusal::Forbidden(why)) => {
                let body = format!("The sandbox refuses {}: {why}.\n", request.host);
                let head = format!(
                    "HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-allowlist\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                client.write_all((head + &body).as_bytes()).await
            }
            Err(Refusal::Unreachable) => {
                client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await
            }
        }
    }

    async fn socks(&self, mut client: UnixStream) -> io::Result<()> {
        let count = client.read_u8().await?;
        let mut methods = vec![0; usize::from(count)];
        client.read_exact(&mut methods).await?;
        client.write_all(&[5, 0]).await?;
        let mut request = [0; 4];
        client.read_exact(&mut request).await?;
        let host = match request[3] {
            1 => std::net::Ipv4Addr::from(client.read_u32().await?).to_string(),
            4 => std::net::Ipv6Addr::from(client.read_u128().await?).to_string(),
            3 => {
                let mut name = vec![0; usize::from(client.read_u8().await?)];
                client.read_exact(&mut name).await?;
                String::from_utf8_lossy(&name).into_owned()
            }
            _ => return client.write_all(&socks_answer(8)).await,
        };
        let port = client.read_u16().await?;
        if request[1] != 1 {
            // Only connecting is served.
            return client.write_all(&socks_answer(7)).await;
        }
        match self.reach(&host, port).await {
            Ok(mut server) => {
                client.write_all(&socks_answer(0)).await?;
                copy_bidirectional(&mut client, &mut server).await.map(drop)
            }
            Err(Refusal::Forbidden(_)) => client.write_all(&socks_answer(2)).await,
            Err(Refusal::Unreachable) => client.write_all(&socks_answer(4)).await,
        }
    }

    /// Connects to a host, if that may be: first its name is judged, then where it leads.
    async fn reach(&self, host: &str, port: u16) -> Result<TcpStream, Refusal> {
        if !self.hosts.allow(host) {
            let is_let_through = match &self.door {
                Some((door, answered)) if !self.hosts.deny(host) => door.lets_through(host, answered).await,
                _ => false,
            };
            if !is_let_through {
                return Err(self.refuse(host, "it is not among the allowed domains"));
            }
        }
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let work = async {
            let found: Vec<SocketAddr> =
                lookup_host((name, port)).await.map_err(|_| Refusal::Unreachable)?.collect();
            let allowed: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|address| self.hosts.allow_address(name, address.ip()))
                .collect();
            if allowed.is_empty() && !found.is_empty() {
                return Err(self.refuse(host, "its address is private, and not named itself"));
            }
            // What was judged is what is connected to: the name is not asked for again.
            TcpStream::connect(allowed.as_slice()).await.map_err(|_| Refusal::Unreachable)
        };
        timeout(PROXY_CONNECT_TIME_MAX, work).await.unwrap_or(Err(Refusal::Unreachable))
    }

    fn refuse(&self, host: &str, why: &'static str) -> Refusal {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let host: String = host.chars().filter(|c| !c.is_control()).take(253).collect();
        let line = format!("{host} ({why})");
        if refused.len() < PROXY_REFUSALS_MAX && !refused.contains(&line) {
            refused.push(line);
        }
        Refusal::Forbidden(why)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The command may have taken it away already.
        let _ = std::fs::remove_file(&self.socket);
    }
}

enum Refusal {
    Forbidden(&'static str),
    Unreachable,
}

fn socks_answer(code: u8) -> [u8; 10] {
    [5, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// What a client asks of a proxy.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    host: String,
    port: u16,
    /// What the server is told first; nothing if all that comes is passed on.
    forwarded: Option<Vec<u8>>,
}

impl Request {
    fn read(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = target.rsplit_once(':')?;
            return Some(Self { host: host.to_owned(), port: port.parse().ok()?, forwarded: None });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // Who is in front of an `@` is not the host.
        let authority = authority.rsplit('@').next()?;
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, 80),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut forwarded = format!("{method} {slash}{path} {version}\r\n");
        for line in lines.take_while(|line| !line.is_empty()) {
            let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            // One request on one connection: the next may be for somebody else.
            if !matches!(
                name.as_str(),
                "connection" | "proxy-connection" | "proxy-authorization" | "keep-alive"
            ) {
                forwarded.push_str(line);
                forwarded.push_str("\r\n");
            }
        }
        forwarded.push_str("Connection: close\r\n\r\n");
        Some(Self { host: host.to_owned(), port, forwarded: Some(forwarded.into_bytes()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Option<(String, u16, Option<String>)> {
        let request = Request::read(head.as_bytes())?;
        Some((request.host, request.port, request.forwarded.map(|head| String::from_utf8(head).unwrap())))
    }

    #[test]
    fn requests_name_their_host_in_several_ways() {
        assert_eq!(read("CONNECT a.b:443 HTTP/1.1\r\n\r\n"), Some(("a.b".into(), 443, None)));
        assert_eq!(read("CONNECT [::1]:443 HTTP/1.1\r\n\r\n"), Some(("[::1]".into(), 443, None)));
        let forwarded = "GET /x?y HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n";
        assert_eq!(
            read("GET http://u:p@a.b:81/x?y HTTP/1.1\r\nHost: a.b\r\nProxy-Connection: keep-alive\r\n\r\n"),
            Some(("a.b".into(), 81, Some(forwarded.into())))
        );
        assert_eq!(
            read("GET http://a.b HTTP/1.0\r\n\r\n").map(|(host, port, _)| (host, port)),
            Some(("a.b".into(), 80))
        );
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT x HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
            "GET ftp://x/ HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(read(head), None, "{head}");
        }
    }

    #[tokio::test]
    async fn only_hosts_on_the_list_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let hosts = Hosts { allowed: vec!["127.0.0.1".into()], denied: Vec::new() };
        let proxy = Proxy::bind(dir.path().join("p"), hosts, UsersProxy::default(), None).unwrap();
        let serve_one = async {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(b"pong").await.unwrap();
        };
        let asks = async |first: &[u8], length: usize| {
            let mut client = UnixStream::connect(proxy.socket()).await.unwrap();
            client.write_all(first).await.unwrap();
            let mut answer = vec![0; length];
            client.read_exact(&mut answer).await.unwrap();
            (client, answer)
        };
        let work = async {
            let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n");
            let (mut client, answer) = asks(request.as_bytes(), 39).await;
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
            let ((), ()) = futures::join!(serve_one, async {
                client.write_all(b"ping").await.unwrap();
                let mut answer = [0; 4];
                client.read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, b"pong");
            });
            let (_, answer) = asks(b"CONNECT localhost:1 HTTP/1.1\r\n\r\n", 12).await;
            assert_eq!(answer, b"HTTP/1.1 403");
            let (_, answer) = asks(b"\x05\x01\x00\x05\x01\x00\x03\x04evil\x00\x50", 4).await;
            assert_eq!(answer, [5, 0, 5, 2]);
        };
        tokio::select! {
            never = proxy.serve() => match never {},
            () = work => {}
        }
        assert_eq!(proxy.refused().len(), 2);
    }

    #[tokio::test]
    async fn the_users_own_proxy_decides_in_the_place_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let users = UsersProxy { http: Some(theirs.local_addr().unwrap().port()), socks: None };
        let proxy = Proxy::bind(dir.path().join("p"), Hosts::default(), users, None).unwrap();
        let work = async {
            let mut client = UnixStream::connect(proxy.socket()).await.unwrap();
            client.write_all(b"CONNECT any:1 HTTP/1.1\r\n\r\n").await.unwrap();
            let (mut server, _) = theirs.accept().await.unwrap();
            let mut head = [0; 26];
            server.read_exact(&mut head).await.unwrap();
            assert_eq!(&head, b"CONNECT any:1 HTTP/1.1\r\n\r\n");
            server.write_all(b"yes").await.unwrap();
            let mut answer = [0; 3];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"yes");
        };
        tokio::select! {
            never = proxy.serve() => match never {},
            () = work => {}
        }
    }
}
