//! The disk, the keys and the addresses of a member's shards, for whoever runs them: the node, or a process apart.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use lane::{FileLog, LaneDirectory, LaneShard, LogError, ShardError, ShardLimits, ShardSetup};
use member::{ShardSecrets, ShardStart, ShardTerm};
use payments::{HomeEpoch, LaneEffect, LaneSettings, LogOwner};
use primitives::{Digest, SecretKey};
use sockets::Acquaintances;
use store::RealDisk;

use super::keys::{self, LaneKeySafe};
use super::seat::{LaneKeys, LaneSeat, LaneStartError, home_address};

/// See the module text.
pub(crate) struct ShardRoom {
    /// The member's index in the committee.
    pub member: u8,
    /// The addresses of all shards of the committee, by member and shard.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// The IP address at which its own shards listen, if not that of their address.
    pub bind: Option<IpAddr>,
    pub tls: bool,
    pub known: Acquaintances,
    pub safe: Option<LaneKeySafe>,
    /// The keys of shards that serve in every epoch; otherwise keys are files.
    pub fixed: Option<Vec<SecretKey>>,
    /// The folder of the lane.
    pub directory: PathBuf,
}

/// Where reports of a shard go.
pub(crate) type ShardReports = Box<dyn FnMut(LaneEffect) + Send>;

impl ShardRoom {
    pub fn of_seat(seat: &LaneSeat, data: &Path) -> ShardRoom {
        let fixed = match &seat.keys {
            LaneKeys::Fixed(keys) => Some(keys.clone()),
            LaneKeys::Registrar(_) => None,
        };
        ShardRoom {
            member: seat.index,
            addresses: seat.addresses.clone(),
            bind: seat.bind,
            tls: seat.tls,
            known: seat.known.clone(),
            safe: seat.safe.clone(),
            fixed,
            directory: data.join("lane"),
        }
    }

    pub fn unusable(&self, error: std::io::Error) -> LaneStartError {
        LaneStartError::Directory(self.directory.display().to_string(), error)
    }

    fn disk(&self, home: HomeEpoch, shard: u16) -> Result<RealDisk, LaneStartError> {
        let directory = keys::directory(&self.directory, home, shard);
        RealDisk::new(&directory).map_err(|error| LaneStartError::Directory(directory.display().to_string(), error))
    }

