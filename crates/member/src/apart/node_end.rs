//! The node's end of the line to a shard.

use super::link::{ShardLineEffect, ShardLineEnd, ShardSession};
use super::orders::{ShardAnswer, ShardOrder};

/// What the shell does, in this order.
#[derive(Clone, Debug)]
pub enum NodeEndEffect {
    /// Send a frame on the present connection.
    Send(Vec<u8>),
    /// Close the present connection.
    Close,
    /// The shard has forgotten what it was told, or will: [`crate::MemberInput::Away`].
    Away,
    /// It can be told everything from the beginning: [`crate::MemberInput::Back`].
    Back,
    /// It answers.
    Heard(Box<ShardAnswer>),
    /// It answers something that this program does not know: tell the operator.
    Unread,
}

/// See the module text of [`super`].
#[derive(Clone, Debug)]
pub struct NodeEnd(ShardLineEnd);

impl Default for NodeEnd {
    fn default() -> NodeEnd {
        NodeEnd(ShardLineEnd::new(true))
    }
}

impl NodeEnd {
    /// Whether the shard hears what it is told at present.
    pub fn is_met(&self) -> bool {
        self.0.is_met()
    }

    /// A connection is there; `fresh` is random.
    pub fn connected(&mut self, fresh: ShardSession) -> Vec<NodeEndEffect> {
        heard(self.0.connected(fresh))
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.0.disconnected();
    }

    /// A frame has come.
    pub fn frame(&mut self, frame: &[u8]) -> Vec<NodeEndEffect> {
        heard(self.0.frame(frame))
    }

    /// Orders something in the present session; nothing is kept between sessions.
    pub fn order(&mut self, order: &ShardOrder) -> Vec<NodeEndEffect> {
        order.encode().map(|bytes| heard(self.0.push(bytes))).unwrap_or_default()
    }
}

/// What cannot be read is no answer: the member asks again for what it lacks.
fn heard(effects: Vec<ShardLineEffect>) -> Vec<NodeEndEffect> {
    let effects = effects.into_iter().map(|effect| match effect {
        ShardLineEffect::Send(frame) => NodeEndEffect::Send(frame),
        ShardLineEffect::Close => NodeEndEffect::Close,
        ShardLineEffect::Begin => NodeEndEffect::Back,
        ShardLineEffect::End => NodeEndEffect::Away,
        ShardLineEffect::Item(bytes) => match ShardAnswer::parse(&bytes) {
            Some(answer) => NodeEndEffect::Heard(Box::new(answer)),
            None => NodeEndEffect::Unread,
        },
    });
    effects.collect()
}
