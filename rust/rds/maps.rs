// SPDX-License-Identifier: GPL-2.0

//! The congestion maps of a namespace: one for each address that a socket or a connection has to do with.

use crate::{
    cong::CongMap,
    netns::NetState, //
};
use core::ops::Deref;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::Arc, //
};
use weft_proto::rds::addr::Addr;

/// The maps by address.
pub(crate) type MapTable = RBTree<Addr, Entry>;

/// A map, and how many [`MapRef`]s there are of it.
pub(crate) struct Entry {
    map: Arc<CongMap>,
    users: usize,
}

/// A map in use. Its address has no other map as long as this is there.
pub struct MapRef {
    map: Arc<CongMap>,
    net: Arc<NetState>,
}

impl MapRef {
    /// The map of an address, made if there is none. May sleep. `ENOMEM`.
    pub fn get(net: &Arc<NetState>, address: &Addr) -> Result<Self> {
        if let Some(found) = Self::find(net, address) {
            return Ok(found);
        }
        let entry = Entry {
            map: CongMap::new(*address)?,
            users: 1,
        };
        let map = entry.map.clone();
        let node = RBTreeNode::new(*address, entry, GFP_KERNEL_ACCOUNT)?;
        let mut maps = net.maps.lock();
        if let Some(other) = maps.get_mut(address) {
            other.users += 1;
            let map = other.map.clone();
            drop(maps);
            drop(node);
            return Ok(Self {
                map,
                net: net.clone(),
            });
        }
        maps.insert(node);
        drop(maps);
        Ok(Self {
            map,
            net: net.clone(),
        })
    }

    fn find(net: &Arc<NetState>, address: &Addr) -> Option<Self> {
        let mut maps = net.maps.lock();
        let entry = maps.get_mut(address)?;
        entry.users += 1;
        Some(Self {
            map: entry.map.clone(),
            net: net.clone(),
        })
    }
}

impl Clone for MapRef {
    fn clone(&self) -> Self {
        if let Some(entry) = self.net.maps.lock().get_mut(&self.map.address) {
            entry.users += 1;
        }
        Self {
            map: self.map.clone(),
            net: self.net.clone(),
        }
    }
}

impl Deref for MapRef {
    type Target = CongMap;

    fn deref(&self) -> &CongMap {
        &self.map
    }
}

impl Drop for MapRef {
    fn drop(&mut self) {
        let mut maps = self.net.maps.lock();
        let unused = maps.get_mut(&self.map.address).is_some_and(|entry| {
            entry.users -= 1;
            entry.users == 0
        });
        let node = if unused {
            maps.remove_node(&self.map.address)
        } else {
            None
        };
        drop(maps);
        drop(node);
    }
}
