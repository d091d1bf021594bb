//! Constant-product pools and holdings of their shares, as they are now and with proofs.

use axum::Json;
use axum::extract::{Path, Query, State};
use ledger::{AWAKE, PoolRecord, PoolRecordId, is_asleep, pool_pays};
use primitives::{Address, Amount, Operation, PoolKey};

use super::record_proof::{AskedProof, proved_record, record_body};
use super::{Api, parse};
use crate::backend::PoolsRead;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

fn no_pools() -> Failure {
    Failure::not_found("this chain has no pools; see `pools` in the genesis")
}

fn read_pools(api: &Api) -> Result<PoolsRead, Failure> {
    api.backend.pools().ok_or_else(no_pools)
}

/// The pool of two assets, in any order, and a class.
fn pool_key(api: &Api, a: &str, b: &str, class: u8) -> Result<PoolKey, Failure> {
    let (a, b) = (api.asset(a)?, api.asset(b)?);
    Ok(PoolKey { a: a.min(b), b: a.max(b), class })
}

fn pool_body(api: &Api, key: &PoolKey, pool: &PoolRecord, least: &[Amount]) -> json::PoolBody {
    let least = [key.a, key.b].map(|asset| least[asset.0 as usize]);
    json::PoolBody {
        a: api.symbols().name(key.a),
        b: api.symbols().name(key.b),
        class: key.class,
        reserve_a: pool.a.to_string(),
        reserve_b: pool.b.to_string(),
        shares: pool.shares.to_string(),
        asleep: is_asleep(pool, least),
        awake_a: least[0].saturating_mul(AWAKE).to_string(),
        awake_b: least[1].saturating_mul(AWAKE).to_string(),
    }
}

/// Of an operation on a pool that sleeps: that it trades nothing now, and from when on it does.
pub(super) fn sleep_in_words(api: &Api, operation: &Operation) -> Option<String> {
    let Operation::Pool(operation) = operation else { return None };
    let (key, PoolsRead { pools, least_units, .. }) = (operation.pool(), api.backend.pools()?);
    let least = [key.a, key.b].map(|asset| least_units.get(asset.0 as usize).copied());
    let [Some(least_a), Some(least_b)] = least else { return None };
    let pool = pools.get(&key).filter(|pool| is_asleep(pool, [least_a, least_b]))?;
    let both = |a, b| format!("{} and {}", api.symbols().money(key.a, a), api.symbols().money(key.b, b));
    let awake = both(least_a.saturating_mul(AWAKE), least_b.saturating_mul(AWAKE));
    Some(format!(
        "The pool sleeps: with {} it is too small to trade, and its shares earn nothing until it has {awake}.",
        both(pool.a, pool.b)
    ))
}

async fn prove_pool_record(api: &Api, id: PoolRecordId, asked: &AskedProof) -> Answered<json::RecordProofBody> {
    let prove = move |api: &Api| {
        let proved = api.backend.prove_pool(&id)?.ok_or_else(no_pools)?;
        Ok(record_body(&proved, proved.proof.record.is_some()))
    };
    proved_record(api, asked, prove).await
}

/// All pools, at most 4,096.
#[utoipa::path(get, path = "/v1/pools",
    responses((status = 200, body = json::PoolsBody), (status = 404, body = ErrorBody)))]
pub(super) async fn pools(State(api): State<Api>) -> Answered<json::PoolsBody> {
    api.blocking(move |api| {
        let PoolsRead { height, pools, least_units } = read_pools(api)?;
        Ok(Json(json::PoolsBody {
            height,
            fees: pools.terms().fees.iter().map(ToString::to_string).collect(),
            pools: pools.iter().map(|(key, pool)| pool_body(api, key, pool, &least_units)).collect(),
        }))
    })
    .await?
}

/// What an account holds in pools.
#[utoipa::path(get, path = "/v1/accounts/{address}/pools", params(("address" = String, Path)),
    responses((status = 200, body = json::HoldingsBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn account_pools(State(api): State<Api>, Path(address): Path<String>) -> Answered<json::HoldingsBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| {
        let PoolsRead { height, pools, least_units } = read_pools(api)?;
        let holding = |(key, shares): (PoolKey, u64)| {
            let pool = pools.get(&key).expect("what is held is a share of a pool");
            let (pays_a, pays_b) = pool_pays(pool, shares);
            let pool = pool_body(api, &key, pool, &least_units);
            let (pays_a, pays_b) = (pays_a.to_string(), pays_b.to_string());
            json::HoldingBody { pool, shares: shares.to_string(), pays_a, pays_b }
        };
        Ok(Json(json::HoldingsBody { height, holdings: pools.holdings_of(address).map(holding).collect() }))
    })
    .await?
}

/// A pool, or its absence, with its proof.
#[utoipa::path(get, path = "/v1/pools/{a}/{b}/{fee_class}/proof",
    params(("a" = String, Path), ("b" = String, Path), ("fee_class" = u8, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn pool_proof(
    State(api): State<Api>,
    Path((a, b, class)): Path<(String, String, u8)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    prove_pool_record(&api, PoolRecordId::Pool(pool_key(&api, &a, &b, class)?), &asked).await
}

/// An account's shares of a pool, or that it has none, with their proof.
#[utoipa::path(get, path = "/v1/accounts/{address}/pools/{a}/{b}/{fee_class}/proof",
    params(("address" = String, Path), ("a" = String, Path), ("b" = String, Path), ("fee_class" = u8, Path),
        ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn holding_proof(
    State(api): State<Api>,
    Path((address, a, b, class)): Path<(String, String, String, u8)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let of = (pool_key(&api, &a, &b, class)?, parse("address", &address)?);
    prove_pool_record(&api, PoolRecordId::Holding(of), &asked).await
}
