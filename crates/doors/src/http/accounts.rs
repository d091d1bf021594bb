//! Accounts and their offers.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, Query, State};
use ledger::{AccountSessions, AccountState, EvmRecord, Pair, Place, SessionBudget, SessionRecord};
use primitives::{Address, AssetId, Digest, Height, Price, Sequence, slot_sequence};
use serde::Deserialize;

use super::record_proof::{AskedProof, proved_record, record_body};
use super::validators::certificate_of;
use super::{Api, PAGE, number, parse, proof_bytes};
use crate::backend::AccountRead;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};
use crate::markets::offer;
use readers::Sides;
use readers::views::Views;

/// Interval of checks of the published height, and how long to check.
const PAUSE: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(5);

impl Api {
    /// An account in the current state, or `None`.
    pub(crate) fn account_body(&self, address: &Address) -> Result<Option<json::AccountBody>, Failure> {
        Ok(self.account_and(address, |_| ())?.0)
    }

    /// The same, and what `look` finds in the published state of the same height.
    pub(super) fn account_and<T>(
        &self,
        address: &Address,
        look: impl Fn(&Views) -> T,
    ) -> Result<(Option<json::AccountBody>, T), Failure> {
        let read = || {
            let AccountRead { height, account, keys } = self.backend.account(address);
            Ok((height, account, keys))
        };
        let (keys, account, found) = self.at_one_height(read, look)?;
        let keys = keys.as_ref().map(json::account_keys);
        Ok((account.map(|account| json::AccountBody { keys, ..account }), found))
    }

