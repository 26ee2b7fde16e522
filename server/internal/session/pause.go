package session

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// postpone makes the session wait before a command that a pause concerns. What arrived before it is executed first. If the
// pause is over by now, the command is decided upon anew.
func (s *Session) postpone(cmd *command.Command, args [][]byte) {
	until, _ := s.server.Pause.State()
	if until.IsZero() {
		s.execute(args)
		return
	}
	mark := s.parser.Mark()
	if !s.part.run() || s.closed {
		return // the parser has gone back to a request before this one
	}
	s.parser.Rewind(mark)
	s.wait.begin(&blocked{Wait: clients.NewPostponement(until), command: cmd})
	if until, _ := s.server.Pause.State(); until.IsZero() {
		s.client.EndWait(clients.TimedOut) // EndPause may have looked for those who wait before this one did
	}
}
