package remote

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ParseURL reads redis://[user[:password]@]host[:port][/db], rediss:// for TLS, or unix:///path. The database is -1 if
// it names none; the password is the one given if it has none: one in a URL can be seen by every user of the machine.
// Without a port it is 6379, Redis's, also for a Stave. TLS is verified by the system's certificates.
func ParseURL(text, password string) (*Conn, int, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return nil, 0, fmt.Errorf("%q is no URL of a Redis: redis://HOST:PORT/DB, rediss:// with TLS, or unix:///PATH", text)
	}
	r := &Conn{Password: password}
	if u.User != nil {
		r.User = u.User.Username()
		if password, set := u.User.Password(); set {
			r.Password = password
		}
	}
	if u.Scheme == "unix" {
		r.Addr = u.Path
		return r, -1, nil
	}
	r.Addr = net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "6379"))
	if u.Scheme == "rediss" {
		if r.TLS, err = (TLSFiles{}).Config(r.Addr); err != nil {
			return nil, 0, err
		}
	}
	path := strings.Trim(u.Path, "/")
	if path == "" {
		return r, -1, nil
	}
	database, err := strconv.Atoi(path)
	if err != nil || database < 0 {
		return nil, 0, fmt.Errorf("%q: the path of a Redis's URL is the number of a database", text)
	}
	return r, database, nil
}
