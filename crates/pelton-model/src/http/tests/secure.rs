//! With TLS, against certificates made on the spot.

use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::transport::Get;

/// Speaks TLS under this name, by the word of a private authority; that authority as PEM.
fn acceptor(name: &str) -> (TlsAcceptor, Vec<u8>) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), authority.pem().into_bytes())
}

/// A server behind a certificate of a private authority; the authority as PEM.
async fn start() -> (Server, Vec<u8>) {
    let (acceptor, authority) = acceptor("localhost");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let listening = Arc::clone(&heard);
    let task = tokio::spawn(async move {
        for number in 0.. {
            let (socket, _) = listener.accept().await.unwrap();
            // A client that does not trust us hangs up.
            let Ok(socket) = acceptor.accept(socket).await else { continue };
            assert_eq!(socket.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            tokio::spawn(serve(socket, number, Arc::clone(&listening), OK, false));
        }
    });
    (Server { address, heard, task }, authority)
}

fn url(server: &Server) -> String {
    format!("https://localhost:{}/v1/messages", server.address.port())
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let (server, authority) = start().await;
    let transport =
        HttpTransport::new(HttpOptions { extra_roots: Roots::of_pem(authority), ..HttpOptions::default() });
    assert_eq!(send(&transport, post(url(&server))).await.unwrap(), (200, b"ok".to_vec()));
    // A new pool does not read the certificates again, and still trusts.
    send(&transport, Post { fresh_connection: true, ..post(url(&server)) }).await.unwrap();
    assert_eq!(server.heard().len(), 2);
}

/// Authorities in DER, and how often they were read.
fn roots(pem: &[u8]) -> (Roots, Arc<AtomicU32>) {
    let authority = CertificateDer::from_pem_slice(pem).unwrap().to_vec();
    let reads = Arc::<AtomicU32>::default();
    let count = Arc::clone(&reads);
    let read = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(vec![b"not a certificate".to_vec(), authority.clone()])
    };
    (Roots::read_by(read), reads)
}

#[tokio::test]
async fn authorities_are_read_at_the_first_handshake_and_once() {
    let (server, authority) = start().await;
    let open = Server::start(OK, false).await;
    let (roots, reads) = roots(&authority);
    let transport = HttpTransport::new(HttpOptions { roots, ..HttpOptions::default() });
    send(&transport, post(open.url())).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 0, "nobody had to be trusted");
    for fresh_connection in [false, true] {
        send(&transport, Post { fresh_connection, ..post(url(&server)) }).await.unwrap();
    }
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn without_authorities_nobody_is_trusted_and_it_is_said_why() {
    let (server, _) = start().await;
    check_error(plain(), &url(&server), TransportErrorKind::Tls, "no authority is trusted").await;
    let roots = Roots::read_by(|| Err("the store is locked".to_owned()));
    let transport = HttpTransport::new(HttpOptions { roots, ..HttpOptions::default() });
    check_error(transport, &url(&server), TransportErrorKind::Tls, "the store is locked").await;
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let (server, authority) = start().await;
    let words = "no secure connection to localhost:";
    check_error(plain(), &url(&server), TransportErrorKind::Tls, words).await;
    // Nor is somebody else under a trusted authority.
    let transport =
        HttpTransport::new(HttpOptions { extra_roots: Roots::of_pem(authority), ..HttpOptions::default() });
    let other_name = url(&server).replace("localhost", "127.0.0.1");
    check_error(transport, &other_name, TransportErrorKind::Tls, "no secure connection to 127.0.0.1:").await;
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_an_error() {
    let (server, _) = start().await;
    let pem = b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n".to_vec();
    let transport =
        HttpTransport::new(HttpOptions { extra_roots: Roots::of_pem(pem), ..HttpOptions::default() });
    check_error(transport, &url(&server), TransportErrorKind::Tls, "the extra certificates cannot be read")
        .await;
}

#[tokio::test]
async fn pit_L16_a_proxy_that_looks_inside_is_trusted_at_the_first_try() {
    let (acceptor, authority) = acceptor("far.away");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let heard = Heard::default();
    let listening = Arc::clone(&heard);
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await.unwrap();
        listening.lock().unwrap().push((0, request));
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // Whoever it is that the client thinks to talk to, it is us.
        let socket = acceptor.accept(socket).await.unwrap();
        serve(socket, 0, listening, OK, false).await;
    });
    let transport = HttpTransport::new(HttpOptions {
        proxy: Some(ProxyRules { https: Some(proxy), ..ProxyRules::default() }),
        extra_roots: Roots::of_pem(authority),
        ..HttpOptions::default()
    });
    assert_eq!(send(&transport, post("https://far.away/v1/messages")).await.unwrap().0, 200);
    task.abort();
    let heard: Vec<String> = heard.lock().unwrap().iter().map(|(_, request)| request.clone()).collect();
    assert!(
        heard[0].starts_with("CONNECT far.away:443 ") && heard[1].starts_with("POST /v1/messages "),
        "{heard:?}"
    );
    assert_eq!(heard.len(), 2);
}

#[tokio::test]
async fn pages_are_held_to_their_certificates_wherever_they_are_pinned() {
    let (server, authority) = start().await;
    let get = |host: &str| Get {
        url: format!("https://{host}:{}/", server.address.port()),
        headers: HeaderMap::new(),
        pinned: vec![server.address],
    };
    let transport =
        HttpTransport::new(HttpOptions { extra_roots: Roots::of_pem(authority), ..HttpOptions::default() });
    assert_eq!(transport.get(get("localhost")).await.unwrap().status, 200);
    assert_eq!(transport.get(get("other.invalid")).await.unwrap_err().kind, TransportErrorKind::Tls);
    assert_eq!(plain().get(get("localhost")).await.unwrap_err().kind, TransportErrorKind::Tls);
}
