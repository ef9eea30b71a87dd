//! Whom to trust: the authorities we were told of and a few more.
//!
//! Reading the certificates of a system takes longer than everything else at the start, and a server on this machine
//! needs none of them: so they are read when the first certificate has to be judged.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme, crypto,
};

use crate::transport::{TransportError, TransportErrorKind};

/// Reads the certificates of trusted authorities, each in DER; or says in words for people why there are none.
type Read = dyn Fn() -> Result<Vec<Vec<u8>>, String> + Send + Sync;

/// The authorities whose certificates are trusted. Nobody, by default.
///
/// ```
/// use pelton_model::{HttpOptions, Roots};
///
/// // Read when the first certificate has to be judged; here, nobody is trusted.
/// let roots = Roots::read_by(|| Err("this machine has no certificates".to_owned()));
/// let mut options = HttpOptions::default();
/// options.roots = roots;
/// assert_eq!(format!("{:?}", Roots::default()), "Roots(nobody)");
/// # drop(options);
/// ```
#[derive(Clone, Default)]
pub struct Roots {
    read: Option<Arc<Read>>,
}

impl Roots {
    /// Those that `read` finds: their certificates, each in DER, or why there are none, in words for people. It is
    /// called when the first certificate has to be judged, and once; it may take its time.
    pub fn read_by(read: impl Fn() -> Result<Vec<Vec<u8>>, String> + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)) }
    }

    /// Those in a text as files with certificates have it (PEM). It is read when the first certificate has to be judged.
    pub fn of_pem(pem: Vec<u8>) -> Self {
        Self::read_by(move || {
            let found = CertificateDer::pem_slice_iter(&pem);
            let found = found.map(|certificate| certificate.map(|found| found.to_vec()));
            found.collect::<Result<_, _>>().map_err(|error| error.to_string())
        })
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let Some(read) = &self.read else { return Ok(Vec::new()) };
        Ok(read()?.into_iter().map(CertificateDer::from).collect())
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.read.is_some() { "Roots(..)" } else { "Roots(nobody)" })
    }
}

/// How to speak TLS.
pub(super) fn config(roots: &Roots, extra_roots: &Roots) -> Result<ClientConfig, TransportError> {
    let tls = |message: String| TransportError::new(TransportErrorKind::Tls, message);
    let provider = Arc::new(crypto::ring::default_provider());
    let (roots, extra_roots) = (roots.clone(), extra_roots.clone());
    let judge = Judge { roots, extra_roots, provider: Arc::clone(&provider), verifier: OnceLock::new() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(judge))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Judges certificates as usual, but reads what it needs for that when it needs it.
#[derive(Debug)]
struct Judge {
    roots: Roots,
    extra_roots: Roots,
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<WebPkiServerVerifier>, Error>>,
}

impl Judge {
    fn verifier(&self) -> Result<&WebPkiServerVerifier, Error> {
        match self.verifier.get_or_init(|| self.read()) {
            Ok(verifier) => Ok(verifier),
            Err(error) => Err(error.clone()),
        }
    }

    fn read(&self) -> Result<Arc<WebPkiServerVerifier>, Error> {
        let mut roots = RootCertStore::empty();
        let found = self.roots.certificates();
        let why = found.as_ref().err().cloned();
        // Stores hold odd certificates; one that cannot be used is no reason to trust none.
        roots.add_parsable_certificates(found.unwrap_or_default());
        let unreadable = |why| Error::General(format!("the extra certificates cannot be read: {why}"));
        for certificate in self.extra_roots.certificates().map_err(unreadable)? {
            roots.add(certificate)?;
        }
        if roots.is_empty() {
            let why = why.unwrap_or_else(|| "no authority is trusted".to_owned());
            return Err(Error::General(why));
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|error| Error::Other(OtherError(Arc::new(error))))
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
