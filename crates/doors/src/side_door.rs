//! A door for another interface of the same process, with the limits, TLS and tokens of the HTTP interface.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::middleware;
use sockets::Acquaintances;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::door::{self, DoorLimits};
use crate::pages::{Pages, check_pages};
use crate::roles::{Access, Role};
use crate::settings::Http;
use crate::{ListenError, tls};

/// An address that is bound, but not answered at yet.
pub struct SideDoor {
    listener: TcpListener,
    address: SocketAddr,
    limits: DoorLimits,
    body_bytes: usize,
    pages: Arc<Pages>,
    access: Access,
    known: Arc<Acquaintances>,
    tls: Option<TlsAcceptor>,
}

/// Tells whether a request is the operator's.
#[derive(Clone)]
pub struct OperatorCheck(Arc<Access>);

impl OperatorCheck {
    /// Whether these headers have the operator's token.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        self.0.admits(Role::Operator, headers)
    }
}

impl SideDoor {
    /// Binds an address under the settings of the HTTP interface.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the setting.
    pub async fn bind(settings: &Http, listen: SocketAddr) -> Result<SideDoor, ListenError> {
        let tls = match (&settings.certificate, &settings.certificate_key) {
            (Some(certificate), Some(key)) => Some(tls::acceptor(certificate, key)?),
            (None, None) if listen.ip().is_loopback() || settings.behind_proxy => None,
            (None, None) => return Err(ListenError::Exposed(listen)),
            _ => return Err(ListenError::HalfTls),
        };
        let access = Access::new(settings)?;
        let known = Acquaintances::parse(&settings.trusted_proxies, settings.proxy_protocol, &settings.known)
            .map_err(|(key, text)| ListenError::NoNetwork { key, text })?;
        let listener = TcpListener::bind(listen).await.map_err(|error| ListenError::Listen(listen, error))?;
        let address = listener.local_addr().map_err(|error| ListenError::Listen(listen, error))?;
        let (limits, body_bytes) = (DoorLimits::new(settings), settings.body_bytes);
        let pages = Arc::new(Pages::of(settings, false));
        Ok(SideDoor { listener, address, limits, body_bytes, pages, access, known: Arc::new(known), tls })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who is the operator here.
    pub fn operator_check(&self) -> OperatorCheck {
        OperatorCheck(Arc::new(self.access.clone()))
    }

    /// Serves a router until told to stop. Every request has the extension [`crate::Visitor`]; pages of other sites
    /// reach nothing.
    pub async fn serve(self, router: Router, stopped: watch::Receiver<bool>) {
        let SideDoor { listener, limits, body_bytes, pages, known, tls, .. } = self;
        let router =
            router.layer(DefaultBodyLimit::max(body_bytes)).layer(middleware::from_fn_with_state(pages, check_pages));
        door::serve(listener, tls, router, limits, known, stopped).await;
    }
}
