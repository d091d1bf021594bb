//! Fills of venues: what became of them, in which block, and who may have reported them.

use axum::Json;
use axum::extract::{Path, Query, State};
use ledger::SettledFills;
use primitives::Height;
use primitives::venue::VenueId;
use serde::Deserialize;

use super::blocks::receipts;
use super::record_proof::AskedProof;
use super::validators::certificate_of;
use super::venues::read_venues;
use super::{Api, Page, proof_bytes};
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

/// Maximum number of settles in an answer, each of which is read from the receipts of its block.
const SETTLES: usize = 20;
/// Maximum number of fills in an answer; its first settle is whole.
const FILLS: usize = 20_000;

/// The requested settles of a venue.
#[derive(Deserialize)]
pub(super) struct AskedSettles {
    incarnation: Option<u32>,
    #[serde(default)]
    from: u64,
    limit: Option<usize>,
}

/// Settles of a venue in order of their indices, with the verdicts of all fills: from the one with the fill `from` on.
/// The leaves, joined to a tree, are the peaks that the ledger has of the incarnation.
#[utoipa::path(get, path = "/v1/venues/{venue}/settles",
    params(("venue" = u32, Path),
        ("incarnation" = Option<u32>, Query, description = "by default the present one"),
        ("from" = Option<u64>, Query, description = "index of a fill; `next` of the page before"),
        ("limit" = Option<usize>, Query, description = "at most 20 settles")),
    responses((status = 200, body = json::VenueSettlesBody), (status = 404, body = ErrorBody)))]
pub(super) async fn venue_settles(
    State(api): State<Api>,
    Path(venue): Path<u32>,
    Query(asked): Query<AskedSettles>,
) -> Answered<json::VenueSettlesBody> {
    api.blocking(move |api| {
        let present = super::venues::record(&read_venues(api)?.venues, venue)?.incarnation;
        let incarnation = asked.incarnation.unwrap_or(present);
        let limit = asked.limit.unwrap_or(SETTLES).clamp(1, SETTLES);
        let heights: Vec<(u64, Height)> =
            api.published().views().venues().settles_from(venue, incarnation, asked.from).take(limit + 1).collect();
        let (mut settles, mut fills, mut next) = (Vec::new(), 0, None);
        for (from, height) in heights {
            if settles.len() == limit || fills >= FILLS {
                next = Some(from.to_string());
                break;
            }
            let settle = json::settled(settle_at(api, height, venue, incarnation)?.1.as_ref().ok_or_else(gone)?);
            fills += settle.fills.len();
            settles.push(json::SettledAtBody { height, settle });
        }
        Ok(Json(json::VenueSettlesBody { settles, more: next.is_some(), next }))
    })
    .await?
}

fn gone() -> Failure {
    Failure::not_found("this node has no such settle any more; ask another node")
}

/// The receipts of a block, and the settle of an incarnation in them.
fn settle_at(
    api: &Api,
    height: Height,
    venue: VenueId,
    incarnation: u32,
) -> Result<(std::sync::Arc<readers::cache::ProvenReceipts>, Option<SettledFills>), Failure> {
    let proven = receipts(api, height)?;
    let is_asked = |of: &&SettledFills| (of.venue, of.incarnation) == (venue, incarnation);
    let settled = proven.receipts.venues.iter().find(is_asked).cloned();
    Ok((proven, settled))
}

/// The settles of venues that counted in a block, with the verdicts of all fills and a proof that needs only the
/// block's receipts root.
#[utoipa::path(get, path = "/v1/blocks/{height}/settles",
    params(("height" = u64, Path), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::BlockSettlesBody), (status = 404, body = ErrorBody)))]
pub(super) async fn block_settles(
    State(api): State<Api>,
    Path(height): Path<u64>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::BlockSettlesBody> {
    let mut body = api
        .blocking(move |api| {
            let proven = receipts(api, height)?;
            Ok::<_, Failure>(json::BlockSettlesBody {
                height,
                receipts_root: proven.root.to_string(),
                settles: proven.receipts.venues.iter().map(json::settled).collect(),
                proof: proof_bytes(&proven.prove_settles()),
                certificate: None,
            })
        })
        .await??;
    if asked.certified {
        body.certificate = Some(certificate_of(&api, height).await?);
    }
    Ok(Json(body))
}

/// What became of a fill, or of a reported one: its leaf and verdict, with a proof that needs only the receipts root of
/// its block. A report of the index with another leaf is false.
#[utoipa::path(get, path = "/v1/venues/{venue}/fills/{incarnation}/{index}/proof",
    params(("venue" = u32, Path), ("incarnation" = u32, Path), ("index" = u64, Path),
        ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::FillProofBody), (status = 404, body = ErrorBody)))]
pub(super) async fn fill_proof(
    State(api): State<Api>,
    Path((venue, incarnation, index)): Path<(u32, u32, u64)>,
    Query(asked): Query<AskedProof>,
) -> Answered<json::FillProofBody> {
    let mut body = api.blocking(move |api| prove_fill(api, venue, incarnation, index)).await??;
    if asked.certified {
        body.certificate = Some(certificate_of(&api, body.height).await?);
    }
    Ok(Json(body))
}

fn prove_fill(api: &Api, venue: VenueId, incarnation: u32, index: u64) -> Result<json::FillProofBody, Failure> {
    super::venues::record(&read_venues(api)?.venues, venue)?;
    let found = api.published().views().venues().settle_with(venue, incarnation, index);
    let (from, height) = found.ok_or_else(|| {
        Failure::not_found(format!(
            "this node knows no settle with fill {index} of incarnation {incarnation} of venue {venue}: it is not \
             settled yet, or its block is no longer kept"
        ))
    })?;
    let (proven, settled) = settle_at(api, height, venue, incarnation)?;
    let settled = settled.ok_or_else(gone)?;
    let at = usize::try_from(index - from).unwrap_or(usize::MAX);
    let fill = settled.leaves.get(at).zip(settled.verdicts.get(at)).ok_or_else(gone)?;
    Ok(json::FillProofBody {
        height,
        receipts_root: proven.root.to_string(),
        fill: json::settled_fill(index, fill.0, fill.1),
        proof: proof_bytes(&proven.prove_settles()),
        certificate: None,
    })
}

/// The requested ended incarnations.
#[derive(Deserialize)]
pub(super) struct AskedEnded {
    limit: Option<usize>,
    cursor: Option<u32>,
}

/// The ended incarnations of a venue, whose reports can still convict it: report keys, and the block of each fence.
/// With the leaves of their settles they are the leaves of the tree of `finals`.
#[utoipa::path(get, path = "/v1/venues/{venue}/incarnations",
    params(("venue" = u32, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<u32>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::IncarnationsBody), (status = 404, body = ErrorBody)))]
pub(super) async fn incarnations(
    State(api): State<Api>,
    Path(venue): Path<u32>,
    Query(asked): Query<AskedEnded>,
) -> Answered<json::IncarnationsBody> {
    api.blocking(move |api| {
        super::venues::record(&read_venues(api)?.venues, venue)?;
        let limit = asked.limit.unwrap_or(Page::ENTRIES).clamp(1, super::PAGE);
        let all = api.published().views().venues().ended_from(venue, asked.cursor.unwrap_or(0), limit + 1);
        let next = all.get(limit).map(|ended| ended.incarnation.to_string());
        let ended = all.iter().take(limit).map(json::ended).collect();
        Ok(Json(json::IncarnationsBody { ended, more: next.is_some(), next }))
    })
    .await?
}
