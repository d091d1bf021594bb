//! The header fields that tell a client how much it may ask at once: `RateLimit-Policy` and `RateLimit` of the IETF's
//! draft-ietf-httpapi-ratelimit-headers-10, of which `Retry-After` is the pause when nothing is left.
//!
//! This node counts no requests by time. It limits what an address has under way: requests, and bytes of bodies
//! ([`sockets::Shares`]). So the policies have no window, and what is left grows with each answer.
//!
//! - `RateLimit-Policy: "requests";q=512;qu="concurrent-requests", "bytes";q=134217728;qu="content-bytes"`: what one
//!   address can have when it shares the node with nobody. It is constant while the node runs.
//! - `RateLimit: "requests";r=512, "bytes";r=134217728`: what the address may begin beside what it still has under way.

use std::net::IpAddr;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use sockets::Shares;

use crate::door::DoorLimits;
use crate::settings::Http;

/// The fields that pages of listed origins may read, besides the usual ones.
pub(crate) const EXPOSED: &str = "ratelimit, ratelimit-policy, retry-after";

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer of a structured field (RFC 9651).
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// The most of a resource that one address can hold: it never takes the last half of more than one unit.
pub(crate) fn most_of_one(units: u64) -> u64 {
    (units / 2).max(units.min(1))
}

/// What is shared by the requests of a door.
#[derive(Clone)]
pub(crate) struct RateLimits {
    /// Requests being served.
    pub(crate) requests: Shares,
    /// Bytes of bodies.
    pub(crate) bytes: Shares,
    /// Requests that one address can have under way.
    pub(crate) requests_of_one: u64,
    /// Bytes of bodies that one address can have under way.
    pub(crate) bytes_of_one: u64,
    policy: HeaderValue,
}

impl RateLimits {
    /// The configured limits, with nothing under way.
    pub(crate) fn new(settings: &Http) -> RateLimits {
        let (requests, bytes) = (settings.concurrent_requests, DoorLimits::new(settings).body_bytes_waiting);
        let (requests, bytes) = (requests as u64, bytes as u64);
        let (requests_of_one, bytes_of_one) = (most_of_one(requests), most_of_one(bytes));
        let [some, more] = [requests_of_one, bytes_of_one].map(|most| most.min(INTEGER_MAX));
        let policy = format!(r#""requests";q={some};qu="concurrent-requests", "bytes";q={more};qu="content-bytes""#);
        RateLimits {
            requests: Shares::new(requests),
            bytes: Shares::new(bytes),
            requests_of_one,
            bytes_of_one,
            policy: value(&policy),
        }
    }

    /// Tells the limits of the address that asked.
    pub(crate) fn tell(&self, address: IpAddr, answer: &mut Response) {
        let requests = self.requests.left_for(address).min(self.requests_of_one).min(INTEGER_MAX);
        let bytes = self.bytes.left_for(address).min(self.bytes_of_one).min(INTEGER_MAX);
        let headers = answer.headers_mut();
        headers.insert(POLICY, self.policy.clone());
        headers.insert(LEFT, value(&format!(r#""requests";r={requests}, "bytes";r={bytes}"#)));
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("letters, digits and quotes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer tells, after one address has taken and another holds some.
    fn told(limits: &RateLimits, address: [u8; 4]) -> String {
        let mut answer = Response::default();
        limits.tell(address.into(), &mut answer);
        answer.headers()[LEFT].to_str().expect("text").into()
    }

    #[test]
    fn what_is_told_is_what_can_be_taken() {
        let limits = RateLimits::new(&Http { concurrent_requests: 8, ..Http::default() });
        let policy = r#""requests";q=4;qu="concurrent-requests", "bytes";q=134217728;qu="content-bytes""#;
        assert_eq!(limits.policy, policy);
        let mut held = Vec::new();
        // An address may take while it holds no more than it leaves.
        for left in [4, 3, 2, 1, 0] {
            assert!(told(&limits, [192, 0, 2, 1]).starts_with(&format!(r#""requests";r={left},"#)), "{left}");
            held.extend(limits.requests.take([192, 0, 2, 1].into(), 1));
        }
        assert_eq!(held.len(), 4);
        // Another one shares what is free, down to the last.
        for _ in 0..3 {
            let left = limits.requests.left_for([192, 0, 2, 2].into());
            let taken = limits.requests.take([192, 0, 2, 2].into(), 1);
            assert_eq!(taken.is_some(), left > 0);
            held.extend(taken);
        }
        assert!(told(&limits, [192, 0, 2, 2]).starts_with(r#""requests";r=0,"#));
        drop(held);
        assert!(told(&limits, [192, 0, 2, 1]).starts_with(r#""requests";r=4,"#));
    }

    #[test]
    fn the_least_and_the_largest_settings_are_structured_integers() {
        let least = Http { concurrent_requests: 1, body_bytes: 1, body_bytes_waiting: 0, ..Http::default() };
        assert_eq!(
            RateLimits::new(&least).policy,
            r#""requests";q=1;qu="concurrent-requests", "bytes";q=1;qu="content-bytes""#
        );
        let most = Http { concurrent_requests: usize::MAX, body_bytes_waiting: usize::MAX, ..Http::default() };
        let limits = RateLimits::new(&most);
        assert!(limits.policy.to_str().expect("text").starts_with(r#""requests";q=999999999999999;"#));
        assert_eq!(told(&limits, [192, 0, 2, 1]), r#""requests";r=999999999999999, "bytes";r=999999999999999"#);
    }
}
