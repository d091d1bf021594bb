//! The status of a validator.

use api::{PeerStatusBody, ValidatorStatusBody};
use replica::{PeerStatus, ValidatorStatus};

/// The body of a status.
pub fn validator_status(status: &ValidatorStatus) -> ValidatorStatusBody {
    ValidatorStatusBody {
        engine: status.engine.into(),
        me: status.me,
        validators: status.validators,
        decided: status.decided,
        certified: status.certified,
        certified_anywhere: status.certified_anywhere,
        connected: status.connected,
        needed: status.needed,
        idle_ms: status.idle_ms,
        heartbeat_ms: status.heartbeat_ms,
        epoch: status.epoch,
        follows: status.follows,
        silent: status.silent,
        stranded: status.stranded,
        benched: status.benched.clone(),
        peers: status.peers.iter().map(peer).collect(),
    }
}

fn peer(peer: &PeerStatus) -> PeerStatusBody {
    PeerStatusBody {
        validator: peer.validator,
        connected: peer.connected,
        votes: peer.votes,
        decided: peer.decided,
        certified: peer.certified,
        rounds: peer.rounds,
        round_trip_ms: peer.round_trip_ms,
    }
}
