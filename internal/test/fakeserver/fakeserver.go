// Package fakeserver is a server whose replies a test chooses, for tests of clients.
package fakeserver

import (
	"net"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// A Server answers each command with the reply of replies, or hangs up for "". It notes the commands.
type Server struct {
	net.Listener
	replies func(command string) string
	asked   chan string
}

func New(t *testing.T, replies func(command string) string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{l, replies, make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return s
}

func (s *Server) serve(conn net.Conn) {
	in := resp.NewDecoder(conn)
	for {
		r, err := in.Read()
		if err != nil {
			return
		}
		var words []string
		for _, item := range r.Items {
			words = append(words, string(item.Text))
		}
		command := strings.Join(words, " ")
		s.asked <- command
		reply := s.replies(command)
		if reply == "" {
			return
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// Asked is what the server has been asked so far.
func (s *Server) Asked() (commands []string) {
	for len(s.asked) > 0 {
		commands = append(commands, <-s.asked)
	}
	return commands
}
