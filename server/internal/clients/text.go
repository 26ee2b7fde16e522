package clients

import (
	"sync/atomic"

	"github.com/stavedb/stave/server/command"
)

// SetName gives the connection a name, or takes it away when the name is empty.
func (c *Client) SetName(name []byte) error { return SetText(&c.Name, name, "Client names") }

// maxClientText is how many bytes the name of a client may have, and those of its library and its version. CLIENT LIST
// shows them for each client, and ACL LOG and SLOWLOG keep them.
const maxClientText = 1 << 10

// CheckText checks a text that CLIENT LIST is to show. A refusal begins with what it is.
func CheckText(text []byte, what string) error {
	if len(text) > maxClientText {
		return command.Errorf("ERR %s cannot be longer than %d bytes.", what, maxClientText)
	}
	if !printable(text) {
		return command.Errorf("ERR %s cannot contain spaces, newlines or special characters.", what)
	}
	return nil
}

// SetText stores a text that CLIENT LIST is to show.
func SetText(to *atomic.Pointer[string], text []byte, what string) error {
	if err := CheckText(text, what); err != nil {
		return err
	}
	own := string(text)
	to.Store(&own)
	return nil
}

// printable reports whether text can stand in CLIENT LIST, where spaces separate fields and line
// ends clients.
func printable(text []byte) bool {
	for _, b := range text {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}
