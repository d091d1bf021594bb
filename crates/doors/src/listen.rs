//! Addresses that doors listen on, with whom they admit and how they encrypt.

use std::net::SocketAddr;
use std::sync::Arc;

use sockets::Acquaintances;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::roles::{Access, SecretError};
use crate::settings::Http;
use crate::tls::{TlsError, acceptor};

/// Why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not available.
    #[error("cannot listen on {0}: {1}; choose another address with --listen or [http] listen")]
    Listen(SocketAddr, std::io::Error),
    /// The address for Ethereum's tools is not available.
    #[error(
        "cannot listen for Ethereum's tools on {0}: {1}; choose another with --ethereum-listen or [ethereum] listen"
    )]
    ListenForEthereum(SocketAddr, std::io::Error),
    /// The address for probes is not available.
    #[error("cannot listen for probes on {0}: {1}; choose another address with [http] probes")]
    ListenForProbes(SocketAddr, std::io::Error),
    /// Other machines could reach the node without TLS.
    #[error(
        "refusing to listen on {0}, which other machines can reach, without TLS: set [http] certificate and \
         certificate_key, or behind_proxy = true if a proxy with TLS is in front of it or its network is \
         private, or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// A setting lists something that is no network.
    #[error("[http] {key}: {text:?} is neither an address nor a network such as 10.0.0.0/8")]
    NoNetwork {
        /// The setting.
        key: &'static str,
        /// The entry.
        text: String,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("[http] certificate and certificate_key belong together: set both, or neither")]
    HalfTls,
    /// TLS cannot be offered.
    #[error("[http] TLS: {0}")]
    Tls(#[from] TlsError),
    /// A token cannot be read.
    #[error("[http] token: {0}")]
    Token(#[from] SecretError),
}

/// Whom a door admits, and how it encrypts.
pub(crate) struct Terms {
    pub access: Access,
    pub known: Arc<Acquaintances>,
    pub tls: Option<TlsAcceptor>,
}

impl Terms {
    /// The terms at an address under the settings of the HTTP interface. Nothing is bound.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the setting.
    pub fn at(settings: &Http, listen: SocketAddr) -> Result<Terms, ListenError> {
        let tls = match (&settings.certificate, &settings.certificate_key) {
            (Some(certificate), Some(key)) => Some(acceptor(certificate, key)?),
            (None, None) if listen.ip().is_loopback() || settings.behind_proxy => None,
            (None, None) => return Err(ListenError::Exposed(listen)),
            _ => return Err(ListenError::HalfTls),
        };
        let access = Access::new(settings)?;
        let known = Acquaintances::parse(&settings.trusted_proxies, settings.proxy_protocol, &settings.known)
            .map_err(|(key, text)| ListenError::NoNetwork { key, text })?;
        Ok(Terms { access, known: Arc::new(known), tls })
    }
}

/// Checks doors at these addresses as their opening would, without binding one.
///
/// # Errors
/// [`ListenError`] names the address and the setting.
pub fn check(settings: &Http, listen: impl IntoIterator<Item = SocketAddr>) -> Result<(), ListenError> {
    listen.into_iter().try_for_each(|listen| Terms::at(settings, listen).map(drop))
}

/// An address that is bound, but not answered at yet.
pub(crate) struct Listening {
    pub listener: TcpListener,
    pub address: SocketAddr,
    pub terms: Terms,
}

impl Listening {
    /// Binds an address under the settings of the HTTP interface.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the setting.
    pub async fn bind(settings: &Http, listen: SocketAddr) -> Result<Listening, ListenError> {
        let terms = Terms::at(settings, listen)?;
        let listener = TcpListener::bind(listen).await.map_err(|error| ListenError::Listen(listen, error))?;
        let address = listener.local_addr().map_err(|error| ListenError::Listen(listen, error))?;
        Ok(Listening { listener, address, terms })
    }
}
