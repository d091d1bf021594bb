//! Policies of accounts: several keys that sign together.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use primitives::{KeyPolicy, KeySigner, WalletSigner};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The keys of an account with a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountKeysBody {
    /// The ed25519 key whose hash is the account's address.
    pub first: String,
    /// The id of its last change of keys, waiting or done: all that is signed for the account names it.
    pub last: String,
    /// The policy in force.
    pub policy: KeyPolicyBody,
    /// The change that waits, if one does.
    pub waiting: Option<WaitingKeysBody>,
}

/// A change of keys that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingKeysBody {
    /// The policy that waits.
    pub policy: KeyPolicyBody,
    /// What happens to the account's session keys: `close` or `keep`.
    pub sessions: Cow<'static, str>,
    /// Who asked for it: `signers` or `guardians`.
    pub by: Cow<'static, str>,
    /// The first height at which anybody may complete it.
    pub due: String,
}

/// Who may do what for an account; its fields are those of `set_keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyPolicyBody {
    /// Signers with ed25519 keys.
    #[serde(default)]
    pub keys: Vec<PolicyKeyBody>,
    /// Signers with wallets.
    #[serde(default)]
    pub wallets: Vec<PolicyWalletBody>,
    /// The weight that spends.
    #[serde(rename = "move")]
    pub moves: u16,
    /// The weight that changes who may spend.
    pub govern: u16,
    /// Guardians with ed25519 keys.
    #[serde(default)]
    pub guardian_keys: Vec<GuardianKeyEntryBody>,
    /// Guardians with wallets.
    #[serde(default)]
    pub guardian_wallets: Vec<GuardianWalletEntryBody>,
    /// How many guardians recover the account; 0 if it has none.
    #[serde(default)]
    pub guardians: u8,
    /// Heights that a later change waits.
    pub delay: u32,
}

/// An ed25519 key that signs with a weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyKeyBody {
    /// The key.
    pub key: String,
    /// Its weight.
    pub weight: u8,
}

/// A wallet that signs with a weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyWalletBody {
    /// Its address.
    pub wallet: String,
    /// Its weight.
    pub weight: u8,
}

/// A guardian with an ed25519 key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardianKeyEntryBody {
    /// The key.
    pub key: String,
}

/// A guardian with a wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardianWalletEntryBody {
    /// Its address.
    pub wallet: String,
}

impl KeyPolicyBody {
    /// That of a policy.
    pub fn of(policy: &KeyPolicy) -> KeyPolicyBody {
        let key = |one: &KeySigner| PolicyKeyBody { key: one.key.to_string(), weight: one.weight };
        let wallet = |one: &WalletSigner| PolicyWalletBody { wallet: one.wallet.to_string(), weight: one.weight };
        let guardian_keys = policy.guardian_keys.iter().map(|key| GuardianKeyEntryBody { key: key.to_string() });
        let guardian_wallets =
            policy.guardian_wallets.iter().map(|wallet| GuardianWalletEntryBody { wallet: wallet.to_string() });
        KeyPolicyBody {
            keys: policy.keys.iter().map(key).collect(),
            wallets: policy.wallets.iter().map(wallet).collect(),
            moves: policy.moves,
            govern: policy.governs,
            guardian_keys: guardian_keys.collect(),
            guardian_wallets: guardian_wallets.collect(),
            guardians: policy.guardians,
            delay: policy.delay,
        }
    }

    /// The policy, whose keys are put in order. Whether it is within its bounds is not checked.
    ///
    /// # Errors
    /// Names the field that is malformed.
    pub fn read(&self) -> Result<KeyPolicy, String> {
        let key = |one: &PolicyKeyBody| Ok(KeySigner { key: read("keys.key", &one.key)?, weight: one.weight });
        let wallet = |one: &PolicyWalletBody| {
            Ok(WalletSigner { wallet: read("wallets.wallet", &one.wallet)?, weight: one.weight })
        };
        let mut keys = self.keys.iter().map(key).collect::<Result<Vec<_>, String>>()?;
        let mut wallets = self.wallets.iter().map(wallet).collect::<Result<Vec<_>, String>>()?;
        let guardian = |one: &GuardianKeyEntryBody| read("guardian_keys.key", &one.key);
        let mut guardian_keys = self.guardian_keys.iter().map(guardian).collect::<Result<Vec<_>, String>>()?;
        let guardian = |one: &GuardianWalletEntryBody| read("guardian_wallets.wallet", &one.wallet);
        let mut guardian_wallets = self.guardian_wallets.iter().map(guardian).collect::<Result<Vec<_>, String>>()?;
        keys.sort_by_key(|one| one.key);
        wallets.sort_by_key(|one| one.wallet);
        guardian_keys.sort();
        guardian_wallets.sort();
        Ok(KeyPolicy {
            keys: keys.into(),
            wallets: wallets.into(),
            moves: self.moves,
            governs: self.govern,
            guardian_keys: guardian_keys.into(),
            guardian_wallets: guardian_wallets.into(),
            guardians: self.guardians,
            delay: self.delay,
        })
    }
}

fn read<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{field}: {error}"))
}
