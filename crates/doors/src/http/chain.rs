//! The status of the node, and the constants of its chain.

use axum::Json;
use axum::extract::{Path, Query, State};
use ledger::{ENDS_MAX, LIFE_MAX, SEQUENCE_WINDOW};
use primitives::{Address, AssetId};
use readers::metrics::LaneShardFigures;

use super::record_proof::{AskedProof, proved_record, record_body};
use super::{Api, parse, stream};
use crate::book_feed::BOOK_LEVELS;
use crate::json::{self, ErrorBody};
use crate::kit::most_of_one;
use crate::kit::{Answered, HEAVY_WAITING_OF_ONE};

/// The status of the node.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = json::NodeStatus)))]
pub(super) async fn status(State(api): State<Api>) -> Answered<json::NodeStatus> {
    api.blocking(|api| {
        let standing = api.backend.standing();
        let validator = standing.validator.as_ref();
        let views = api.published().views();
        let (outline, root) = (views.outline(), views.newest_root());
        Json(json::NodeStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            chain: outline.chain.to_string(),
            engine: validator.map_or("solo".into(), |status| status.engine.clone()),
            stalled: validator.and_then(|status| status.stall()),
            height: outline.height,
            block: outline.block.to_string(),
            time_ms: views.blocks(u64::MAX).next().map_or(0, |block| block.time_ms),
            state: json::StateRoot { height: root.0, root: root.1.to_string() },
            accounts: outline.accounts,
            offers: views.offers().len(),
            mempool: json::MempoolStatus {
                transactions: api.backend.metrics().mempool.get() as usize,
                limit: api.backend.limits().mempool_transactions,
            },
            uptime_ms: standing.uptime_ms,
            transactions_per_second: views.rate_per_second(),
            committed: views.totals.0,
            refused: views.totals.1,
            sealing: json::sealing(outline),
            lane_shards: api.backend.metrics().lane_shards().into_iter().map(lane_shard).collect(),
        })
    })
    .await
}

fn lane_shard((shard, of): (u16, LaneShardFigures)) -> json::LaneShardBody {
    let LaneShardFigures { is_apart, is_up, since_ms, epoch, facts_height, signed, refused, log_bytes } = of;
    json::LaneShardBody { shard, apart: is_apart, up: is_up, since_ms, epoch, facts_height, signed, refused, log_bytes }
}

/// Which rules the chain follows, which come, and who approves of them.
#[utoipa::path(get, path = "/v1/upgrade", responses((status = 200, body = json::UpgradeBody)))]
pub(super) async fn upgrade(State(api): State<Api>) -> Answered<json::UpgradeBody> {
    let newest = api.blocking(|api| api.backend.standing().newest_rules).await?;
    Ok(Json(json::upgrade(api.published().views().outline(), newest)))
}

/// The parameters in force, what waits, and what is proposed.
#[utoipa::path(get, path = "/v1/parameters", responses((status = 200, body = json::ParametersBody)))]
pub(super) async fn parameters(State(api): State<Api>) -> Answered<json::ParametersBody> {
    Ok(Json(json::parameters(api.published().views().outline(), &api.symbols())))
}

/// The committee's sealing keys, and how the next one is made.
#[utoipa::path(get, path = "/v1/seal", responses((status = 200, body = json::SealBody)))]
pub(super) async fn seal(State(api): State<Api>) -> Answered<json::SealBody> {
    Ok(Json(json::seal(api.published().views().outline())))
}

/// The sealing keys with a proof that needs only the state root, and on request with the certificate of that root.
#[utoipa::path(get, path = "/v1/seal/proof", params(("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn seal_proof(
    State(api): State<Api>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let prove = |api: &Api| {
        let proved = api.backend.prove_seals()?;
        Ok(record_body(&proved, proved.proof.record.is_some()))
    };
    proved_record(&api, &asked, prove).await
}

/// The parameters with a proof that needs only the state root, and on request with the certificate of that root. They
/// exist there once something was proposed; before, it proves that they are those of the genesis.
#[utoipa::path(get, path = "/v1/parameters/proof", params(("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn parameters_proof(
    State(api): State<Api>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let prove = |api: &Api| {
        let proved = api.backend.prove_parameters()?;
        Ok(record_body(&proved, proved.proof.record.is_some()))
    };
    proved_record(&api, &asked, prove).await
}

