//! Certificates: those that the environment names are the ones trusted, and none are read before one is shown.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sys::stat::Mode;
use pelton_testkit::{Script, ScriptedModel, text};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::place::{Commanded, Place, model};

/// Speaks TLS in front of a model; dropping it ends it.
struct Front {
    address: SocketAddr,
    /// The authority behind its certificate, as PEM.
    authority: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Front {
    fn of(model: &ScriptedModel) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let chain = vec![CertificateDer::from(params.signed_by(&key, &authority).unwrap())];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let behind = model.base_url().trim_start_matches("http://").to_owned();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let serve = async {
                    let listener = TcpListener::from_std(listener).unwrap();
                    loop {
                        let (socket, _) = listener.accept().await.unwrap();
                        let (acceptor, behind) = (acceptor.clone(), behind.clone());
                        tokio::spawn(async move {
                            // A client that does not trust us hangs up.
                            let Ok(mut socket) = acceptor.accept(socket).await else { return };
                            let mut model = TcpStream::connect(behind).await.unwrap();
                            let _ = tokio::io::copy_bidirectional(&mut socket, &mut model).await;
                        });
                    }
                };
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        });
        Self { address, authority: authority.pem(), stop: Some(stop), thread: Some(thread) }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop.take();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A file that whoever opens it for reading waits at.
fn trap(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

#[test]
fn no_certificate_is_read_before_one_is_shown() {
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        let (place, model) = (Place::new(), model(Script::new().reply([text("Hello.")])));
        let file = place.temp().join("roots.pem");
        trap(&file);
        place.pelton(["--version"]).env(name, &file).run().well();
        assert_eq!(place.task(&model, ["hi"]).env(name, &file).run().well(), "Hello.\n", "{name}");
    }
}

#[test]
fn the_authorities_that_the_environment_names_are_trusted() {
    let script = || Script::new().reply([text("Hello.")]);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"] {
        let (place, model) = (Place::new(), model(script()));
        let front = Front::of(&model);
        let folder = place.temp().join("roots");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("authority.pem");
        std::fs::write(&file, &front.authority).unwrap();
        let named = if name == "SSL_CERT_DIR" { &folder } else { &file };
        let ran = place.task(&model, ["hi"]).env("ANTHROPIC_BASE_URL", front.url()).env(name, named).run();
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{name}: {ran:?}");
    }
}

#[test]
fn a_stranger_is_not_trusted_and_the_way_out_is_told() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("Hello.")])));
    let front = Front::of(&model);
    let words = ["no secure connection to localhost", "NODE_EXTRA_CA_CERTS"];
    place.task(&model, ["hi"]).env("ANTHROPIC_BASE_URL", front.url()).run().failed(1, &words);

    let missing = place.temp().join("missing.pem");
    let mut task = place.task(&model, ["hi"]);
    let ran = task.env("ANTHROPIC_BASE_URL", front.url()).env("SSL_CERT_FILE", &missing).run();
    ran.failed(1, &["SSL_CERT_FILE", "missing.pem"]);
    assert_eq!(model.requests().len(), 0);
}
