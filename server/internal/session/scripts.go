package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/scripting"
)

// scripted is what a session does for its scripts.
type scripted struct {
	session *Session
	lent    *scripting.Session // nil before the first script
}

// LendToScripts returns what scripts of the session need of it.
func (s *Session) LendToScripts() *scripting.Session {
	if s.script.lent == nil {
		s.script.lent = &scripting.Session{
			Shared: s.scripts, Client: &s.client, Host: &s.host, Out: &s.out, Unsynced: &s.unit.unsynced, Unsent: &s.mail.unsent, Attempt: &s.part.attempt,
			Lent: scripting.Lent{
				Where: s.script.where, Begin: s.script.begin, Transact: s.unit.transact, Execute: s.unit.runOne, MaxReply: s.room.most,
				MayRunHere: s.script.mayRun, NoRoom: s.room.errShort, Long: s.room.pass,
			},
		}
	}
	return s.script.lent
}

// where says where the request is executed that runs a script.
func (p *scripted) where() scripting.Where {
	s := p.session
	return scripting.Where{InLoop: s.inLoop, InBatch: s.part.inAttempt, AllLocked: s.part.allLocked}
}

// begin begins the transaction of a script.
func (p *scripted) begin(write bool, keys []string, interrupt func() error) (*db.Tx, error) {
	s := p.session
	if !s.inLoop {
		return s.unit.begin(write, keys)
	}
	tx, err := s.unit.tryBegin(write, keys)
	if err == nil {
		serverside.DB.SetInterrupt(tx, interrupt)
	}
	return tx, err
}

// pass lets others in line for the memory of a reply go first: they do not wait for the end of a script that lasts.
func (p *replyRoom) pass() {
	s := p.session
	if p.place != nil {
		s.server.Replies.Pass(p.place)
	}
}