/// Constants of the chain and limits of this node.
#[utoipa::path(get, path = "/v1/limits", responses((status = 200, body = json::LimitsBody)))]
pub(super) async fn limits(State(api): State<Api>) -> Answered<json::LimitsBody> {
    let (node, outline) = (api.backend.limits(), api.published().views().outline().clone());
    Ok(Json(json::LimitsBody {
        chain: outline.chain.to_string(),
        network: outline.validators.terms.network.to_string(),
        fee: outline.fee.to_string(),
        fee_asset: api.symbols().get(AssetId(0)).into(),
        epsilon: outline.epsilon.to_string(),
        mu: outline.mu.to_string(),
        sequence_window: SEQUENCE_WINDOW,
        until_max: outline.until_max,
        life_max: LIFE_MAX,
        ends_max: ENDS_MAX,
        body_bytes: api.settings.body_bytes,
        requests_of_one: api.rates.requests_of_one as usize,
        body_bytes_of_one: api.rates.bytes_of_one as usize,
        waiting_of_one: HEAVY_WAITING_OF_ONE,
        batch_transactions: api.settings.batch_transactions,
        block_transactions: node.block_transactions,
        block_interval_ms: node.block_interval_ms,
        mempool_transactions: node.mempool_transactions,
        stream_connections: api.settings.stream_connections,
        streams_of_one: most_of_one(api.settings.stream_connections as u64) as usize,
        stream_channels: stream::CHANNELS,
        stream_book_levels: BOOK_LEVELS,
        stream_message_bytes: stream::MESSAGE_BYTES,
        listing: Some(json::listing(&outline)),
        ethereum: outline.contracts.map(|_| (api.of_ethereum.limits)(api.settings.body_bytes)),
    }))
}

/// The assets.
#[utoipa::path(get, path = "/v1/assets", responses((status = 200, body = json::AssetsBody)))]
pub(super) async fn assets(State(api): State<Api>) -> Answered<json::AssetsBody> {
    let outline = api.published().views().outline().clone();
    Ok(Json(json::assets(&outline)))
}

/// An asset by its number, or that there is none, with proofs of its record and of its terms.
#[utoipa::path(get, path = "/v1/assets/{number}/proof",
    params(("number" = u32, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn asset_proof(
    State(api): State<Api>,
    Path(number): Path<u32>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let prove = move |api: &Api| {
        let proved = api.backend.prove_asset(AssetId(number))?;
        Ok(record_body(&proved, proved.proof.0.asset.is_some()))
    };
    proved_record(&api, &asked, prove).await
}

/// What an account may do with an asset: whether its issuer has frozen or admitted it.
#[utoipa::path(get, path = "/v1/assets/{number}/holders/{address}",
    params(("number" = u32, Path), ("address" = String, Path)),
    responses((status = 200, body = json::HolderBody), (status = 400, body = ErrorBody)))]
pub(super) async fn holder(
    State(api): State<Api>,
    Path((number, address)): Path<(u32, String)>,
) -> Answered<json::HolderBody> {
    let address: Address = parse("address", &address)?;
    Ok(Json(json::holder(api.published().views().outline(), AssetId(number), &address)))
}

/// What an issuer has said of a holder, or that it has said nothing, with a proof that needs only the state root, and
/// on request with the certificate of that root.
#[utoipa::path(get, path = "/v1/assets/{number}/holders/{address}/proof",
    params(("number" = u32, Path), ("address" = String, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::RecordProofBody), (status = 400, body = ErrorBody)))]
pub(super) async fn holder_proof(
    State(api): State<Api>,
    Path((number, address)): Path<(u32, String)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::RecordProofBody> {
    let address: Address = parse("address", &address)?;
    let prove = move |api: &Api| {
        let proved = api.backend.prove_holder(AssetId(number), &address)?;
        Ok(record_body(&proved, proved.proof.record.is_some()))
    };
    proved_record(&api, &asked, prove).await
}
