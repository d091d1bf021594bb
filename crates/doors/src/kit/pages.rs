//! Which pages of browsers may use a door: the node's own ones, and those that the operator lists.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

use super::failure::Failure;
use crate::settings::Http;

/// The host names of a door, and the origins of its pages.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether pages of this machine are admitted, as on a developers' chain.
    admits_loopback: bool,
}

impl Pages {
    /// Those of the settings.
    pub(crate) fn of(settings: &Http, admits_loopback: bool) -> Pages {
        Pages { hosts: settings.hosts.clone(), origins: settings.origins.clone(), admits_loopback }
    }

    /// Rejects a page of another site, which a browser may have been led to: one that reaches this node under a name
    /// that is not its own (DNS rebinding), or one of another origin that the operator has not listed. Browsers send
    /// the origin with every request that could change something, and with WebSockets, for which they check nothing
    /// else. What no browser can send as an origin names no page.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Failure> {
        if let Some(foreign) = self.foreign_host(headers) {
            let message = format!(
                "the host name {foreign:?} is none of this node's: list it under [http] hosts, or let the proxy in \
                 front pass on the name that clients use (nginx: `proxy_set_header Host $host`)"
            );
            return Err(Failure::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message));
        }
        let mut pages = headers.get_all(header::ORIGIN).iter().filter(|origin| is_page(origin.as_bytes()));
        match pages.find(|origin| !self.is_admitted(origin, headers)) {
            Some(origin) => {
                let message =
                    format!("pages of {origin:?} may not use this node; list the origin under [http] origins");
                Err(Failure::new(StatusCode::FORBIDDEN, "foreign_origin", message))
            }
            None => Ok(()),
        }
    }

    /// Whether the origin is the node itself, or listed.
    fn is_admitted(&self, origin: &HeaderValue, headers: &HeaderMap) -> bool {
        let authority =
            origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_own = authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host));
        is_own || self.is_listed(origin)
    }

    /// Whether the operator has listed the origin. A developers' chain admits every page of the developer's machine.
    pub(crate) fn is_listed(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        self.origins.iter().any(|known| known == origin) || (self.admits_loopback && is_loopback(origin))
    }

    /// The name under which a request came, if it is none of the node's.
    fn foreign_host<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = host_name(headers.get(header::HOST)?.to_str().ok()?);
        let is_own = |name: &str| {
            name == "localhost" || name.parse::<IpAddr>().is_ok() || self.hosts.iter().any(|known| known == name)
        };
        Some(name).filter(|name| !is_own(name))
    }
}

/// Rejects what a page of another site sends: see [`Pages::check`].
pub(crate) async fn check_pages(State(pages): State<Arc<Pages>>, request: Request, next: Next) -> Response {
    match pages.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

/// Whether a browser can send this as an origin: a scheme and a host, several of them, or `null` for a page that has
/// none. Some tools send their name instead.
fn is_page(origin: &[u8]) -> bool {
    let is_null = origin.split(u8::is_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(b"null"));
    is_null || origin.is_empty() || origin.contains(&b':')
}

fn is_loopback(origin: &str) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let name = host_name(authority);
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A host without its port and brackets.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::is_page;

    #[test]
    fn a_value_that_no_browser_sends_is_no_origin() {
        for tool in ["Titanoboa", "titanoboa/0.2.8", "my tool", "localhost", "nullable"] {
            assert!(!is_page(tool.as_bytes()), "{tool}");
        }
        let pages = ["https://a.example", "http://a.example http://b.example", "null", "NULL", "", "file://", "blob:x"];
        for page in pages {
            assert!(is_page(page.as_bytes()), "{page}");
        }
        assert!(is_page(b"http://\xff.example"));
    }
}
