//! The repeated parts of hostile programs: opcodes, precompiles, and calls of tokens and offers.
//!
//! Precompiles whose gas is charged before they look at their input are called with exactly the gas of their price
//! where a refused input costs as much work as a valid one. A refused call uses all the gas that it is given.

use ledger::contracts::ethereum::{U256, hex, keccak256};
use ledger::contracts::{OFFERS, token_address};
use primitives::{Address, AssetId};

/// The repeated part of a program, for a number of bytes: its opcodes, and the input in memory.
pub type Kernel = fn(usize) -> (Vec<u8>, Vec<u8>);

/// All programs with their names.
pub const KERNELS: [(&str, Kernel); 45] = [
    ("jumps", |_| (Vec::new(), Vec::new())),
    ("mulmod", |_| (vec![0x5f, 0x19, 0x5f, 0x19, 0x5f, 0x19, 0x09, 0x50], Vec::new())),
    ("division", |_| (vec![0x60, 3, 0x5f, 0x19, 0x04, 0x50, 0x60, 7, 0x5f, 0x19, 0x07, 0x50], Vec::new())),
    ("exponents", |_| (vec![0x5f, 0x19, 0x5f, 0x19, 0x0a, 0x50], Vec::new())),
    ("keccak", |size| (with_size(size, &[], &[0x5f, 0x20, 0x50]), vec![7; size])),
    ("copies in memory", |size| (with_size(size, &[], &[0x60, 32, 0x5f, 0x5e]), vec![7; size])),
    ("logs", |size| (with_size(size, &[], &[0x5f, 0xa0]), vec![7; size])),
    ("cold slots", |_| (vec![0x5a, 0x54, 0x50], Vec::new())),
    ("new slots", |_| (vec![0x60, 1, 0x5a, 0x55], Vec::new())),
    ("slots again", |_| (vec![0x5a, 0x5f, 0x55], Vec::new())),
    ("placed offers", |_| offers("place(address,address,uint64,uint64)", &[token(1), token(0), 5_000, 5_000])),
    ("refused offers", |_| offers("place(address,address,uint64,uint64)", &[token(1), token(0), 5, 5])),
    ("offers asked for", |_| offers("amountOf(address,bytes32)", &[5, 1 << 63])),
    ("rates of the batch", |_| offers("rate(address,address)", &[token(1), token(0)])),
    ("offers with a long input", |size| unpaid(OFFERS, size)),
    ("tokens with a long input", |size| unpaid(token_address(AssetId(1)), size)),
    ("tokens without gas", |size| (long_call(token_address(AssetId(1)), size, &[0x5f]), Vec::new())),
    ("domains of tokens", |_| tokens("DOMAIN_SEPARATOR()", &[])),
    ("symbols of tokens", |_| tokens("symbol()", &[])),
    ("transfers of tokens", |_| tokens("transfer(address,uint256)", &[5, 1])),
    ("allowances", |_| tokens("approve(address,uint256)", &[5, 1])),
    ("forged permits", |_| tokens(PERMIT, &[5, 6, 7, u128::MAX, 27, 8, 9])),
    ("transient slots", |_| (vec![0x60, 1, 0x5a, 0x5d], Vec::new())),
    ("cold balances", |_| (vec![0x5a, 0x31, 0x50], Vec::new())),
    ("block hashes", |_| (vec![0x5f, 0x40, 0x50], Vec::new())),
    ("creations", |_| (vec![0x5f, 0x5f, 0x5f, 0xf0, 0x50], Vec::new())),
    ("calls of itself", |_| (vec![0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x61, 0x02, 0x58, 0xf1, 0x50], Vec::new())),
    ("recovery", |_| calls(1, recovery())),
    ("sha256", |size| calls(2, vec![7; size])),
    ("ripemd", |size| calls(3, vec![7; size])),
    ("identity", |size| calls(4, vec![7; size])),
    ("modexp", |size| calls(5, modexp(size))),
    ("curve addition", |_| calls(6, [bytes(BN_G1), bytes(BN_G1)].concat())),
    ("curve multiplication", |size| calls(7, curve(size))),
    ("curve pairing", |size| calls(8, repeated(&[BN_G1, BN_G2].concat(), size))),
    ("blake2f", |size| calls(9, blake(size))),
    ("blob proofs", |_| calls_with(0x0a, 50_000, bytes(BLOB))),
    ("BLS additions in G1", |_| calls(0x0b, [padded(BLS_G1), padded(BLS_G1)].concat())),
    ("BLS sums in G1", |size| calls(0x0c, scaled(BLS_G1, size))),
    ("BLS additions in G2", |_| calls(0x0d, [padded(BLS_G2), padded(BLS_G2)].concat())),
    ("BLS sums in G2", |size| calls(0x0e, scaled(BLS_G2, size))),
    ("BLS pairings", |size| calls(0x0f, [padded(BLS_G1), padded(BLS_G2)].concat().repeat(points(size)))),
    ("BLS map to G1", |size| calls(0x10, field(size, 1))),
    ("BLS map to G2", |size| calls(0x11, field(size, 2))),
    ("P-256 signatures", |_| calls_at(0x0100, &[0x5a], bytes(P256))),
];

