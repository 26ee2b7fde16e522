package replication_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// relay passes bytes on between a replica and its master, slowly, and cuts each connection after some of them.
type relay struct {
	net.Listener
	to   string
	cuts atomic.Int64
	next func() int // how many bytes pass before the next cut; 0: no end

	mu    sync.Mutex
	conns []net.Conn
	work  sync.WaitGroup
}

func startRelay(t *testing.T, to string, next func() int) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln, to: to, next: next}
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		r.cutAll()
		r.work.Wait()
	})
	return r
}

// cutAll cuts all connections that there are.
func (r *relay) cutAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}

func (r *relay) accept() {
	for {
		from, err := r.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, from, to)
		r.mu.Unlock()
		pass := func(dst, src net.Conn, most int) {
			if most > 0 {
				_, _ = io.CopyN(dst, src, int64(most))
				r.cuts.Add(1)
			} else {
				_, _ = io.Copy(dst, src)
			}
			_ = dst.Close()
			_ = src.Close()
		}
		most := r.next()
		r.work.Go(func() { pass(to, from, 0) })
		r.work.Go(func() { pass(from, to, most) })
	}
}
