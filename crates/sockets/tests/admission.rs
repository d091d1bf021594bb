//! Places and shares against greedy addresses, and the addresses of clients behind proxies.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use sockets::{
    Acquaintance, Entry, Networks, PlaceId, PlaceLimits, Places, Prefix, ProxyError, Shares, read_proxy_header,
};

const LIMITS: PlaceLimits = PlaceLimits { total: 64, of_address: 64, kept: 2, patience_ms: 1_000 };

fn address(prefix: u8, host: u8) -> IpAddr {
    IpAddr::from([10, 0, prefix, host])
}

fn admitted(entry: Entry) -> (PlaceId, Option<PlaceId>) {
    match entry {
        Entry::Admitted { place, displaced } => (place, displaced),
        Entry::TurnedAway => panic!("turned away"),
    }
}

#[test]
fn sixteen_prefixes_that_hold_all_places_do_not_keep_out_the_seventeenth() {
    let mut places = Places::new(LIMITS);
    for at in 0..64 {
        admitted(places.enter(address(at % 16, at), Acquaintance::Stranger, 0));
    }
    let (honest, displaced) = admitted(places.enter(address(99, 1), Acquaintance::Stranger, 1));
    assert!(displaced.is_some());
    // The others come again and again, and displace only each other.
    for at in 0..1_000u64 {
        if let Entry::Admitted { displaced, .. } =
            places.enter(address((at % 16) as u8, at as u8), Acquaintance::Stranger, 2 + at * 100)
        {
            assert_ne!(displaced, Some(honest));
        }
    }
    assert_eq!(places.len(), 64);
}

#[test]
fn within_a_prefix_whoever_makes_progress_stays_and_the_slowest_goes() {
    let mut places = Places::new(LIMITS);
    let all: Vec<PlaceId> =
        (0..64).map(|at| admitted(places.enter(address(1, at), Acquaintance::Stranger, 0)).0).collect();
    // Nobody has been idle for long yet.
    assert_eq!(places.enter(address(1, 200), Acquaintance::Stranger, 500), Entry::TurnedAway);
    for place in &all[1..] {
        places.progress(*place, 5_000);
    }
    let (_, displaced) = admitted(places.enter(address(1, 200), Acquaintance::Stranger, 5_100));
    assert_eq!(displaced, Some(all[0]));
    assert_eq!(places.enter(address(1, 201), Acquaintance::Stranger, 5_200), Entry::TurnedAway);
}

#[test]
fn a_few_known_connections_are_never_displaced_and_always_admitted() {
    let mut places = Places::new(LIMITS);
    let (payer, _) = admitted(places.enter(address(7, 7), Acquaintance::Stranger, 0));
    places.recognize(payer);
    // A stranger with as many prefixes as there are places, all of them busy.
    for at in 0..=255u8 {
        if let Entry::Admitted { displaced, .. } =
            places.enter(IpAddr::from([11, at, 0, 1]), Acquaintance::Stranger, 10_000 + u64::from(at) * 2_000)
        {
            assert_ne!(displaced, Some(payer));
        }
    }
    admitted(places.enter(IpAddr::from([13, 0, 0, 1]), Acquaintance::Known, 520_002));
    // With more known connections than are kept, they are counted like all others.
    let mut many = Places::new(LIMITS);
    for at in 0..64 {
        let (place, _) = admitted(many.enter(address(1, at), Acquaintance::Stranger, 0));
        many.recognize(place);
    }
    admitted(many.enter(address(2, 1), Acquaintance::Stranger, 1));
}

#[test]
fn one_address_has_its_own_limit() {
    let mut places = Places::new(PlaceLimits { of_address: 3, ..LIMITS });
    for _ in 0..3 {
        admitted(places.enter(address(1, 1), Acquaintance::Stranger, 0));
    }
    assert_eq!(places.enter(address(1, 1), Acquaintance::Stranger, 0), Entry::TurnedAway);
    admitted(places.enter(address(1, 1), Acquaintance::Known, 0));
    admitted(places.enter(address(1, 2), Acquaintance::Stranger, 0));
    // An IPv4 address inside IPv6 is the same address.
    let mapped: IpAddr = "::ffff:10.0.1.1".parse().expect("an address");
    assert_eq!(places.enter(mapped, Acquaintance::Stranger, 0), Entry::TurnedAway);
}

#[test]
fn greedy_addresses_leave_a_share_to_the_next() {
    let shares = Shares::new(1_024);
    let mut held = Vec::new();
    for greedy in 0..16 {
        while let Some(share) = shares.take(address(0, greedy), 1) {
            held.push(share);
            // All of them take in turn, as a fair division would.
            for other in 0..16 {
                held.extend(shares.take(address(0, other), 1));
            }
        }
    }
    assert!(shares.free() >= 1_024 / 18, "{} are left", shares.free());
    let mut honest = shares.take(address(5, 5), 1).expect("a newcomer has its share");
    assert!(honest.extend(20));
    drop(held);
    drop(honest);
    assert_eq!(shares.free(), 1_024);
    assert!(shares.take(address(0, 0), 1_025).is_none());
    assert!(shares.take(address(0, 0), 1_024).is_some());
}

