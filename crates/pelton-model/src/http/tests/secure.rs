//! With TLS, against certificates made on the spot.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server behind a certificate of a private authority; the authority as PEM.
async fn start() -> (Server, Vec<u8>) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));

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
    (Server { address, heard, task }, authority.pem().into_bytes())
}

fn url(server: &Server) -> String {
    format!("https://localhost:{}/v1/messages", server.address.port())
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let (server, authority) = start().await;
    let transport =
        HttpTransport::new(HttpOptions { extra_ca_pem: Some(authority), ..HttpOptions::default() });
    assert_eq!(send(&transport, post(url(&server))).await.unwrap(), (200, b"ok".to_vec()));
    // A new pool does not read the certificates again, and still trusts.
    send(&transport, Post { fresh_connection: true, ..post(url(&server)) }).await.unwrap();
    assert_eq!(server.heard().len(), 2);
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let (server, authority) = start().await;
    let words = "no secure connection to localhost:";
    check_error(plain(), &url(&server), TransportErrorKind::Tls, words).await;
    // Nor is somebody else under a trusted authority.
    let transport =
        HttpTransport::new(HttpOptions { extra_ca_pem: Some(authority), ..HttpOptions::default() });
    let other_name = url(&server).replace("localhost", "127.0.0.1");
    check_error(transport, &other_name, TransportErrorKind::Tls, "no secure connection to 127.0.0.1:").await;
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_an_error() {
    let pem = b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n".to_vec();
    let transport = HttpTransport::new(HttpOptions { extra_ca_pem: Some(pem), ..HttpOptions::default() });
    check_error(
        transport,
        "https://localhost/",
        TransportErrorKind::Tls,
        "the extra certificates cannot be read",
    )
    .await;
}
