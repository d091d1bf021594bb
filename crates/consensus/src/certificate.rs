//! Commits and certificates: signed statements that a height has ended, and with which result.
//!
//! When height `k` and all below have ended at a validator, it signs the superblock's digest and the state root after
//! height `k − lag`, which its ledger has reached by then. Equal statements of ⌊(n+f)/2⌋+1 validators are the
//! height's *certificate*: two certificates with different statements would need a correct validator that signed
//! twice. [`proofs::Certificate`] is what a client verifies, with the keys alone.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, SecretKey, Signature};
use proofs::{Certificate, Chain, Index, Statement};

use crate::members::Members;

const SUPERBLOCK_CONTEXT: &str = "walras 2026 consensus superblock v1";

/// A decided height in its chain.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Link {
    /// The height.
    pub height: u64,
    /// The digest of the link below; the zero digest for height 1.
    pub parent: Digest,
    /// The slots and payload digests of the included sub-blocks, by slot.
    pub sub_blocks: Vec<(Index, Digest)>,
    /// The digest of the benches record after this height.
    pub benches: Digest,
}

impl Link {
    /// The digest by which commits name the superblock.
    pub fn digest(&self, chain: &Chain) -> Digest {
        chain.digest(SUPERBLOCK_CONTEXT, self)
    }
}

/// A signed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Commit {
    /// The statement.
    pub statement: Statement,
    /// The validator that signed.
    pub signer: Index,
    /// Its signature.
    pub signature: Signature,
}

impl Commit {
    /// Signs a statement.
    pub fn sign(chain: &Chain, statement: Statement, signer: Index, secret: &SecretKey) -> Commit {
        Commit { statement, signer, signature: secret.sign(&statement.signed(chain).0) }
    }

    /// Whether the signature is valid.
    pub fn is_signed(&self, chain: &Chain) -> bool {
        let key = chain.keys.get(usize::from(self.signer));
        key.is_some_and(|key| key.verify(&self.statement.signed(chain).0, &self.signature))
    }
}

/// The commits of one height.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commits {
    /// The first valid commit of each signer.
    by_signer: Vec<Commit>,
    heard: Members,
    /// Validators that contradicted themselves: one proof of each is enough.
    convicted: Members,
}

/// The result of counting a commit.
#[derive(Debug)]
pub(crate) enum Counted {
    /// It is known already.
    Known,
    /// It is new.
    New,
    /// The signer has signed another statement.
    Contradiction(Commit),
}

impl Commits {
    /// Counts a commit with a valid signature.
    pub(crate) fn count(&mut self, commit: Commit) -> Counted {
        if self.heard.insert(commit.signer) {
            self.by_signer.push(commit);
            return Counted::New;
        }
        let first = self.by_signer.iter().find(|first| first.signer == commit.signer).expect("counted");
        let contradicts = first.statement != commit.statement && self.convicted.insert(commit.signer);
        if contradicts { Counted::Contradiction(*first) } else { Counted::Known }
    }

    /// Whether a commit brings nothing new, so that its signature need not be checked: its signer has sent this same
    /// statement, or was convicted.
    pub(crate) fn has(&self, commit: &Commit) -> bool {
        self.convicted.contains(commit.signer)
            || (self.heard.contains(commit.signer) && self.by_signer.contains(commit))
    }

    /// The statement that at least `enough` signers made.
    pub(crate) fn stated_by(&self, enough: usize) -> Option<Statement> {
        let said = |statement: &Statement| self.by_signer.iter().filter(|c| c.statement == *statement).count();
        self.by_signer.iter().map(|commit| commit.statement).find(|statement| said(statement) >= enough)
    }

    /// The certificate, if enough validators signed the same statement.
    pub(crate) fn certificate(&self, chain: &Chain) -> Option<Certificate> {
        let statement = self.stated_by(chain.committee().echoes)?;
        let alike = self.by_signer.iter().filter(|commit| commit.statement == statement);
        let mut signatures: Vec<_> = alike.map(|commit| (commit.signer, commit.signature)).collect();
        signatures.sort_by_key(|(signer, _)| *signer);
        Some(Certificate { epoch: chain.epoch, statement, signatures })
    }
}