#[test]
fn a_client_is_the_last_hop_that_no_proxy_added_for_another_proxy() {
    let proxies = Networks::parse(&["10.0.0.0/8".into(), "2001:db8::1".into()]).expect("networks");
    let client = |peer: &str, forwarded: &[&str]| {
        proxies.client(peer.parse().expect("an address"), forwarded.iter().copied()).to_string()
    };
    assert_eq!(client("203.0.113.9", &["1.2.3.4"]), "203.0.113.9", "a stranger names nobody");
    assert_eq!(client("10.1.1.1", &["1.2.3.4"]), "1.2.3.4");
    assert_eq!(client("10.1.1.1", &["9.9.9.9, 1.2.3.4, 10.2.2.2"]), "1.2.3.4", "what a client writes does not count");
    assert_eq!(client("10.1.1.1", &["9.9.9.9", "1.2.3.4:5678"]), "1.2.3.4");
    assert_eq!(client("2001:db8::1", &["[2001:db8:7::7]:443"]), "2001:db8:7::7");
    assert_eq!(client("10.1.1.1", &["unknown"]), "10.1.1.1");
    assert_eq!(client("10.1.1.1", &[]), "10.1.1.1");
    assert_eq!(Networks::parse(&["10.0.0.0/8".into(), "proxy".into()]).err(), Some("proxy".to_string()));
}

#[test]
fn headers_of_the_proxy_protocol_name_the_client() {
    let v1 = b"PROXY TCP4 198.51.100.7 192.0.2.1 5000 8080\r\nGET / HTTP/1.1\r\n";
    assert_eq!(read_proxy_header(v1), Ok(Some((45, Some(IpAddr::from([198, 51, 100, 7]))))));
    assert_eq!(read_proxy_header(b"PROXY UNKNOWN\r\nrest"), Ok(Some((15, None))));
    for end in 0..45 {
        assert_eq!(read_proxy_header(&v1[..end]), Ok(None), "{end}");
    }
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    let v2 = [&signature[..], &[0x21, 0x11, 0, 12, 198, 51, 100, 7, 192, 0, 2, 1, 0, 1, 0, 2], b"rest"].concat();
    assert_eq!(read_proxy_header(&v2), Ok(Some((28, Some(IpAddr::from([198, 51, 100, 7]))))));
    let local = [&signature[..], &[0x20, 0x00, 0, 0], b"rest"].concat();
    assert_eq!(read_proxy_header(&local), Ok(Some((16, None))));
    assert_eq!(read_proxy_header(b"GET / HTTP/1.1\r\n"), Err(ProxyError::Malformed));
    assert_eq!(
        read_proxy_header(&[&signature[..], &[0x21, 0x11, 0xff, 0xff], &[0; 600]].concat()),
        Err(ProxyError::TooLong)
    );
}

proptest! {
    #[test]
    fn headers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), is_v2: bool) {
        let _ = read_proxy_header(&bytes);
        let signed: &[u8] = if is_v2 { b"\r\n\r\n\0\r\nQUIT\n" } else { b"PROXY " };
        if let Ok(Some((length, _))) = read_proxy_header(&[signed, &bytes].concat()) {
            prop_assert!(length <= signed.len() + bytes.len());
        }
    }

    /// Whatever comes and goes: no limit is exceeded, whoever is displaced was there and in a prefix with the most
    /// connections, and a newcomer whose prefix has fewer than another one's is admitted.
    #[test]
    fn places_are_divided_fairly(steps in proptest::collection::vec((0u8..6, 0u8..4, 0u8..5, 0u64..2_000), 1..300)) {
        let limits = PlaceLimits { total: 12, of_address: 5, kept: 1, patience_ms: 1_000 };
        let mut places = Places::new(limits);
        let mut model: BTreeMap<PlaceId, (IpAddr, bool)> = BTreeMap::new();
        let mut now = 0;
        for (prefix, host, action, passed) in steps {
            now += passed;
            let from = address(prefix, host);
            let some = model.keys().nth(usize::from(host)).copied();
            match (action, some) {
                (0, Some(place)) => {
                    places.leave(place);
                    model.remove(&place);
                }
                (1, Some(place)) => places.progress(place, now),
                (2, Some(place)) if prefix == 0 => {
                    places.recognize(place);
                    model.get_mut(&place).expect("there").1 = true;
                }
                _ => {
                    let count = |prefix: Prefix| model.values().filter(|one| Prefix::of(one.0) == prefix).count();
                    let own = count(Prefix::of(from));
                    let of_address = model.values().filter(|one| one.0 == from).count();
                    let has_known = model.values().any(|one| one.1);
                    let most = model.values().map(|one| count(Prefix::of(one.0))).max().unwrap_or(0);
                    match places.enter(from, Acquaintance::Stranger, now) {
                        Entry::Admitted { place, displaced } => {
                            prop_assert_eq!(displaced.is_some(), model.len() == limits.total);
                            if let Some((gone, _)) = displaced.and_then(|gone| model.remove(&gone)) {
                                prop_assert!(has_known || count_of(&model, gone) + 1 >= own.min(most));
                            }
                            model.insert(place, (from, false));
                        }
                        Entry::TurnedAway => {
                            let has_less = own + 1 < most && !has_known;
                            prop_assert!(of_address >= limits.of_address || !has_less);
                        }
                    }
                }
            }
            prop_assert_eq!(places.len(), model.len());
            prop_assert!(places.len() <= limits.total);
        }
    }
}

fn count_of(model: &BTreeMap<PlaceId, (IpAddr, bool)>, address: IpAddr) -> usize {
    model.values().filter(|one| Prefix::of(one.0) == Prefix::of(address)).count()
}
