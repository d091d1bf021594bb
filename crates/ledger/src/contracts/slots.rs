//! The asset that pays for gas.

use primitives::AssetId;

/// Asset 0 pays for gas.
pub(crate) const GAS_ASSET: AssetId = AssetId(0);