    /// Joins a read of an account with the amounts that its offers lock. The published state follows the ledger
    /// within a moment, and stays at each height until the next block is applied: this waits for it. If it is ahead,
    /// the account is read again.
    fn at_one_height<T, U>(
        &self,
        read: impl Fn() -> Result<(Height, Option<AccountState>, T), Failure>,
        look: impl Fn(&Views) -> U,
    ) -> Result<(T, Option<json::AccountBody>, U), Failure> {
        let begun = Instant::now();
        let (mut height, mut account, mut other) = read()?;
        while begun.elapsed() < PATIENCE {
            let waiting = account.as_ref().map_or(0, |account| self.backend.pending_sequence(&account.address, 0));
            let views = self.published().views();
            if views.height() == height {
                let account = account.map(|account| self.joined(&views, account, waiting));
                return Ok((other, account, look(&views)));
            }
            let is_ahead = views.height() > height;
            drop(views);
            if is_ahead {
                (height, account, other) = read()?;
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        Err(Failure::stopping())
    }

    fn joined(&self, views: &Views, account: AccountState, waiting: u64) -> json::AccountBody {
        let mut balances = views.offers().locked(&account.address);
        for (asset, _) in &account.balances {
            balances.entry(*asset).or_default();
        }
        let available = |asset: AssetId| {
            let found = account.balances.binary_search_by_key(&asset, |(asset, _)| *asset);
            found.map_or(0, |at| account.balances[at].1)
        };
        let balances = balances.into_iter().map(|(asset, locked)| json::BalanceBody {
            asset: self.symbols().get(asset).into(),
            available: available(asset).to_string(),
            locked: locked.to_string(),
        });
        let highest = account.window.highest();
        json::AccountBody {
            address: account.address.to_string(),
            checked_address: account.address.checked(),
            height: views.height(),
            key: account.key.map(|key| key.to_string()),
            keys: None,
            needs_reference: account.needs_reference,
            sequence: json::SequenceBody {
                highest: highest.to_string(),
                next: highest.max(waiting).saturating_add(1).to_string(),
            },
            balances: balances.collect(),
            ethereum: views.outline().contracts.is_some().then(|| self.ethereum_of(account.evm.unwrap_or_default())),
            session_slots: account.sessions.as_ref().map_or(0, |sessions| sessions.slots),
            sessions: self.sessions_of(&account.address, account.sessions.as_ref(), views.height()),
        }
    }

    /// The session keys of an account in the state of a height.
    fn sessions_of(&self, account: &Address, of: Option<&AccountSessions>, height: Height) -> Vec<json::SessionBody> {
        let budget = |budget: &SessionBudget| json::SessionBudgetBody {
            asset: self.symbols().get(budget.asset).into(),
            units: budget.cap.to_string(),
            used: budget.used.to_string(),
        };
        let body = |record: &SessionRecord| {
            let highest = slot_sequence(record.slot, record.window.highest());
            let waiting = self.backend.pending_sequence(account, record.slot);
            let status = match () {
                _ if record.is_closed || record.until <= height => "ended",
                _ if record.alive <= height => "lapsed",
                _ => "live",
            };
            json::SessionBody {
                slot: record.slot,
                key: record.key.to_string(),
                scope: record.scope.name().into(),
                status: status.into(),
                ends: record.until.to_string(),
                alive: record.alive.to_string(),
                sequence: json::SequenceBody {
                    highest: highest.to_string(),
                    next: highest.max(waiting).saturating_add(1).to_string(),
                },
                caps: record.budgets.iter().map(budget).collect(),
            }
        };
        of.map_or(Vec::new(), |sessions| sessions.records.iter().map(body).collect())
    }

    fn ethereum_of(&self, record: EvmRecord) -> json::AccountEthereumBody {
        let code = (record.code != Digest::default()).then(|| {
            let code = self.backend.ethereum_code(&record.code).unwrap_or_default();
            let bytes = code.original_byte_slice();
            let delegate = (!record.is_contract).then(|| delegate(bytes)).flatten();
            json::CodeBody { hash: record.code.to_string(), bytes: bytes.len(), delegate }
        });
        let EvmRecord { nonce, remainder, is_contract, .. } = record;
        json::AccountEthereumBody { nonce: nonce.to_string(), wei: remainder.to_string(), is_contract, code }
    }

    /// Resting offers of an account.
    pub(crate) fn offers_body(&self, address: &Address, page: OffersPage) -> json::Offers {
        self.offers_of(&self.published().views(), address, page)
    }

    pub(super) fn offers_of(&self, views: &Views, address: &Address, page: OffersPage) -> json::Offers {
        let before = page.before.unwrap_or(u64::MAX);
        let chosen = views.offers().of_account_from(address, page.first()).take_while(|(id, _)| *id < before);
        let mut chosen = chosen.skip(page.offset.unwrap_or(0));
        let limit = page.limit.unwrap_or(100).min(PAGE);
        let offers = chosen.by_ref().take(limit).map(|(id, resting)| offer(&self.symbols(), id, resting)).collect();
        let next = chosen.next().map(|(id, _)| id.to_string());
        json::Offers { height: views.height(), offers, more: next.is_some(), next }
    }
}

/// The requested part of an account's offers, with ids as text.
#[derive(Deserialize)]
pub(super) struct AskedOffers {
    limit: Option<usize>,
    cursor: Option<String>,
    offset: Option<usize>,
    after: Option<String>,
    before: Option<String>,
}

impl AskedOffers {
    fn page(&self) -> Result<OffersPage, Failure> {
        let id = |name, text: &Option<String>| text.as_ref().map(|text| number(name, text)).transpose();
        Ok(OffersPage {
            limit: self.limit,
            offset: self.offset,
            cursor: id("cursor", &self.cursor)?,
            after: id("after", &self.after)?,
            before: id("before", &self.before)?,
        })
    }
}

/// The requested part of an account's offers.
#[derive(Clone, Copy, Default)]
pub(crate) struct OffersPage {
    limit: Option<usize>,
    cursor: Option<Sequence>,
    offset: Option<usize>,
    after: Option<Sequence>,
    before: Option<Sequence>,
}

impl OffersPage {
    /// The first `limit` offers.
    pub(crate) fn of(limit: usize) -> OffersPage {
        OffersPage { limit: Some(limit), ..OffersPage::default() }
    }

    /// The lowest id.
    fn first(&self) -> Sequence {
        let above = self.after.map_or(0, |after| after.saturating_add(1));
        above.max(self.cursor.unwrap_or(0))
    }
}

/// The contract named by the code of a delegation (EIP-7702).
fn delegate(code: &[u8]) -> Option<String> {
    let named = code.strip_prefix(&[0xef, 0x01, 0x00])?;
    Some(Address(named.try_into().ok()?).to_string())
}

/// An account: balances, key, sequence numbers.
#[utoipa::path(get, path = "/v1/accounts/{address}",
    params(("address" = String, Path, description = "0x and 40 digits")),
    responses((status = 200, body = json::AccountBody), (status = 404, body = ErrorBody)))]
