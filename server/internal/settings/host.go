package settings

import (
	"net/netip"
	"strings"
)

// isHost reports whether a word of bind can be an address or the name of a host; whether there is such a host is not
// asked. A name that ends in a number would be an address of IPv4.
func isHost(word string) bool {
	name := strings.TrimPrefix(word, "-")
	if _, err := netip.ParseAddr(name); err == nil || name == "*" || name == "::*" {
		return true
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	for _, label := range labels {
		if label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, isNoneOfAName) {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// isNoneOfAName reports whether a character is in no name of a host. Names in other scripts are left to the system.
func isNoneOfAName(c rune) bool {
	return c < 0x80 && !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
}
