//! Packets of market data as tshark, which others wrote, dissects them.

use std::io::Write;
use std::process::{Command, Stdio};

use protocols::mold::MoldPacket;

/// Where the packets of the capture go to.
const PORT: u16 = 26_477;

/// A capture file with these payloads, each in a datagram of its own over raw IPv4 (link type 101).
fn capture(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4u32.to_le_bytes(), [2, 0, 4, 0], [0; 4], [0; 4]].concat();
    file.extend(65_535u32.to_le_bytes());
    file.extend(101u32.to_le_bytes());
    for payload in payloads {
        let (udp, all) = (payload.len() as u16 + 8, payload.len() as u16 + 28);
        file.extend([[0; 4], [0; 4]].concat());
        file.extend([u32::from(all).to_le_bytes(), u32::from(all).to_le_bytes()].concat());
        let [high, low] = all.to_be_bytes();
        file.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        file.extend([PORT.to_be_bytes(), PORT.to_be_bytes(), udp.to_be_bytes(), [0; 2]].concat());
        file.extend(payload);
    }
    file
}

/// If there is a tshark, it reads the same sessions, numbers and messages as we do, and finds nothing wrong.
pub fn reads(packets: &[Vec<u8>]) {
    let has = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        eprintln!("no tshark: install Wireshark's command line");
        return;
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&capture(packets)).expect("written");
    let fields = ["session", "sequence", "count", "msgdata", "msglen.invalid", "count.invalid"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-d", &format!("udp.port=={PORT},moldudp64"), "-T", "fields", "-E", "separator=;", "-r"]);
    command.arg(file.path());
    for field in fields {
        command.args(["-e", &format!("moldudp64.{field}")]);
    }
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(said.lines().count(), packets.len(), "{said}");
    for (line, packet) in said.lines().zip(packets) {
        let ours = MoldPacket::decode(packet).expect("MoldUDP64");
        let messages: Vec<String> = ours.messages.iter().map(|message| primitives::to_hex(message)).collect();
        let session = String::from_utf8_lossy(&ours.session).into_owned();
        let count = if ours.is_end { 0xffff } else { messages.len() };
        assert_eq!(line, format!("{session};{};{count};{};;", ours.first, messages.join(",")));
    }
}
