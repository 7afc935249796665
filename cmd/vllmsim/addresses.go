package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// addresses are those to listen on.
func (o *options) addresses() ([]string, error) {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, fmt.Errorf("checking --listen: %w", err)
	}
	first, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("checking --listen: port %q: want 0 to 65535", port)
	}
	if first != 0 && int(first)+o.count-1 > 65535 {
		return nil, errors.New("checking --count: ports end at 65535")
	}
	list := make([]string, o.count)
	for i := range list {
		n := int(first)
		if n != 0 {
			n += i
		}
		list[i] = net.JoinHostPort(host, strconv.Itoa(n))
	}
	return list, nil
}

// reachable is a URL of a listener's address: one that is open to all is
// reached by the loopback.
func reachable(address net.Addr) string {
	a, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return "http://" + address.String()
	}
	ip := a.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "http://" + netip.AddrPortFrom(ip, a.Port()).String()
}
