// SPDX-License-Identifier: GPL-2.0

//! What one task and one task of the other side have to do with each other: which message is the next
//! one in each direction, and how many requests are on their way.
//!
//! Requests and answers from one task to another share one sequence of numbers. Requests take turns in
//! the places from 0 to the depth, and are answered in their order.

use crate::header::{Header, Op};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

/// State of the messages between a task and one of the other side.
pub(crate) struct Flow {
    local: SocketAddr,
    remote: SocketAddr,
    depth: usize,
    send_seq: u32,
    recv_seq: u32,
    /// Place of the next request to send.
    send_index: usize,
    /// Place of the next request to arrive.
    recv_index: usize,
    /// When the requests that are not answered were sent, in their order.
    pending: VecDeque<Instant>,
    /// Requests that arrived and have to be answered.
    owed: usize,
    congested: Option<Congestion>,
}

/// The other task does not read fast enough.
#[derive(Clone, Copy)]
struct Congestion {
    since: Instant,
    /// Nobody said that it is over; it is being tried.
    trying: bool,
}

/// What a received message means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Request,
    /// The answer to the request that was sent at this time.
    Answer(Instant),
}

impl Flow {
    /// Nothing was sent yet. Interfaces in the addresses are not part of what headers tell.
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr, depth: usize) -> Self {
        let plain = |addr: SocketAddr| SocketAddr::new(addr.ip(), addr.port());
        Self {
            local: plain(local),
            remote: plain(remote),
            depth,
            send_seq: 0,
            recv_seq: 0,
            send_index: 0,
            recv_index: 0,
            pending: VecDeque::with_capacity(depth),
            owed: 0,
            congested: None,
        }
    }

    /// Header of the answer that is owed next, if one is.
    pub(crate) fn next_ack(&self) -> Option<Header> {
        let index = back(self.recv_index, self.owed, self.depth);
        (self.owed > 0).then(|| self.outgoing(Op::Ack, index))
    }

    /// Header of the next request, if one more may be on its way.
    pub(crate) fn next_request(&self) -> Option<Header> {
        let room = self.pending.len() < self.depth;
        room.then(|| self.outgoing(Op::Request, self.send_index))
    }

    fn outgoing(&self, op: Op, index: usize) -> Header {
        Header {
            seq: self.send_seq,
            from: self.local,
            to: self.remote,
            index: place(index),
            op,
        }
    }

    /// The kernel took the message with the header that was given out last, at the time `now`.
    pub(crate) fn sent(&mut self, op: Op, now: Instant) {
        self.send_seq = self.send_seq.wrapping_add(1);
        match op {
            Op::Ack => self.owed -= 1,
            Op::Request => {
                self.pending.push_back(now);
                self.send_index = (self.send_index + 1) % self.depth;
            }
        }
    }

    /// A message with this header arrived; fails with the reason if another one should have.
    pub(crate) fn receive(&mut self, header: &Header) -> Result<Event, String> {
        let index = match header.op {
            Op::Request => self.recv_index,
            Op::Ack => back(self.send_index, self.pending.len(), self.depth),
        };
        let expected = Header {
            seq: self.recv_seq,
            from: self.remote,
            to: self.local,
            index: place(index),
            op: header.op,
        };
        if let Some(text) = header.difference(&expected) {
            return Err(text);
        }
        self.recv_seq = self.recv_seq.wrapping_add(1);
        match header.op {
            Op::Request if self.owed == self.depth => Err("a request beyond the depth".to_owned()),
            Op::Request => {
                self.owed += 1;
                self.recv_index = (self.recv_index + 1) % self.depth;
                Ok(Event::Request)
            }
            Op::Ack => {
                let sent = self.pending.pop_front();
                sent.map(Event::Answer)
                    .ok_or_else(|| "an ack without a request".to_owned())
            }
        }
    }

    /// A send failed because the other task is congested.
    pub(crate) fn congest(&mut self, now: Instant) {
        self.congested = Some(Congestion {
            since: now,
            trying: false,
        });
    }

    /// Whether there is nothing to be sent because of congestion.
    pub(crate) fn is_congested(&self) -> bool {
        self.congested.is_some_and(|congestion| !congestion.trying)
    }

    /// Somebody said that the congestion is over.
    pub(crate) fn clear(&mut self) {
        self.congested = None;
    }

    /// Lets a send be tried if nobody has said so since `before`.
    pub(crate) fn retry(&mut self, before: Instant) {
        if let Some(congestion) = &mut self.congested {
            congestion.trying |= congestion.since <= before;
        }
    }

    /// A send worked; whether the congestion had ended without anybody saying so.
    pub(crate) fn missed_end(&mut self) -> bool {
        self.congested.take().is_some()
    }

    /// The lowest bits of the other task's port tell which congestion it is.
    pub(crate) fn in_mask(&self, mask: u64) -> bool {
        mask & (1 << (self.remote.port() % 64)) != 0
    }
}