pub(super) async fn account(State(api): State<Api>, Path(address): Path<String>) -> Answered<json::AccountBody> {
    let address: Address = parse("address", &address)?;
    let body = api.blocking(move |api| api.account_body(&address)).await??;
    body.map(Json).ok_or_else(|| Failure::not_found("the account does not exist; a payment to it creates it"))
}

/// Resting offers of an account.
#[utoipa::path(get, path = "/v1/accounts/{address}/offers",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("offset" = Option<usize>, Query, description = "number of offers to skip"),
        ("after" = Option<String>, Query, description = "only offers with a higher id"),
        ("before" = Option<String>, Query, description = "only offers with a lower id")),
    responses((status = 200, body = json::Offers), (status = 400, body = ErrorBody)))]
pub(super) async fn account_offers(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedOffers>,
) -> Answered<json::Offers> {
    let address: Address = parse("address", &address)?;
    let page = asked.page()?;
    api.blocking(move |api| Json(api.offers_body(&address, page))).await
}

/// An account, or its absence, with a proof that needs only the state root, and on request with the certificate of
/// that root: then the answer waits for it.
#[utoipa::path(get, path = "/v1/accounts/{address}/proof",
    params(("address" = String, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::AccountProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn account_proof(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::AccountProofBody> {
    let address: Address = parse("address", &address)?;
    let mut body = api.blocking(move |api| api.account_proof(&address)).await??;
    if asked.certified {
        body.certificate = Some(certificate_of(&api, body.height).await?);
    }
    Ok(Json(body))
}

impl Api {
    fn account_proof(&self, address: &Address) -> Result<json::AccountProofBody, Failure> {
        let read = || {
            let proved = self.backend.prove_account(address)?;
            let account = proved.proof.account.clone();
            Ok((proved.height, account, proved))
        };
        let (proved, account, ()) = self.at_one_height(read, |_| ())?;
        let (height, root) = (proved.height, proved.root.to_string());
        Ok(json::AccountProofBody { height, root, account, proof: proof_bytes(&proved.proof), certificate: None })
    }
}

/// The policy of an account, or its absence, with a proof that needs only the state root, and on request with the
/// certificate of that root. The proof of the account does not show its policy.
#[utoipa::path(get, path = "/v1/accounts/{address}/keys/proof",
    params(("address" = String, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn keys_proof(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let address: Address = parse("address", &address)?;
    let prove = move |api: &Api| {
        let proved = api.backend.prove_keys(&address)?;
        Ok(record_body(&proved, proved.proof.keys.is_some()))
    };
    proved_record(&api, &asked, prove).await
}

/// A resting offer, or its absence, with a proof that needs only the state root.
#[utoipa::path(get, path = "/v1/offers/{sell}/{buy}/{limit}/{account}/{id}/proof",
    params(("sell" = String, Path), ("buy" = String, Path), ("limit" = String, Path),
        ("account" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = json::OfferProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn offer_proof(
    State(api): State<Api>,
    Path((sell, buy, limit, account, id)): Path<(String, String, String, String, String)>,
) -> Answered<json::OfferProofBody> {
    let Sides { base, quote } = api.sides(&sell, &buy)?;
    let pair = Pair { sell: base, buy: quote };
    let place =
        Place { limit: parse::<Price>("limit", &limit)?, account: parse("account", &account)?, id: number("id", &id)? };
    api.blocking(move |api| {
        let proved = api.backend.prove_offer(pair, &place)?;
        Ok(Json(json::OfferProofBody {
            height: proved.height,
            root: proved.root.to_string(),
            amount: proved.proof.rest.map(|rest| rest.amount.to_string()),
            until: proved.proof.rest.and_then(|rest| crate::markets::end(rest.until)),
            proof: proof_bytes(&proved.proof),
        }))
    })
    .await?
}
