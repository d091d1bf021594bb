//! Tests of `protocols` in one program: its parts are linked once.

mod fix_link;
mod fix_messages;
mod fix_reports;
mod fix_sessions;
mod itch_handler;
mod itch_reader;
mod ouch_messages;
mod soup_link;
mod soup_packets;
mod soup_sessions;
