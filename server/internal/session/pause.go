package session

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// postpone makes the session wait before a command that the pause concerns, and reports whether it did. invalid is set
// for a request that is refused anyway. What arrived before it is executed first. An embedded session is never paused:
// it has nobody who would wake it.
func (s *Session) postpone(cmd *command.Command, args [][]byte, invalid error) bool {
	if invalid != nil || !s.client.IsDriven() {
		return false
	}
	until, all := s.server.Pause.State()
	if until.IsZero() || !all && !s.mayReplicate(cmd, args) {
		return false
	}
	mark := s.parser.Mark()
	if !s.runBatch() || s.closed {
		return true // the parser has gone back to a request before this one
	}
	s.parser.Rewind(mark)
	s.block(&blocked{Wait: clients.NewPostponement(until), command: cmd})
	if until, _ := s.server.Pause.State(); until.IsZero() {
		s.client.EndWait(clients.TimedOut) // EndPause may have looked for those who wait before this one did
	}
	return true
}

// mayReplicate reports whether a command is one that a pause of writes concerns: what a replica would get
// of it. Messages are among them, and scripts whose flags do not exclude it.
func (s *Session) mayReplicate(cmd *command.Command, args [][]byte) bool {
	switch cmd.Name {
	case "exec":
		return s.queue != nil && s.queue.replicates
	case "publish", "spublish", "pfcount":
		return true
	case "eval", "evalsha", "fcall":
		return !s.LendToScripts().DeclaresNoWrites(cmd, args)
	}
	return cmd.IsWrite()
}
