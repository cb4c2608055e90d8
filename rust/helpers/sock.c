// SPDX-License-Identifier: GPL-2.0
/* struct sock: the layout, fields and inline functions that a protocol family of its own needs. */
#include <linux/compat.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/* struct sock is opaque to Rust: it only knows how much room to leave for it (rust/weft/net/sock.rs). */
static const size_t WEFT_SOCK_SIZE __maybe_unused = sizeof(struct sock);
static const size_t WEFT_SOCK_ALIGN __maybe_unused = __alignof__(struct sock);

static const unsigned int WEFT_SOCK_DEAD __maybe_unused = SOCK_DEAD;
static const unsigned int WEFT_SOCK_RCVTSTAMP __maybe_unused = SOCK_RCVTSTAMP;
static const unsigned int WEFT_SOCK_TSTAMP_NEW __maybe_unused = SOCK_TSTAMP_NEW;
static const unsigned int WEFT_SOCK_ZEROCOPY __maybe_unused = SOCK_ZEROCOPY;

void weft_helper_sock_hold(struct sock *sk)
{
	sock_hold(sk);
}
WEFT_EXPORT(sock_hold);

void weft_helper_sock_put(struct sock *sk)
{
	sock_put(sk);
}
WEFT_EXPORT(sock_put);

void weft_helper_sock_orphan(struct sock *sk)
{
	sock_orphan(sk);
}
WEFT_EXPORT(sock_orphan);

void weft_helper_sk_set_destruct(struct sock *sk, void (*destruct)(struct sock *sk))
{
	sk->sk_destruct = destruct;
}
WEFT_EXPORT(sk_set_destruct);

void weft_helper_sk_set_protocol(struct sock *sk, u16 protocol)
{
	sk->sk_protocol = protocol;
}
WEFT_EXPORT(sk_set_protocol);

bool weft_helper_sock_flag(struct sock *sk, unsigned int flag)
{
	return sock_flag(sk, flag);
}
WEFT_EXPORT(sock_flag);

void weft_helper_sock_valbool_flag(struct sock *sk, unsigned int flag, bool on)
{
	sock_valbool_flag(sk, flag, on);
}
WEFT_EXPORT(sock_valbool_flag);

int weft_helper_sk_rcvbuf(struct sock *sk)
{
	return READ_ONCE(sk->sk_rcvbuf);
}
WEFT_EXPORT(sk_rcvbuf);

long weft_helper_sock_sndtimeo(struct sock *sk, bool noblock)
{
	return sock_sndtimeo(sk, noblock);
}
WEFT_EXPORT(sock_sndtimeo);

long weft_helper_sock_rcvtimeo(struct sock *sk, bool noblock)
{
	return sock_rcvtimeo(sk, noblock);
}
WEFT_EXPORT(sock_rcvtimeo);

int weft_helper_sock_intr_errno(long timeo)
{
	return sock_intr_errno(timeo);
}
WEFT_EXPORT(sock_intr_errno);

u64 weft_helper_sock_i_ino(struct sock *sk)
{
	return sock_i_ino(sk);
}
WEFT_EXPORT(sock_i_ino);

kuid_t weft_helper_sk_uid(struct sock *sk)
{
	return sk_uid(sk);
}
WEFT_EXPORT(sk_uid);

int weft_helper_sk_err(struct sock *sk)
{
	return READ_ONCE(sk->sk_err);
}
WEFT_EXPORT(sk_err);

bool weft_helper_sk_error_queue_empty(struct sock *sk)
{
	return skb_queue_empty_lockless(&sk->sk_error_queue);
}
WEFT_EXPORT(sk_error_queue_empty);

struct socket_wq *weft_helper_sk_wq(struct sock *sk)
{
	return rcu_dereference(sk->sk_wq);
}
WEFT_EXPORT(sk_wq);

void weft_helper_sk_wake_async_rcu(struct sock *sk, int how, int band)
{
	sk_wake_async_rcu(sk, how, band);
}
WEFT_EXPORT(sk_wake_async_rcu);

int weft_helper_copy_from_sockptr_offset(void *dst, sockptr_t src, size_t offset, size_t size)
{
	return copy_from_sockptr_offset(dst, src, offset, size);
}
WEFT_EXPORT(copy_from_sockptr_offset);

void __user *weft_helper_compat_ptr(u32 uptr)
{
	return compat_ptr(uptr);
}
WEFT_EXPORT(compat_ptr);
