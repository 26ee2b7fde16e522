package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/scripting"
)

// LendToScripts returns what scripts of the session need of it.
func (s *Session) LendToScripts() *scripting.Session {
	if s.lent == nil {
		s.lent = &scripting.Session{
			Shared: s.scripts, Client: &s.client, Host: &s.host, Out: &s.out, Unsynced: &s.unsynced, Unsent: &s.unsent, Attempt: &s.attempt,
			Lent: scripting.Lent{
				Where: s.where, Begin: s.beginScript, Transact: s.transact, Execute: s.runInTx, MaxReply: s.maxReply,
				MayRunHere: s.mayRunInScript, NoRoom: s.errShort, Long: s.passRoom,
			},
		}
	}
	return s.lent
}

// where says where the request is executed that runs a script.
func (s *Session) where() scripting.Where {
	return scripting.Where{InLoop: s.inLoop, InBatch: s.inAttempt, AllLocked: s.allLocked}
}

// beginScript begins the transaction of a script.
func (s *Session) beginScript(write bool, keys []string, interrupt func() error) (*db.Tx, error) {
	if !s.inLoop {
		return s.begin(write, keys)
	}
	tx, err := s.tryBegin(write, keys)
	if err == nil {
		serverside.DB.SetInterrupt(tx, interrupt)
	}
	return tx, err
}

// passRoom lets others in line for the memory of a reply go first: they do not wait for the end of a script that lasts.
func (s *Session) passRoom() {
	if s.room != nil {
		s.server.Replies.Pass(s.room)
	}
}
