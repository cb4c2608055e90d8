// SPDX-License-Identifier: GPL-2.0

//! What a peer sends over RTRS: whatever is accepted lies inside of its chunk and reads the same when it is written
//! again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_proto::{
    errno::Failure,
    rtrs::{
        answer::{
            Answer,
            Incoming, //
        },
        conn::{
            self,
            Accepted,
            ConnectRequest, //
        },
        geometry::Geometry,
        imm::{
            self,
            ToServer, //
        },
        info::{
            self,
            InfoResponse, //
        },
        request::{
            Placement,
            Request, //
        }, //
    }, //
};
use zerocopy::IntoBytes;

/// Private data of the connection manager.
fn connecting(data: &[u8]) {
    if let Ok(request) = ConnectRequest::parse(data) {
        assert!(request.cid < request.cid_num && request.cid_num <= 4096);
        assert_eq!(
            ConnectRequest::parse(request.to_wire().as_bytes()),
            Ok(request)
        );
    }
    if let Ok(accepted) = Accepted::parse(data) {
        let again = conn::accept(&accepted.geometry, accepted.new_rkey);
        assert_eq!(Accepted::parse(again.as_bytes()), Ok(accepted));
    }
    let errno = conn::rejection(data);
    assert_eq!(conn::rejection(conn::reject(errno).as_bytes()), errno);
}

/// Messages of the info exchange.
fn info(geometry: &Geometry, data: &[u8]) {
    if let Ok(name) = info::parse_request(data) {
        assert_eq!(
            info::parse_request(info::request(&name).as_bytes()),
            Ok(name)
        );
    }
    match InfoResponse::parse(geometry, data) {
        Ok(response) => {
            let chunks = response.chunks().map(|(chunk, ..)| chunk);
            assert!(chunks.eq(geometry.chunks()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A request that arrives with `word`, and its answer.
fn request(geometry: &Geometry, word: u32, data: &[u8]) {
    let Ok(ToServer::Request { chunk, off }) = ToServer::parse(geometry, word) else {
        return;
    };
    assert_eq!(imm::request(geometry, chunk, off), Some(word));
    let room = Request::header_range(geometry, off).len();
    let request = match Request::parse(geometry, off, &data[..data.len().min(room)]) {
        Ok(request) => request,
        Err(error) => return assert!(error.errno().number() != 0),
    };
    assert!(request.usr_range().end == off && off < geometry.chunk_size());
    let (data_len, usr_len) = (request.data_len(), request.usr_len());
    let placement = Placement::new(geometry, request.transfer(), data_len, usr_len).unwrap();
    assert_eq!(placement.header_off(), off);
    assert_eq!(
        Request::parse(geometry, off, placement.header()),
        Ok(request)
    );

    let answer = Answer::new(chunk, &request, Ok(()), data_len, None);
    assert_eq!(
        answer.data.map(|data| data.len),
        request.target().map(|target| target.len)
    );
    assert!(Incoming::parse_write(geometry, false, answer.imm).is_ok());
}

fuzz_target!(|input: (u16, u32, u16, u32, Vec<u8>)| {
    let (depth, io, hdr, word, data) = input;
    connecting(&data);
    // Chunks of a size that an immediate can hold.
    let Ok(geometry) = Geometry::new(depth, io % (1 << 20), hdr.into()) else {
        return;
    };
    info(&geometry, &data);
    request(&geometry, word, &data);
    let _ = Incoming::parse_write(&geometry, word & 1 != 0, word);
    let _ = Incoming::parse_send(&geometry, true, word, &data);
});
