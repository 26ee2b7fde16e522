package server

import "github.com/stavedb/stave/db"

// NewSession returns a session of its own on store, with counters that no other session shares:
// what an embedded shell or a test needs. o may be nil.
func NewSession(store *db.Store, o *Options) (*Session, error) {
	v, err := New(store, o)
	if err != nil {
		return nil, err
	}
	return v.NewSession(), nil
}

// NewSession returns a new session of this server. It is in CLIENT LIST only while Serve drives it.
func (v *Server) NewSession() *Session { return newSession(v.state, &v.scripts) }
