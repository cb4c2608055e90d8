// SPDX-License-Identifier: GPL-2.0
/* Kernel TCP sockets: struct sock is opaque to Rust, so its fields are read and written here. */
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/inet_sock.h>
#include <net/rps.h>
#include <net/sock.h>
#include <net/tcp.h>

const int WEFT_SOCK_MIN_SNDBUF = SOCK_MIN_SNDBUF;
const int WEFT_SOCK_MIN_RCVBUF = SOCK_MIN_RCVBUF;
const unsigned long WEFT_SK_USER_DATA_NOCOPY = SK_USER_DATA_NOCOPY;
const unsigned long WEFT_SK_USER_DATA_MARKS = SK_USER_DATA_NOCOPY | SK_USER_DATA_BPF | SK_USER_DATA_PSOCK;
const unsigned long WEFT_SKB_LEN_OFFSET = offsetof(struct sk_buff, len);
const unsigned long WEFT_SKB_TRUESIZE_OFFSET = offsetof(struct sk_buff, truesize);
const unsigned long WEFT_SKB_NEXT_OFFSET = offsetof(struct sk_buff, next);

/* State and sequence numbers. */

int weft_helper_sk_state(const struct sock *sk)
{
	return READ_ONCE(sk->sk_state);
}
WEFT_EXPORT(sk_state);

bool weft_helper_sk_listens(const struct sock *sk)
{
	return READ_ONCE(sk->sk_state) == TCP_LISTEN;
}
WEFT_EXPORT(sk_listens);

u32 weft_helper_tcp_write_seq(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->write_seq);
}
WEFT_EXPORT(tcp_write_seq);

u32 weft_helper_tcp_snd_una(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->snd_una);
}
WEFT_EXPORT(tcp_snd_una);

bool weft_helper_sk_receive_queue_empty(const struct sock *sk)
{
	return skb_queue_empty_lockless(&sk->sk_receive_queue);
}
WEFT_EXPORT(sk_receive_queue_empty);

struct net *weft_helper_sock_net(const struct sock *sk)
{
	return sock_net(sk);
}
WEFT_EXPORT(sock_net);

/* Buffers. */

unsigned int weft_helper_sk_wmem_alloc(const struct sock *sk)
{
	return refcount_read(&sk->sk_wmem_alloc);
}
WEFT_EXPORT(sk_wmem_alloc);

int weft_helper_sk_sndbuf(const struct sock *sk)
{
	return READ_ONCE(sk->sk_sndbuf);
}
WEFT_EXPORT(sk_sndbuf);

void weft_helper_sk_lock_sndbuf(struct sock *sk, int bytes)
{
	WRITE_ONCE(sk->sk_sndbuf, bytes);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
}
WEFT_EXPORT(sk_lock_sndbuf);

void weft_helper_sk_lock_rcvbuf(struct sock *sk, int bytes)
{
	WRITE_ONCE(sk->sk_rcvbuf, bytes);
	sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
}
WEFT_EXPORT(sk_lock_rcvbuf);

void weft_helper_socket_set_nospace(struct socket *sock)
{
	set_bit(SOCK_NOSPACE, &sock->flags);
}
WEFT_EXPORT(socket_set_nospace);

struct socket *weft_helper_sk_socket(const struct sock *sk)
{
	return sk->sk_socket;
}
WEFT_EXPORT(sk_socket);

void weft_helper_sock_rps_record_flow(const struct sock *sk)
{
	sock_rps_record_flow(sk);
}
WEFT_EXPORT(sock_rps_record_flow);

/* Addresses. */

unsigned int weft_helper_sk_family(const struct sock *sk)
{
	return sk->sk_family;
}
WEFT_EXPORT(sk_family);

__be32 weft_helper_inet_saddr(const struct sock *sk)
{
	return READ_ONCE(inet_sk(sk)->inet_saddr);
}
WEFT_EXPORT(inet_saddr);