const PERMIT: &str = "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)";
/// Points of the longest input of a precompile: its gas for each is least there.
const POINTS_MAX: usize = 128;
/// The generators of BN254.
const BN_G1: &str = "0000000000000000000000000000000000000000000000000000000000000001\
                     0000000000000000000000000000000000000000000000000000000000000002";
const BN_G2: &str = "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2\
                     1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed\
                     090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b\
                     12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa";
/// The generators of BLS12-381, each coordinate in 48 bytes.
const BLS_G1: &str = "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb\
                      08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1";
const BLS_G2: &str = "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8\
                      13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e\
                      0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801\
                      0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be";
/// A false proof: versioned hash of the generator, a point, a value, and the generator as commitment and proof.
const BLOB: &str = "01cf478a431837728dcec3461f4f53b8749cdc4e03496dcaed459dea82b82eb8\
                    1111111111111111111111111111111111111111111111111111111111111111\
                    2222222222222222222222222222222222222222222222222222222222222222\
                    97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58\
                    6c55e83ff97a1aeffb3af00adb22c6bb\
                    97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58\
                    6c55e83ff97a1aeffb3af00adb22c6bb";
/// A hash, a false signature, and the generator of P-256 as public key.
const P256: &str = "7777777777777777777777777777777777777777777777777777777777777777\
                    5555555555555555555555555555555555555555555555555555555555555555\
                    3333333333333333333333333333333333333333333333333333333333333333\
                    6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
                    4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";

fn bytes(digits: &str) -> Vec<u8> {
    hex::decode(digits).expect("hexadecimal digits")
}

/// Coordinates of 48 bytes, each in 64.
fn padded(digits: &str) -> Vec<u8> {
    bytes(digits).chunks(48).flat_map(|coordinate| [&[0; 16], coordinate].concat()).collect()
}

fn points(size: usize) -> usize {
    (size / 32).clamp(1, POINTS_MAX)
}

fn repeated(digits: &str, size: usize) -> Vec<u8> {
    bytes(digits).repeat(points(size))
}

/// Points with scalars of all bits.
fn scaled(point: &str, size: usize) -> Vec<u8> {
    [padded(point), vec![0xff; 32]].concat().repeat(points(size))
}

/// Field elements of BLS12-381.
fn field(size: usize, elements: usize) -> Vec<u8> {
    [vec![0; 24], vec![size as u8; 40]].concat().repeat(elements)
}

/// Opcodes around a size of two bytes on the stack.
fn with_size(size: usize, before: &[u8], after: &[u8]) -> Vec<u8> {
    let [high, low] = (size as u16).to_be_bytes();
    [before, &[0x61, high, low], after].concat()
}

