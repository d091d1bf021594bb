//! A participant's own module inside a gateway (`walras edge gateway --strategy`).

use edge::{EdgeCommand, EdgeObserver, Strategy, StrategyError, StrategyLimits};
use fairnet::{EdgeEffect, MemberId};

/// Calls a module with each packet that a gateway shows, after the observer. Its orders count as made when the packet
/// was released (its deadline, if that was kept), plus what the call has cost.
///
/// # Errors
///
/// What is wrong with the module.
pub fn run_strategy(module: &[u8], gateway: MemberId, mut observer: EdgeObserver) -> anyhow::Result<EdgeObserver> {
    let mut strategy = Strategy::new(module, StrategyLimits::default())?;
    Ok(Box::new(move |now, effect, commands| {
        observer(now, effect, commands);
        let EdgeEffect::Show(packet) = effect else { return };
        if packet.payload.is_empty() {
            return;
        }
        match strategy.on_packet(packet) {
            Ok(turn) => {
                let released = if packet.unfair.is_none() { packet.deadline } else { now };
                commands.extend(turn.made_upon(released).map(EdgeCommand::Order));
            }
            // It was told once, with the reason.
            Err(StrategyError::Stopped) => {}
            Err(error) => tracing::error!(gateway, sequence = packet.sequence, %error, "the strategy failed"),
        }
    }))
}