/// The place that is `count` places before `index`.
fn back(index: usize, count: usize, depth: usize) -> usize {
    (index + depth - count) % depth
}

/// A place as messages carry it.
fn place(index: usize) -> u16 {
    // CAST: places are below the depth, which is at most 65536.
    index as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tasks and what is between them.
    struct Pair {
        one: Flow,
        two: Flow,
        now: Instant,
    }

    impl Pair {
        fn new(depth: usize) -> Self {
            let (a, b) = (
                "10.0.0.1:4001".parse().unwrap(),
                "10.0.0.2:4001".parse().unwrap(),
            );
            Self {
                one: Flow::new(a, b, depth),
                two: Flow::new(b, a, depth),
                now: Instant::now(),
            }
        }

        fn request(&mut self) -> Header {
            let header = self.one.next_request().unwrap();
            self.one.sent(Op::Request, self.now);
            header
        }

        fn ack(&mut self) -> Header {
            let header = self.two.next_ack().unwrap();
            self.two.sent(Op::Ack, self.now);
            header
        }
    }

    #[test]
    fn requests_up_to_the_depth_and_answers_in_order() {
        let mut pair = Pair::new(2);
        for round in 0..5 {
            let headers = [pair.request(), pair.request()];
            assert!(pair.one.next_request().is_none());
            for header in &headers {
                assert_eq!(pair.two.receive(header), Ok(Event::Request));
            }
            for index in 0..2 {
                let ack = pair.ack();
                assert_eq!((ack.seq, ack.index), (round * 2 + u32::from(index), index));
                assert_eq!(pair.one.receive(&ack), Ok(Event::Answer(pair.now)));
            }
            assert!(pair.two.next_ack().is_none());
        }
    }

    #[test]
    fn lost_repeated_and_swapped_messages_are_found() {
        let mut pair = Pair::new(3);
        let (first, second) = (pair.request(), pair.request());
        assert!(pair.two.receive(&second).is_err());
        assert_eq!(pair.two.receive(&first), Ok(Event::Request));
        assert!(pair.two.receive(&first).is_err());
        assert_eq!(pair.two.receive(&second), Ok(Event::Request));
        let (first, second) = (pair.ack(), pair.ack());
        assert!(pair.one.receive(&second).is_err());
        assert!(pair.one.receive(&first).is_ok());
        assert!(pair.one.receive(&second).is_ok());
    }

    #[test]
    fn a_peer_that_breaks_the_rules() {
        let mut pair = Pair::new(1);
        let mut header = pair.request();
        pair.two.receive(&header).unwrap();
        header.seq = 1;
        assert!(pair.two.receive(&header).is_err(), "beyond the depth");
        let mut ack = header;
        (ack.op, ack.seq) = (Op::Ack, 0);
        (ack.from, ack.to) = (header.to, header.from);
        assert!(pair.one.receive(&ack).is_ok());
        ack.seq = 1;
        assert!(pair.one.receive(&ack).is_err(), "nothing to answer");
    }

    #[test]
    fn congestion_ends_by_notice_or_by_trying() {
        let mut pair = Pair::new(1);
        let flow = &mut pair.one;
        flow.congest(pair.now);
        assert!(flow.is_congested() && flow.in_mask(1 << (4001 % 64)) && !flow.in_mask(1));
        flow.clear();
        assert!(!flow.is_congested() && !flow.missed_end());
        flow.congest(pair.now);
        flow.retry(pair.now - std::time::Duration::from_secs(1));
        assert!(flow.is_congested());
        flow.retry(pair.now);
        assert!(!flow.is_congested() && flow.missed_end());
        assert!(!flow.missed_end());
    }

    #[test]
    fn numbers_go_round() {
        let mut pair = Pair::new(65536);
        pair.one.send_seq = u32::MAX;
        pair.two.recv_seq = u32::MAX;
        for _ in 0..2 {
            let header = pair.request();
            assert!(pair.two.receive(&header).is_ok());
        }
        assert_eq!(pair.one.send_seq, 1);
    }
}
