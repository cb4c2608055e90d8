// SPDX-License-Identifier: GPL-2.0

//! The connections of a path and what each of them is for.
//!
//! Connection 0 carries what is not IO: the info exchange, heartbeats, messages that open and close something. Then
//! there is one for each processor, and behind these those that are polled. The server makes as many as the client asks
//! for and does not care what they are for.
//!
//! C counterpart: `rtrs_permit_to_clt_con()` and `create_con_cq_qp()` in `rtrs-clt.c`.

use super::wire::MAX_CONNECTIONS;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Everything but IO.
    Admin,
    /// IO whose completion raises an interrupt.
    Io,
    /// IO that is polled for.
    Polled,
}

/// The connections of a path.
///
/// # Invariants
///
/// `io` is at least 1, and with connection 0 there are at most [`MAX_CONNECTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Number of connections for IO.
    io: u16,
    /// Number of polled connections.
    polled: u16,
}

impl Connections {
    /// One connection for each of `cpus` processors and `polled` that are polled.
    ///
    /// If a path cannot have so many, some processors share one; polled ones beyond the limit are left out.
    pub fn new(cpus: u32, polled: u32) -> Self {
        // Connection 0 and one for IO have to be.
        let most = MAX_CONNECTIONS.saturating_sub(2);
        let polled = u16::try_from(polled).unwrap_or(most).min(most);
        let most = MAX_CONNECTIONS.saturating_sub(1).saturating_sub(polled);
        let io = u16::try_from(cpus).unwrap_or(most).min(most).max(1);
        // INVARIANT: `polled` leaves room for one, `io` takes no more than is left.
        Self { io, polled }
    }

    /// Number of connections, at least 2.
    #[inline]
    pub fn cid_num(&self) -> u16 {
        self.io.saturating_add(self.polled).saturating_add(1)
    }

    /// Number of polled connections.
    #[inline]
    pub fn polled(&self) -> u16 {
        self.polled
    }

    /// What connection `cid` is for, if there is one.
    #[inline]
    pub fn use_of(&self, cid: u16) -> Option<Use> {
        match cid {
            0 => Some(Use::Admin),
            _ if cid <= self.io => Some(Use::Io),
            _ if cid < self.cid_num() => Some(Use::Polled),
            _ => None,
        }
    }

    /// Connection for IO from processor `cpu`.
    #[inline]
    pub fn for_cpu(&self, cpu: u32) -> u16 {
        let index = cpu.checked_rem(self.io.into()).unwrap_or(0);
        // CAST: Below `io`.
        (index as u16).saturating_add(1)
    }

    /// Connection for IO from polled queue `index`; paths that were added later may have none.
    #[inline]
    pub fn for_poll(&self, index: u32) -> Option<u16> {
        let index = u16::try_from(index)
            .ok()
            .filter(|index| *index < self.polled)?;
        index.checked_add(self.io)?.checked_add(1)
    }

    /// Completion vector of connection `cid`, below `vectors`; connection 0 shares that of 1.
    #[inline]
    pub fn completion_vector(&self, cid: u16, cpus: u32, vectors: u32) -> u32 {
        let cpu = u32::from(cid.saturating_sub(1))
            .checked_rem(cpus)
            .unwrap_or(0);
        cpu.checked_rem(vectors).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_each_processor() {
        let connections = Connections::new(4, 2);
        assert_eq!(connections.cid_num(), 7);
        let uses: [_; 8] = core::array::from_fn(|cid| connections.use_of(cid as u16));
        use Use::*;
        let expected = [Admin, Io, Io, Io, Io, Polled, Polled].map(Some);
        assert_eq!((&uses[..7], uses[7]), (&expected[..], None));
        assert_eq!(
            [0, 1, 3, 4, 9].map(|cpu| connections.for_cpu(cpu)),
            [1, 2, 4, 1, 2]
        );
        assert_eq!(
            [0, 1, 2].map(|index| connections.for_poll(index)),
            [Some(5), Some(6), None]
        );
    }

    #[test]
    fn limits() {
        for (cpus, polled, cid_num) in [
            (1, 0, 2),
            (0, 0, 2),
            (4095, 0, 4096),
            (8192, 0, 4096),
            (8192, 8192, 4096),
            (u32::MAX, u32::MAX, 4096),
            (1, u32::MAX, 4096),
        ] {
            let connections = Connections::new(cpus, polled);
            assert_eq!(connections.cid_num(), cid_num, "{cpus} {polled}");
            for cpu in [0, cpus.saturating_sub(1), u32::MAX] {
                assert_eq!(connections.use_of(connections.for_cpu(cpu)), Some(Use::Io));
            }
            if let Some(cid) = connections.for_poll(0) {
                assert_eq!(connections.use_of(cid), Some(Use::Polled));
            }
        }
    }

    #[test]
    fn vectors() {
        let connections = Connections::new(4, 2);
        let vectors: [_; 7] =
            core::array::from_fn(|cid| connections.completion_vector(cid as u16, 4, 3));
        assert_eq!(vectors, [0, 0, 1, 2, 0, 0, 1]);
        assert_eq!(connections.completion_vector(3, 0, 0), 0);
    }
}
