package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestHostileClients: clients that send a byte at a time, end in the middle of a command or of a reply, reset their
// connections, or read nothing for a while, meet in the same rounds, and their descriptors are used again at once.
// Whoever behaves gets its replies.
func TestHostileClients(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport, Debug: true}, func(v *server.Server) { v.PauseAt(64 << 10) })
		big := strings.Repeat("x", 300<<10)
		setup := dial(t, address)
		setup.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n", len(big), big))
		setup.expect("+OK\r\n")
		_ = setup.Close()
		bigReply := fmt.Sprintf("$%d\r\n%s\r\n", len(big), big)

		done := time.Now().Add(2 * time.Second)
		if testing.Short() {
			done = time.Now().Add(500 * time.Millisecond)
		}
		hostile := map[string]func(c *net.TCPConn, n int) error{
			"a byte at a time": func(c *net.TCPConn, n int) error {
				text := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$5\r\nbytes\r\n$1\r\n%d\r\nSORT none\r\nECHO %d\r\n", n%10, n%10)
				for i := range len(text) {
					if _, err := io.WriteString(c, text[i:i+1]); err != nil {
						return err
					}
				}
				return expectText(c, fmt.Sprintf("+OK\r\n*0\r\n$1\r\n%d\r\n", n%10))
			},
			"a pipeline and half a command, then the end": func(c *net.TCPConn, n int) error {
				if _, err := io.WriteString(c, strings.Repeat("INCR n\r\nGET big\r\n", 3)+"*2\r\n$3\r\nGET\r\n$100\r\nx"); err != nil {
					return err
				}
				if n%2 == 0 {
					return c.CloseWrite()
				}
				return nil
			},
			"a reset in the middle of replies": func(c *net.TCPConn, n int) error {
				if _, err := io.WriteString(c, strings.Repeat("GET big\r\n", 20)); err != nil {
					return err
				}
				_, err := io.CopyN(io.Discard, c, int64(n%7)*100<<10)
				return err
			},
			"nothing at all": func(*net.TCPConn, int) error { return nil },
			"a wait that is left": func(c *net.TCPConn, n int) error {
				_, err := io.WriteString(c, fmt.Sprintf("BLPOP none%d 0\r\nINCR never\r\n", n%3))
				time.Sleep(time.Duration(n%3) * time.Millisecond)
				return err
			},
			"a slow command that is left": func(c *net.TCPConn, n int) error {
				_, err := io.WriteString(c, "DEBUG SLEEP 0.002\r\nINCR slept\r\n")
				time.Sleep(time.Duration(n%4) * time.Millisecond)
				return err
			},
			"a subscriber that is left": func(c *net.TCPConn, n int) error {
				_, err := io.WriteString(c, fmt.Sprintf("SUBSCRIBE c\r\nMONITOR\r\nPSUBSCRIBE c%d*\r\n", n%3))
				return err
			},
			"no reply is read for a while": func(c *net.TCPConn, n int) error {
				if _, err := io.WriteString(c, strings.Repeat("GET big\r\n", 8)); err != nil {
					return err
				}
				time.Sleep(5 * time.Millisecond)
				return expectText(c, strings.Repeat(bigReply, 8))
			},
		}
		var clients sync.WaitGroup
		for name, f := range hostile {
			clients.Go(func() {
				for n := 0; time.Now().Before(done); n++ {
					conn, err := net.Dial("tcp", address)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					c := conn.(*net.TCPConn)
					if err := f(c, n); err != nil {
						t.Errorf("%s, the %dth: %v", name, n, err)
					}
					if n%3 == 0 {
						_ = c.SetLinger(0) // the end is a reset
					}
					_ = c.Close()
					if n%32 == 31 { // those that wait for nothing do not get so far ahead that the server has too many clients
						if err := ping(address); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			})
		}
		for i := range 3 {
			clients.Go(func() {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				for n := 0; time.Now().Before(done); n++ {
					if _, err := fmt.Fprintf(conn, "SET mine%d %d\r\nPUBLISH c m\r\nGET mine%d\r\nMULTI\r\nINCR mine%d\r\nEXEC\r\n", i, n, i, i); err != nil {
						t.Error(err)
						return
					}
					want := fmt.Sprintf("+OK\r\n:?\r\n$%d\r\n%d\r\n+OK\r\n+QUEUED\r\n*1\r\n:%d\r\n", len(fmt.Sprint(n)), n, n+1)
					for line := range strings.SplitAfterSeq(want, "\n") {
						if line == "" {
							continue
						}
						got, err := in.ReadString('\n')
						if err != nil || got != line && line != ":?\r\n" {
							t.Errorf("client %d, round %d: got %q, %v, want %q", i, n, got, err, line)
							return
						}
					}
				}
			})
		}
		clients.Wait()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(v.Info("clients"), "connected_clients:0\r\n"); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("connections are left: %s", v.Info("clients"))
			}
		}
		if info := v.Info("stats"); !strings.Contains(info, "rejected_connections:0\r\n") {
			t.Error(info)
		}
		if info := v.Info("clients"); !strings.Contains(info, "blocked_clients:0\r\n") {
			t.Error(info)
		}
	})
}

// ping returns when the server has answered a new connection.
func ping(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	if _, err = io.WriteString(c, "PING\r\n"); err == nil {
		err = expectText(c, "+PONG\r\n")
	}
	return errors.Join(err, c.Close())
}

// expectText reads exactly what is expected.
func expectText(c net.Conn, want string) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if string(got[:n]) != want {
		return fmt.Errorf("got %.100q, %w, want %.100q", got[:n], err, want)
	}
	return nil
}