__be32 weft_helper_inet_daddr(const struct sock *sk)
{
	return READ_ONCE(inet_sk(sk)->inet_daddr);
}
WEFT_EXPORT(inet_daddr);

u16 weft_helper_inet_sport(const struct sock *sk)
{
	return ntohs(READ_ONCE(inet_sk(sk)->inet_sport));
}
WEFT_EXPORT(inet_sport);

u16 weft_helper_inet_dport(const struct sock *sk)
{
	return ntohs(READ_ONCE(inet_sk(sk)->inet_dport));
}
WEFT_EXPORT(inet_dport);

struct in6_addr weft_helper_sk_v6_rcv_saddr(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return sk->sk_v6_rcv_saddr;
#else
	return (struct in6_addr) {};
#endif
}
WEFT_EXPORT(sk_v6_rcv_saddr);

struct in6_addr weft_helper_sk_v6_daddr(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return sk->sk_v6_daddr;
#else
	return (struct in6_addr) {};
#endif
}
WEFT_EXPORT(sk_v6_daddr);

int weft_helper_sk_bound_dev_if(const struct sock *sk)
{
	return READ_ONCE(sk->sk_bound_dev_if);
}
WEFT_EXPORT(sk_bound_dev_if);

int weft_helper_sk_mcast_oif(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(inet6_sk(sk)->mcast_oif);
#else
	return 0;
#endif
}
WEFT_EXPORT(sk_mcast_oif);

/* Callbacks. */

void weft_helper_sk_callback_read_lock_bh(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
}
WEFT_EXPORT(sk_callback_read_lock_bh);

void weft_helper_sk_callback_read_unlock_bh(struct sock *sk)
{
	read_unlock_bh(&sk->sk_callback_lock);
}
WEFT_EXPORT(sk_callback_read_unlock_bh);

void weft_helper_sk_callback_write_lock_bh(struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
}
WEFT_EXPORT(sk_callback_write_lock_bh);

void weft_helper_sk_callback_write_unlock_bh(struct sock *sk)
{
	write_unlock_bh(&sk->sk_callback_lock);
}
WEFT_EXPORT(sk_callback_write_unlock_bh);

unsigned long weft_helper_sk_user_data(const struct sock *sk)
{
	return (unsigned long)READ_ONCE(sk->sk_user_data);
}
WEFT_EXPORT(sk_user_data);

void weft_helper_sk_set_user_data_nocopy(struct sock *sk, void *data)
{
	__rcu_assign_sk_user_data_with_flags(sk, data, SK_USER_DATA_NOCOPY);
}
WEFT_EXPORT(sk_set_user_data_nocopy);

void weft_helper_sk_clear_user_data(struct sock *sk)
{
	rcu_assign_sk_user_data(sk, NULL);
}
WEFT_EXPORT(sk_clear_user_data);

void (*weft_helper_sk_data_ready(const struct sock *sk))(struct sock *sk)
{
	return READ_ONCE(sk->sk_data_ready);
}
WEFT_EXPORT(sk_data_ready);

void (*weft_helper_sk_write_space(const struct sock *sk))(struct sock *sk)
{
	return READ_ONCE(sk->sk_write_space);
}
WEFT_EXPORT(sk_write_space);

void (*weft_helper_sk_state_change(const struct sock *sk))(struct sock *sk)
{
	return sk->sk_state_change;
}
WEFT_EXPORT(sk_state_change);

void weft_helper_sk_set_data_ready(struct sock *sk, void (*callback)(struct sock *sk))
{
	WRITE_ONCE(sk->sk_data_ready, callback);
}
WEFT_EXPORT(sk_set_data_ready);

void weft_helper_sk_set_write_space(struct sock *sk, void (*callback)(struct sock *sk))
{
	WRITE_ONCE(sk->sk_write_space, callback);
}
WEFT_EXPORT(sk_set_write_space);

void weft_helper_sk_set_state_change(struct sock *sk, void (*callback)(struct sock *sk))
{
	sk->sk_state_change = callback;
}
WEFT_EXPORT(sk_set_state_change);