    /// Makes the log of a shard in a home, unless it exists.
    pub fn make_log(&self, network: Digest, home: HomeEpoch, shard: u16) -> Result<(), LaneStartError> {
        let owner = LogOwner { network, home, validator: self.member, shard };
        match FileLog::create(&self.disk(home, shard)?, &owner) {
            Ok(()) | Err(LogError::Exists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The key of a shard in a home; it is made if there is none.
    pub fn make_key(&self, home: HomeEpoch, shard: u16) -> Result<SecretKey, LaneStartError> {
        keys::make(&self.directory, home, shard, self.safe.as_ref()).map_err(|error| self.unusable(error))
    }

    /// The key of a shard in a home; `None` if it does not exist.
    pub fn key(&self, home: HomeEpoch, shard: u16) -> Result<Option<SecretKey>, LaneStartError> {
        match &self.fixed {
            Some(keys) => Ok(keys.get(usize::from(shard)).cloned()),
            None => {
                let safe = self.safe.as_ref();
                keys::load(&self.directory, home, shard, safe).map_err(|error| self.unusable(error))
            }
        }
    }

    /// Starts a shard. One whose log does not allow it to sign, or whose key is missing, is left out.
    pub fn start(
        &self,
        home: HomeEpoch,
        shard: u16,
        term: &ShardTerm,
        post: ShardReports,
    ) -> (ShardStart, Option<LaneShard>) {
        match self.try_to_start(home, shard, term, post) {
            Ok(Some(started)) => (ShardStart::Runs(started.barred().clone()), Some(started)),
            Ok(None) => {
                tracing::error!(
                    home,
                    shard,
                    "the shard key registered for this lane epoch is missing on this disk: the shard signs nothing in \
                     it"
                );
                (ShardStart::Mute, None)
            }
            Err(LaneStartError::Shard(error @ ShardError::Mute { .. })) => {
                tracing::warn!(%error, home, "the lane");
                (ShardStart::Mute, None)
            }
            Err(error) => {
                tracing::error!(
                    %error, home, shard,
                    "a shard of the lane cannot start; trying again after some blocks, the others run on. \
                     Fix the error"
                );
                (ShardStart::Failed, None)
            }
        }
    }

    /// Starts a shard; `None` if its registered key is missing.
    fn try_to_start(
        &self,
        home: HomeEpoch,
        shard: u16,
        term: &ShardTerm,
        post: ShardReports,
    ) -> Result<Option<LaneShard>, LaneStartError> {
        let secrets = self.key(home, shard)?.and_then(|key| term.secrets(self.member, shard, key));
        let Some(secrets) = secrets else { return Ok(None) };
        Ok(Some(LaneShard::start(self.setup(home, shard, term, secrets, post)?, &self.disk(home, shard)?)?))
    }

    fn setup(
        &self,
        home: HomeEpoch,
        shard: u16,
        term: &ShardTerm,
        secrets: ShardSecrets,
        post: ShardReports,
    ) -> Result<ShardSetup, LaneStartError> {
        let at = |shards: &Vec<SocketAddr>| shards.iter().map(|of| home_address(*of, home)).collect();
        let addresses: Vec<Vec<SocketAddr>> = self.addresses.iter().map(at).collect();
        let own = addresses.get(usize::from(self.member));
        let listen = own.and_then(|own| own.get(usize::from(shard))).copied();
        let listen = listen.ok_or(LaneStartError::NoAddress { home, shard })?;
        let listen = SocketAddr::new(self.bind.unwrap_or(listen.ip()), listen.port());
        let (tls, committee) = (self.tls, term.committee.clone());
        let peers = (addresses.len() > 1).then_some(LaneDirectory { committee, addresses, tls });
        let ShardSecrets { key, bls, share } = secrets;
        Ok(ShardSetup {
            settings: settings(term, self.member, shard),
            bls_key: bls,
            share,
            key,
            listen,
            tls,
            backed: term.backed.clone(),
            proven: term.proven.clone(),
            peers,
            limits: ShardLimits::default(),
            known: self.known.clone(),
            post,
        })
    }

    /// Wipes the keys of a home that are this process's; whether that went well.
    pub fn remove(&self, home: HomeEpoch, is_own: impl Fn(u16) -> bool) -> bool {
        let removed = keys::destroy(&self.directory, home, is_own);
        if let Err(error) = &removed {
            let directory = self.directory.join(home.to_string());
            tracing::error!(
                %error, directory = %directory.display(),
                "cannot destroy keys of a past epoch; trying again with each block"
            );
        }
        removed.is_ok()
    }

    /// Removes the logs of a home that are this process's; whether that went well.
    pub fn forget(&self, home: HomeEpoch, is_own: impl Fn(u16) -> bool) -> bool {
        let removed = keys::forget(&self.directory, home, is_own);
        if let Err(error) = &removed {
            let directory = self.directory.join(home.to_string());
            tracing::warn!(%error, directory = %directory.display(), "cannot remove the logs of an epoch long past");
        }
        removed.is_ok()
    }
}

/// The settings of a shard.
fn settings(term: &ShardTerm, validator: u8, shard: u16) -> LaneSettings {
    LaneSettings {
        rules: term.rules.clone(),
        previous: term.previous.clone(),
        committee: term.committee.clone(),
        validator,
        shard,
        now: term.now,
        leaves: 256,
        entries_max: 1 << 26,
        trees_waiting_max: 64,
        checks_per_peer: 4_096,
        checks_per_tick: 16_384,
        roots_per_validator: 4_096,
    }
}
