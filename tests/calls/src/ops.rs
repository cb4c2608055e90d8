// SPDX-License-Identifier: GPL-2.0

//! What a thread can do with sockets.

mod family;
mod life;
mod option;
mod recv;
mod refuse;
mod send;
mod wait;
