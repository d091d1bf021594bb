//! Blocks, batches and their encodings.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use primitives::{Address, Height, Superblock, Transaction};
use serde::Deserialize;

use super::sealed::{acted, acted_inside, enclosed};
use super::{Api, PAGE, Page, parse, proof_bytes};
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};
use readers::cache::ProvenReceipts;
use readers::views::{BatchSummary, BlockSummary, CommittedBlock};

fn no_block(height: Height) -> Failure {
    Failure::not_found(format!("this node has no block {height}: it does not exist yet, or is no longer kept"))
}

fn no_receipts(height: Height) -> Failure {
    Failure::not_found(format!(
        "this node has no receipts of block {height}: they do not exist yet, or are no longer kept"
    ))
}

/// The receipts of a block.
pub(super) fn receipts(api: &Api, height: Height) -> Result<Arc<ProvenReceipts>, Failure> {
    api.backend.receipts(height)?.ok_or_else(|| no_receipts(height))
}

/// The summary of a block: as published, or rebuilt from the archive.
fn summary(api: &Api, body: &Superblock, proven: &ProvenReceipts) -> Result<BlockSummary, Failure> {
    if let Some(summary) = api.published().views().block(body.height) {
        return Ok(summary.clone());
    }
    let mut summary = CommittedBlock::from_archive(body, proven.receipts.clone(), proven.root).summary;
    summary.state_root = api.backend.block(body.height + 1)?.map(|next| next.parent_root);
    Ok(summary)
}

/// The requested blocks: at most `limit` below the height `before`.
#[derive(Deserialize)]
pub(super) struct BlockRange {
    limit: Option<usize>,
    before: Option<Height>,
}

/// Recent blocks, newest first.
#[utoipa::path(get, path = "/v1/blocks", params(("limit" = Option<usize>, Query), ("before" = Option<u64>, Query)),
    responses((status = 200, body = json::BlocksBody)))]
pub(super) async fn blocks(State(api): State<Api>, Query(range): Query<BlockRange>) -> Answered<json::BlocksBody> {
    api.blocking(move |api| {
        let views = api.published().views();
        let recent = views.blocks(range.before.unwrap_or(u64::MAX)).take(range.limit.unwrap_or(20).min(PAGE));
        Json(json::BlocksBody { blocks: recent.map(json::block).collect() })
    })
    .await
}

/// A block and the outcomes of its transactions.
#[utoipa::path(get, path = "/v1/blocks/{height}",
    params(("height" = u64, Path), ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query),
        ("cursor" = Option<usize>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::BlockDetail), (status = 404, body = ErrorBody)))]
pub(super) async fn block(
    State(api): State<Api>,
    Path(height): Path<u64>,
    Query(page): Query<Page>,
) -> Answered<json::BlockDetail> {
    api.blocking(move |api| {
        let body = api.backend.block(height)?.ok_or_else(|| no_block(height))?;
        let proven = receipts(api, height)?;
        let block = json::block(&summary(api, &body, &proven)?);
        let receipts = &proven.receipts;
        let native: Vec<&Transaction> = body.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
        let (entries, next) = page.of(receipts.outcomes.len());
        let plain = native.iter().zip(&receipts.outcomes).skip(entries.start).take(entries.len());
        let mut outcomes: Vec<_> = plain.map(|(one, (id, outcome))| acted(api, one, id, outcome, None)).collect();
        if entries.end > native.len() {
            let enclosed = enclosed(api, &body, receipts);
            let inside = enclosed.iter().skip(entries.start.saturating_sub(native.len()));
            let rest = entries.len() - outcomes.len();
            outcomes.extend(inside.take(rest).map(|one| acted_inside(api, one, receipts)));
        }
        Ok(Json(json::BlockDetail { block, outcomes, more: next.is_some(), next }))
    })
    .await?
}

/// The batch of a block: valuations, trades, burnt amounts.
#[utoipa::path(get, path = "/v1/blocks/{height}/batch", params(("height" = u64, Path)),
    responses((status = 200, body = json::BatchBody), (status = 404, body = ErrorBody)))]
pub(super) async fn batch(State(api): State<Api>, Path(height): Path<u64>) -> Answered<json::BatchBody> {
    api.blocking(move |api| {
        if let Some(batch) = api.published().views().batch(height).cloned() {
            return Ok(Json(api.symbols().batch(&batch)));
        }
        let body = api.backend.block(height)?.ok_or_else(|| no_block(height))?;
        let batch = receipts(api, height)?.receipts.batch.clone();
        let summary = BatchSummary { height, time_ms: body.time_ms, batch, report: None };
        Ok(Json(api.symbols().batch(&summary)))
    })
    .await?
}

/// The offers that left the book in a block otherwise than by trading, and why.
#[utoipa::path(get, path = "/v1/blocks/{height}/ended",
    params(("height" = u64, Path), ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query),
        ("cursor" = Option<usize>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::EndedOffersBody), (status = 404, body = ErrorBody)))]
pub(super) async fn ended(
    State(api): State<Api>,
    Path(height): Path<u64>,
    Query(page): Query<Page>,
) -> Answered<json::EndedOffersBody> {
    api.blocking(move |api| {
        let of = |all: &[ledger::EndedOffer]| {
            let (entries, next) = page.of(all.len());
            let ended = all[entries].iter().map(|ended| api.symbols().ended(ended)).collect();
            Json(json::EndedOffersBody { height, ended, more: next.is_some(), next })
        };
        let recent = api.published().views().batch(height).cloned();
        match recent {
            Some(batch) => Ok(of(&batch.batch.ended)),
            None => Ok(of(&receipts(api, height)?.receipts.batch.ended)),
        }
    })
    .await?
}

/// An encoded superblock from the archive.
#[utoipa::path(get, path = "/v1/blocks/{height}/raw", params(("height" = u64, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = ErrorBody)))]
pub(super) async fn raw_block(State(api): State<Api>, Path(height): Path<u64>) -> Result<Response, Failure> {
    let bytes = api.blocking(move |api| api.backend.raw_block(height)).await??.ok_or_else(|| no_block(height))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// The encoded receipts of a block from the archive: every outcome, the batch, the accounts that changed.
#[utoipa::path(get, path = "/v1/blocks/{height}/receipts", params(("height" = u64, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = ErrorBody)))]
pub(super) async fn raw_receipts(State(api): State<Api>, Path(height): Path<u64>) -> Result<Response, Failure> {
    let bytes = api.blocking(move |api| api.backend.raw_receipts(height)).await??.ok_or_else(|| no_receipts(height))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// Whether a block changed an account, with a proof that needs only the block's receipts root.
#[utoipa::path(get, path = "/v1/blocks/{height}/accounts/{address}",
    params(("height" = u64, Path), ("address" = String, Path)),
    responses((status = 200, body = json::ModifiedBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn block_account(
    State(api): State<Api>,
    Path((height, address)): Path<(u64, String)>,
) -> Answered<json::ModifiedBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| {
        let proven = receipts(api, height)?;
        Ok(Json(json::ModifiedBody {
            height,
            address: address.to_string(),
            changed: proven.receipts.modified.binary_search(&address).is_ok(),
            receipts_root: proven.root.to_string(),
            proof: proof_bytes(&proven.prove_modified(&address)),
        }))
    })
    .await?
}
