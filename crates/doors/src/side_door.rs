//! A door for another interface of the same process, with the limits, TLS and tokens of the HTTP interface.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::middleware;
use tokio::sync::watch;

use crate::door::{self, DoorLimits};
use crate::kit::{Pages, check_pages};
use crate::listen::{ListenError, Listening, Terms};
use crate::roles::{Access, Role};
use crate::settings::Http;

/// An address that is bound, but not answered at yet.
pub struct SideDoor {
    door: Listening,
    limits: DoorLimits,
    body_bytes: usize,
    pages: Arc<Pages>,
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
        let door = Listening::bind(settings, listen).await?;
        let (limits, body_bytes) = (DoorLimits::new(settings), settings.body_bytes);
        let pages = Arc::new(Pages::of(settings, false));
        Ok(SideDoor { door, limits, body_bytes, pages })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.door.address
    }

    /// Who is the operator here.
    pub fn operator_check(&self) -> OperatorCheck {
        OperatorCheck(Arc::new(self.door.terms.access.clone()))
    }

    /// Serves a router until told to stop. Every request has the extension [`crate::Visitor`]; pages of other sites
    /// reach nothing.
    pub async fn serve(self, router: Router, stopped: watch::Receiver<bool>) {
        let SideDoor { door: Listening { listener, terms: Terms { known, tls, .. }, .. }, limits, body_bytes, pages } =
            self;
        let router =
            router.layer(DefaultBodyLimit::max(body_bytes)).layer(middleware::from_fn_with_state(pages, check_pages));
        door::serve(listener, tls, router, limits, known, stopped).await;
    }
}
