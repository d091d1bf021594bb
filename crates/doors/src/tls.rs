//! TLS at the door, from a certificate and a key in PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::roles::{SecretError, read_secret};

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The key file cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A file is not valid PEM.
    #[error("{}: {reason}; [http] certificate and certificate_key are PEM files", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: pem::Error,
    },
    /// Certificate and key do not match.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The certificate's file.
        path: PathBuf,
        /// The error.
        reason: rustls::Error,
    },
}

/// A TLS acceptor with this certificate; only its owner may be able to read the key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |path: &Path| {
        let path = path.to_path_buf();
        move |reason| TlsError::Pem { path, reason }
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(unreadable(certificate))?;
    let secret = PrivateKeyDer::from_pem_slice(read_secret(key)?.as_bytes()).map_err(unreadable(key))?;
    let refused = |reason| TlsError::Refused { path: certificate.to_path_buf(), reason };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(refused)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, secret).map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