/// A call of a precompile with an input and all gas.
fn calls(precompile: u8, input: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    calls_at(precompile.into(), &[0x5a], input)
}

/// A call of a precompile with this much gas, all of which a refused input uses.
fn calls_with(precompile: u8, gas: u32, input: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    calls_at(precompile.into(), &[&[0x63][..], &gas.to_be_bytes()].concat(), input)
}

/// The same with opcodes that put the gas on the stack.
fn calls_at(precompile: u16, gas: &[u8], input: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let [high, low] = precompile.to_be_bytes();
    let call = [&[0x5f, 0x61, high, low][..], gas, &[0xfa, 0x50]].concat();
    (with_size(input.len(), &[0x5f, 0x5f], &call), input)
}

/// Static calls of a reserved address with an input that is mostly not paid for: 128 bytes of memory for each byte.
fn unpaid(address: Address, size: usize) -> (Vec<u8>, Vec<u8>) {
    (long_call(address, size, &[0x61, 0x10, 0x00]), Vec::new())
}

fn long_call(address: Address, size: usize, gas: &[u8]) -> Vec<u8> {
    let size = (size as u32 * 128).to_be_bytes();
    [&[0x5f, 0x5f, 0x63][..], &size, &[0x5f, 0x73], &address.0, gas, &[0xfa, 0x50]].concat()
}

fn offers(function: &str, arguments: &[u128]) -> (Vec<u8>, Vec<u8>) {
    reserved(OFFERS, function, arguments)
}

fn tokens(function: &str, arguments: &[u128]) -> (Vec<u8>, Vec<u8>) {
    reserved(token_address(AssetId(1)), function, arguments)
}

/// A call of a reserved address; its arguments have at most sixteen bytes, and those of tokens begin as their
/// addresses do.
fn reserved(address: Address, function: &str, arguments: &[u128]) -> (Vec<u8>, Vec<u8>) {
    let word = |argument: &u128| match argument.checked_sub(TOKEN) {
        Some(asset) if *argument < 2 * TOKEN => {
            U256::from_be_slice(&token_address(AssetId(asset as u32)).0).to_be_bytes::<32>()
        }
        _ => U256::from(*argument).to_be_bytes(),
    };
    let input = [&keccak256(function)[..4], &arguments.iter().flat_map(word).collect::<Vec<u8>>()].concat();
    let call = [&[0x5f, 0x5f, 0x73][..], &address.0, &[0x5a, 0xf1, 0x50]].concat();
    (with_size(input.len(), &[0x5f, 0x5f], &call), input)
}

/// Represents the token of an asset among arguments.
const TOKEN: u128 = 1 << 100;

fn token(asset: u128) -> u128 {
    TOKEN + asset
}

/// A hash and a signature of it.
fn recovery() -> Vec<u8> {
    let key = ledger::contracts::EthereumKey::from_seed([7; 32]).expect("a key");
    let hash = keccak256([1]);
    let signature = key.sign_hash(hash);
    let parity = U256::from(27 + u8::from(signature.v()));
    [hash.0, parity.to_be_bytes(), signature.r().to_be_bytes(), signature.s().to_be_bytes()].concat()
}

/// Base, exponent and modulus of this size.
fn modexp(size: usize) -> Vec<u8> {
    let size = size.clamp(1, 1_024);
    let length = U256::from(size).to_be_bytes::<32>();
    [&length[..], &length, &length, &vec![0xff; 3 * size]].concat()
}

/// The generator of BN254 and a scalar with this many bits.
fn curve(size: usize) -> Vec<u8> {
    let scalar = U256::MAX >> (size % 256);
    [U256::from(1), U256::from(2), scalar].map(|word| word.to_be_bytes::<32>()).concat()
}

/// This many rounds.
fn blake(size: usize) -> Vec<u8> {
    let mut input = vec![0; 213];
    input[..4].copy_from_slice(&(size as u32 * 16).to_be_bytes());
    input
}
