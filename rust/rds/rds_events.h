/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events of RDS. Documentation/tracing.rst says what each one and each field means.
 *
 * The macros that make an event exist in C only. Rust fills the structures below and calls the events through
 * rust/weft/trace/rds.rs. Fields that RDS of other kernels has traced before have the names they have there.
 */
#ifndef _WEFT_RDS_EVENT_TYPES
#define _WEFT_RDS_EVENT_TYPES

#include <linux/types.h>

/* Which path of which connection. */
struct rds_trace_place {
	u8 local[16];
	u8 peer[16];
	u32 netns;
	u8 transport;
	u8 tos;
	u8 path;
};

/* Which datagram; all 0 if the event is not about a single one. */
struct rds_trace_datagram {
	u64 sequence;
	u32 len;
	u16 local_port;
	u16 peer_port;
	u8 flags;
};

/* Why something was dropped. New reasons go to the end: the numbers are what programs see. */
#define RDS_DROP_REASONS					\
	RDS_DROP(OLD_SEQUENCE,		"old_sequence")		\
	RDS_DROP(NO_SOCKET,		"no_socket")		\
	RDS_DROP(DEAD_SOCKET,		"dead_socket")		\
	RDS_DROP(PING_DISABLED,		"ping_disabled")	\
	RDS_DROP(PING_UNANSWERABLE,	"ping_unanswerable")	\
	RDS_DROP(UNREAD,		"unread")		\
	RDS_DROP(BAD_CONTROL_BUFFER,	"bad_control_buffer")	\
	RDS_DROP(TRUNCATED,		"truncated")		\
	RDS_DROP(CUT_OFF,		"cut_off")		\
	RDS_DROP(UNDELIVERED,		"undelivered")		\
	RDS_DROP(CLOSED,		"closed")		\
	RDS_DROP(CANCELLED,		"cancelled")		\
	RDS_DROP(CONN_DESTROYED,	"conn_destroyed")	\
	RDS_DROP(SURPLUS_PATH,		"surplus_path")		\
	RDS_DROP(CONTROL_REFUSED,	"control_refused")	\
	RDS_DROP(BAD_HEADER,		"bad_header")		\
	RDS_DROP(NOT_DRAINED,		"not_drained")		\
	RDS_DROP(WRONG_WAY,		"wrong_way")		\
	RDS_DROP(NOT_ACCEPTED,		"not_accepted")		\
	RDS_DROP(CROWDED,		"crowded")		\
	RDS_DROP_LAST(PARKED,		"parked")

#define RDS_DROP(reason, name)		RDS_DROP_##reason,
#define RDS_DROP_LAST(reason, name)	RDS_DROP_##reason
enum rds_drop_reason { RDS_DROP_REASONS };
#undef RDS_DROP
#undef RDS_DROP_LAST

#endif /* _WEFT_RDS_EVENT_TYPES */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM rds

#if !defined(_WEFT_RDS_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _WEFT_RDS_EVENTS_H

#include <linux/tracepoint.h>

#undef RDS_DROP
#undef RDS_DROP_LAST
#define RDS_DROP(reason, name)		TRACE_DEFINE_ENUM(RDS_DROP_##reason);
#define RDS_DROP_LAST(reason, name)	TRACE_DEFINE_ENUM(RDS_DROP_##reason);
RDS_DROP_REASONS
#undef RDS_DROP
#undef RDS_DROP_LAST
#define RDS_DROP(reason, name)		{ RDS_DROP_##reason, name },
#define RDS_DROP_LAST(reason, name)	{ RDS_DROP_##reason, name }

/* The values of enum PathState in rust/proto/rds/state.rs. */
#define rds_show_state(state)			\
	__print_symbolic(state,			\
		{ 0, "down" },			\
		{ 1, "connecting" },		\
		{ 2, "disconnecting" },		\
		{ 3, "up" },			\
		{ 4, "resetting" },		\
		{ 5, "error" })

/* The values of enum Kind in rust/rds/transport.rs. */
#define rds_show_transport(transport)		\
	__print_symbolic(transport,		\
		{ 0, "infiniband" },		\
		{ 2, "tcp" },			\
		{ 3, "loopback" })

#define RDS_PLACE_FIELDS			\
		__array(__u8, laddr, 16)	\
		__array(__u8, faddr, 16)	\
		__field(__u32, netns_inum)	\
		__field(__u8, transport)	\
		__field(__u8, tos)		\
		__field(__u8, path)

#define RDS_PLACE_ASSIGN					\
		memcpy(__entry->laddr, place->local, 16);	\
		memcpy(__entry->faddr, place->peer, 16);	\
		__entry->netns_inum = place->netns;		\
		__entry->transport = place->transport;		\
		__entry->tos = place->tos;			\
		__entry->path = place->path

