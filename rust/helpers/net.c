// SPDX-License-Identifier: GPL-2.0
/* Network namespaces and addresses. */
#include <linux/ipv6.h>
#include <linux/mutex.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

/*
 * A namespace that is being set up can fail to be, and is freed then whatever refers to it. When nothing can fail any
 * more it is put on the list of all namespaces, and keeps the pointer to the next one for ever.
 */
bool weft_helper_maybe_get_net(struct net *net)
{
	return READ_ONCE(net->list.next) && maybe_get_net(net);
}
WEFT_EXPORT(maybe_get_net);

void weft_helper_get_net(struct net *net)
{
	get_net(net);
}
WEFT_EXPORT(get_net);

void weft_helper_put_net(struct net *net)
{
	put_net(net);
}
WEFT_EXPORT(put_net);

u64 weft_helper_net_cookie(const struct net *net)
{
	return net->net_cookie;
}
WEFT_EXPORT(net_cookie);

u32 weft_helper_net_inum(const struct net *net)
{
	return net->ns.inum;
}
WEFT_EXPORT(net_inum);

const struct net_generic *weft_helper_net_gen(const struct net *net)
{
	return rcu_dereference(net->gen);
}
WEFT_EXPORT(net_gen);

/* Guards the list of namespace registrations in rust/weft/net/ns/registry.rs. */
static DEFINE_MUTEX(weft_pernet_mutex);

struct mutex *weft_helper_pernet_mutex(void)
{
	return &weft_pernet_mutex;
}
WEFT_EXPORT(pernet_mutex);

void weft_helper_local_port_range(const struct net *net, int *low, int *high)
{
	inet_get_local_port_range(net, low, high);
}
WEFT_EXPORT(local_port_range);

bool weft_helper_ipv6_chk_addr(struct net *net, const struct in6_addr *addr, const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_IPV6)
	return ipv6_mod_enabled() && ipv6_chk_addr(net, addr, dev, 0);
#else
	return false;
#endif
}
WEFT_EXPORT(ipv6_chk_addr);

const unsigned int WEFT_RTN_LOCAL = RTN_LOCAL;

int weft_helper_ifindex_by_name(struct net *net, const char *name)
{
	struct net_device *dev;
	int index = 0;

	rcu_read_lock();
	dev = dev_get_by_name_rcu(net, name);
	if (dev)
		index = dev->ifindex;
	rcu_read_unlock();
	return index;
}
WEFT_EXPORT(ifindex_by_name);
