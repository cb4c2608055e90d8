// SPDX-License-Identifier: GPL-2.0

//! What both sides of a run agree on: the active side tells, the passive side obeys.

use crate::header::Family;
use anyhow::{bail, ensure, Result};
use rds_sys::{MAX_MESSAGE, RESERVED_PORT};
use std::net::IpAddr;

/// Requests one task may have on their way to one task of the other side. Messages carry their place
/// among them in 16 bits.
const MAX_DEPTH: u32 = 1 << 16;
/// Requests one task may have on their way altogether: each costs memory on both sides.
const MAX_IN_FLIGHT: u64 = 1 << 20;

/// The options of a run, as the active side sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Requests on their way from one task to one task of the other side.
    pub(crate) depth: u32,
    /// Bytes of a request.
    pub(crate) req_size: u32,
    /// Bytes of an answer.
    pub(crate) ack_size: u32,
    /// The passive side's address.
    pub(crate) send_addr: IpAddr,
    /// The active side's address.
    pub(crate) receive_addr: IpAddr,
    /// Port of the control connection; the tasks use those that follow.
    pub(crate) port: u16,
    /// Tasks on each side.
    pub(crate) tasks: u16,
    /// Seconds to run; 0 means until somebody stops it.
    pub(crate) run_time: u32,
    pub(crate) summary_only: bool,
    pub(crate) realtime: bool,
    pub(crate) trace: bool,
    /// Fill messages with a pattern and look whether it arrives.
    pub(crate) verify: bool,
    pub(crate) show_params: bool,
    pub(crate) show_perfdata: bool,
    /// Learn of the end of congestion by control message.
    pub(crate) cong_monitor: bool,
    /// Only the active side sends requests.
    pub(crate) one_way: bool,
    /// How often to try again to reach the passive side.
    pub(crate) connect_retries: u32,
    /// Type of service.
    pub(crate) tos: u8,
    /// Ask for a notice when a message has arrived.
    pub(crate) async_send: bool,
    pub(crate) rdma: Rdma,
}

/// Options of RDMA operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rdma {
    /// Bytes of an operation; 0 means that there are none.
    pub(crate) size: u32,
    pub(crate) use_once: bool,
    pub(crate) use_get_mr: bool,
    pub(crate) use_fence: bool,
    pub(crate) cache_mrs: bool,
    pub(crate) key_o_meter: bool,
    /// 0: reads and writes, 1: reads only, 2: writes only.
    pub(crate) mode: u8,
    /// Buffers of an operation.
    pub(crate) vector: u32,
    pub(crate) alignment: u32,
}

impl Options {
    /// The family of both addresses.
    pub(crate) fn family(&self) -> Family {
        Family::of(self.send_addr)
    }

    /// Refuses what no run can be made of; the peer's options are not trusted either.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.rdma.size == 0,
            "RDMA operations (-D) are not there: this program sends datagrams only"
        );
        ensure!(
            !self.async_send,
            "notices of arrival (--async) are not there: no mainline kernel gives them"
        );
        self.check_size(self.req_size, "request", "-q")?;
        self.check_size(self.ack_size, "ack", "-a")?;
        self.check_tasks()
    }

    fn check_size(&self, size: u32, name: &str, option: &str) -> Result<()> {
        let least = self.family().header_len();
        let size = usize::try_from(size)?;
        if size < least {
            bail!("{name} size ({option}) must be at least {least} bytes");
        }
        if size > MAX_MESSAGE {
            bail!("{name} size ({option}) must be at most {MAX_MESSAGE} bytes");
        }
        Ok(())
    }

    fn check_tasks(&self) -> Result<()> {
        ensure!(self.tasks > 0, "the number of tasks (-t) must not be 0");
        ensure!(self.depth > 0, "the depth (-d) must not be 0");
        ensure!(
            self.depth <= MAX_DEPTH,
            "the depth (-d) must be at most {MAX_DEPTH}"
        );
        ensure!(
            u64::from(self.depth) * u64::from(self.tasks) <= MAX_IN_FLIGHT,
            "depth (-d) times tasks (-t) must be at most {MAX_IN_FLIGHT}"
        );
        ensure!(
            self.port >= RESERVED_PORT && self.port.checked_add(self.tasks).is_some(),
            "port {} and the {} ports after it are not all usable",
            self.port,
            self.tasks
        );
        Ok(())
    }

    /// The same options as the passive side sees them, which is reached at `own`.
    pub(crate) fn swapped(mut self, own: IpAddr) -> Self {
        self.send_addr = self.receive_addr;
        self.receive_addr = own;
        self
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What `rds-stress -s 10.0.0.2 -r 10.0.0.1` says.
    pub(crate) fn options() -> Options {
        Options {
            depth: 1,
            req_size: 1024,
            ack_size: 63,
            send_addr: "10.0.0.2".parse().unwrap(),
            receive_addr: "10.0.0.1".parse().unwrap(),
            port: 4000,
            tasks: 1,
            run_time: 0,
            summary_only: false,
            realtime: false,
            trace: false,
            verify: false,
            show_params: false,
            show_perfdata: false,
            cong_monitor: true,
            one_way: false,
            connect_retries: 0,
            tos: 0,
            async_send: false,
            rdma: Rdma {
                size: 0,
                use_once: false,
                use_get_mr: false,
                use_fence: true,
                cache_mrs: false,
                key_o_meter: false,
                mode: 0,
                vector: 1,
                alignment: 0,
            },
        }
    }

    fn refused(change: impl FnOnce(&mut Options)) -> bool {
        let mut options = options();
        change(&mut options);
        options.check().is_err()
    }

    #[test]
    fn the_defaults_are_a_run() {
        assert!(options().check().is_ok());
    }

    #[test]
    fn what_is_no_run() {
        assert!(refused(|options| options.rdma.size = 4096));
        assert!(refused(|options| options.async_send = true));
        assert!(refused(|options| options.req_size = 62));
        assert!(refused(|options| options.ack_size = 0));
        assert!(refused(|options| options.ack_size = (1 << 20) + 1));
        assert!(refused(|options| options.tasks = 0));
        assert!(refused(|options| options.depth = 0));
        assert!(refused(|options| options.depth = 65537));
        assert!(refused(
            |options| (options.depth, options.tasks) = (65536, 17)
        ));
        assert!(refused(|options| options.port = 65535));
        assert!(refused(|options| options.port = 0));
    }

    #[test]
    fn limits_are_still_good() {
        assert!(!refused(|options| options.req_size = 63));
        assert!(!refused(|options| options.req_size = 1 << 20));
        assert!(!refused(
            |options| (options.depth, options.tasks) = (65536, 16)
        ));
        assert!(!refused(
            |options| (options.port, options.tasks) = (65534, 1)
        ));
    }

    #[test]
    fn ipv6_headers_are_longer() {
        assert!(refused(|options| {
            options.send_addr = "::2".parse().unwrap();
            options.receive_addr = "::1".parse().unwrap();
        }));
    }

    #[test]
    fn the_passive_side_sends_where_the_active_side_receives() {
        let own = "10.0.0.3".parse().unwrap();
        let swapped = options().swapped(own);
        assert_eq!(swapped.send_addr, options().receive_addr);
        assert_eq!(swapped.receive_addr, own);
    }
}