#define RDS_PLACE_FORMAT	"laddr=%pI6c faddr=%pI6c netns_inum=%u transport=%s tos=%u path=%u"

#define RDS_PLACE_VALUES						\
		__entry->laddr, __entry->faddr, __entry->netns_inum,	\
		rds_show_transport(__entry->transport), __entry->tos, __entry->path

#define RDS_DATAGRAM_FIELDS			\
		__field(__u8, flags)		\
		__field(__u16, lport)		\
		__field(__u16, fport)		\
		__field(__u32, len)		\
		__field(__u64, seq)

#define RDS_DATAGRAM_ASSIGN				\
		__entry->flags = datagram->flags;	\
		__entry->lport = datagram->local_port;	\
		__entry->fport = datagram->peer_port;	\
		__entry->len = datagram->len;		\
		__entry->seq = datagram->sequence

#define RDS_DATAGRAM_FORMAT	" lport=%u fport=%u seq=%llu len=%u flags=0x%x"

#define RDS_DATAGRAM_VALUES					\
		__entry->lport, __entry->fport, __entry->seq,	\
		__entry->len, __entry->flags

TRACE_EVENT(rds_state_change,

	TP_PROTO(const struct rds_trace_place *place, int last, int curr),

	TP_ARGS(place, last, curr),

	TP_STRUCT__entry(
		RDS_PLACE_FIELDS
		__field(int, last)
		__field(int, curr)
	),

	TP_fast_assign(
		RDS_PLACE_ASSIGN;
		__entry->last = last;
		__entry->curr = curr;
	),

	TP_printk(RDS_PLACE_FORMAT " last=%s curr=%s", RDS_PLACE_VALUES,
		  rds_show_state(__entry->last), rds_show_state(__entry->curr))
);

DECLARE_EVENT_CLASS(rds_datagram,

	TP_PROTO(const struct rds_trace_place *place, const struct rds_trace_datagram *datagram),

	TP_ARGS(place, datagram),

	TP_STRUCT__entry(
		RDS_PLACE_FIELDS
		RDS_DATAGRAM_FIELDS
	),

	TP_fast_assign(
		RDS_PLACE_ASSIGN;
		RDS_DATAGRAM_ASSIGN;
	),

	TP_printk(RDS_PLACE_FORMAT RDS_DATAGRAM_FORMAT, RDS_PLACE_VALUES, RDS_DATAGRAM_VALUES)
);

DEFINE_EVENT(rds_datagram, rds_send,
	TP_PROTO(const struct rds_trace_place *place, const struct rds_trace_datagram *datagram),
	TP_ARGS(place, datagram)
);

DEFINE_EVENT(rds_datagram, rds_receive,
	TP_PROTO(const struct rds_trace_place *place, const struct rds_trace_datagram *datagram),
	TP_ARGS(place, datagram)
);

DEFINE_EVENT(rds_datagram, rds_retransmit,
	TP_PROTO(const struct rds_trace_place *place, const struct rds_trace_datagram *datagram),
	TP_ARGS(place, datagram)
);

TRACE_EVENT(rds_drop,

	TP_PROTO(const struct rds_trace_place *place, const struct rds_trace_datagram *datagram,
		 enum rds_drop_reason reason),

	TP_ARGS(place, datagram, reason),

	TP_STRUCT__entry(
		RDS_PLACE_FIELDS
		RDS_DATAGRAM_FIELDS
		__field(int, reason)
	),

	TP_fast_assign(
		RDS_PLACE_ASSIGN;
		RDS_DATAGRAM_ASSIGN;
		__entry->reason = reason;
	),

	TP_printk(RDS_PLACE_FORMAT RDS_DATAGRAM_FORMAT " reason=%s", RDS_PLACE_VALUES, RDS_DATAGRAM_VALUES,
		  __print_symbolic(__entry->reason, RDS_DROP_REASONS))
);

DECLARE_EVENT_CLASS(rds_congestion,

	TP_PROTO(const struct rds_trace_place *place, unsigned int ports),

	TP_ARGS(place, ports),

	TP_STRUCT__entry(
		RDS_PLACE_FIELDS
		__field(__u32, ports)
	),

	TP_fast_assign(
		RDS_PLACE_ASSIGN;
		__entry->ports = ports;
	),

	TP_printk(RDS_PLACE_FORMAT " ports=%u", RDS_PLACE_VALUES, __entry->ports)
);

DEFINE_EVENT(rds_congestion, rds_cong_send,
	TP_PROTO(const struct rds_trace_place *place, unsigned int ports),
	TP_ARGS(place, ports)
);

DEFINE_EVENT(rds_congestion, rds_cong_receive,
	TP_PROTO(const struct rds_trace_place *place, unsigned int ports),
	TP_ARGS(place, ports)
);

#endif /* _WEFT_RDS_EVENTS_H */

/* This part must be outside the protection against being included twice. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rds_events
#include <trace/define_trace.h>
