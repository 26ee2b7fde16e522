package server_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// remoteListener is one that other machines can reach, and whose connections come from one of them.
type remoteListener struct{ publicListener }

type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1234}
}

func (l remoteListener) Accept() (net.Conn, error) {
	nc, err := l.publicListener.Accept()
	return remoteConn{nc}, err
}

// serveBoth serves a client of this machine and one of another, by the same server.
func serveBoth(t *testing.T, o *server.Options) (local, remote func() *testClient) {
	t.Helper()
	v := newServer(t, openStore(t), o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	var addresses []string
	for _, wrap := range []func(net.Listener) net.Listener{
		func(ln net.Listener) net.Listener { return ln },
		func(ln net.Listener) net.Listener { return remoteListener{publicListener{ln}} },
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, ln.Addr().String())
		go func() { done <- v.Serve(ctx, wrap(ln)) }()
	}
	t.Cleanup(func() {
		stop()
		for range addresses {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	connect := func(address string) *testClient {
		c := dial(t, address)
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a shorter reply than expected ends the test
			t.Fatal(err)
		}
		return c
	}
	return func() *testClient { return connect(addresses[0]) }, func() *testClient { return connect(addresses[1]) }
}

// TestDebugOfOtherMachines: enable-debug-command local allows DEBUG to clients of this machine, yes to all.
func TestDebugOfOtherMachines(t *testing.T) {
	for _, tt := range []struct {
		setting       string
		local, remote bool
	}{{"no", false, false}, {"local", true, false}, {"yes", true, true}} {
		config := server.NewConfig()
		if err := config.Set("enable-debug-command", tt.setting); err != nil {
			t.Fatal(err)
		}
		local, remote := serveBoth(t, &server.Options{Config: config, RequirePass: "secret", AllowPlainText: true})
		ask := func(who string, c *testClient, allowed bool) {
			c.send("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n")
			c.expect("+OK\r\n")
			c.send("CONFIG GET enable-debug-command\r\n")
			c.expect(fmt.Sprintf("*2\r\n$20\r\nenable-debug-command\r\n$%d\r\n%s\r\n", len(tt.setting), tt.setting))
			c.send("DEBUG JMAP\r\n")
			if allowed {
				c.expect("+OK\r\n")
				return
			}
			c.expect("-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a " +
				"local connection, otherwise you need to set this option in the configuration file, and then restart the server.\r\n")
		}
		ask("local", local(), tt.local)
		ask("remote", remote(), tt.remote)
	}
}

// TestPasswordIsTakenAway: once the default user needs no password, other machines are turned away, until it has one
// again.
func TestPasswordIsTakenAway(t *testing.T) {
	local, remote := serveBoth(t, &server.Options{RequirePass: "secret", AllowPlainText: true})
	exchange := func(c *testClient, request, reply string) {
		c.send(request)
		c.expect(reply)
		_ = c.Close()
	}
	operator := local()
	operator.send("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n")
	operator.expect("+OK\r\n")
	exchange(remote(), "*1\r\n$4\r\nPING\r\n", "-NOAUTH Authentication required.\r\n")
	operator.send("CONFIG SET requirepass ''\r\n")
	operator.expect("+OK\r\n")
	exchange(remote(), "*1\r\n$4\r\nPING\r\n", "-DENIED connections from other machines are accepted only while the default user needs a password: "+
		"CONFIG SET requirepass, or ACL SETUSER default\r\n")
	exchange(local(), "*1\r\n$4\r\nPING\r\n", "+PONG\r\n")
	operator.send("CONFIG SET requirepass again\r\n")
	operator.expect("+OK\r\n")
	exchange(remote(), "*2\r\n$4\r\nAUTH\r\n$5\r\nagain\r\n", "+OK\r\n")
}
