package listeners

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/socket"
)

// Place says where a server listens, in the words of the settings.
type Place struct {
	Bind, Port, TLSPort string
	HostPort            string // instead of Bind and Port for what is not encrypted; port 0 is one that the system chooses
	Encrypts            bool   // there is a certificate; without one TLSPort is not opened
}

// Addresses are all that the place means, none twice. A port 0 means none.
func (p *Place) Addresses() []socket.Address {
	list := socket.Addresses(p.Bind, p.Port, false)
	if p.HostPort != "" {
		list = socket.Of(p.HostPort)
	}
	if p.Encrypts {
		list = append(list, socket.Addresses(p.Bind, p.TLSPort, true)...)
	}
	return list
}

// Values are new values of the settings that say where a server listens, by name. One that is missing stays as it is.
type Values map[string]string

// Among finds those settings among others. at is the index of the last of them, which a refusal names, as in Redis;
// -1 says that there are none.
func Among(rows []*settings.Directive, values []string) (to Values, at int) {
	to, at = Values{}, -1
	for i, d := range rows {
		if IsSetting(d) {
			to[d.Name], at = values[i], i
		}
	}
	return to, at
}

// IsSetting reports whether a setting says where the server listens.
func IsSetting(d *settings.Directive) bool {
	return d.Name == "bind" || d.Name == "port" || d.Name == "tls-port"
}

// What Redis says when it cannot listen. The reason goes to the log: it names addresses, which are no client's business.
const (
	errBind          command.Error = "Failed to bind to specified addresses."
	errPort          command.Error = "Unable to listen on this port. Check server logs."
	errNoCertificate command.Error = "Unable to update TLS configuration. Check server logs."
)

// set takes new values. It returns the error that the client gets if the place cannot be had, which is about the last
// setting that differs, in the order of the list below; nil if none differs.
func (p *Place) set(values Values) (failure error) {
	for _, s := range []struct {
		name    string
		at      *string
		failure error
	}{{"tls-port", &p.TLSPort, errPort}, {"port", &p.Port, errPort}, {"bind", &p.Bind, errBind}} {
		if value, is := values[s.name]; is && value != *s.at {
			*s.at, failure = value, s.failure
		}
	}
	return failure
}
