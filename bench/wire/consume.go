package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// consume is the job of a consumer group: each client is a consumer, which reads entries that nobody has read and
// acknowledges each of them once. redis-benchmark cannot do that, since it does not look at replies. A run is n entries,
// and a pipeline is so many XREADGROUPs, and when their replies are there, so many XACKs.
func (c *cell) consume(ctx context.Context, port string, n int) (one sample, err error) {
	consumers := make([]*consumer, c.clients)
	for i := range consumers {
		if consumers[i], err = c.newConsumer(ctx, port, fmt.Sprint("c", i)); err != nil {
			return one, err
		}
		defer func() { _ = consumers[i].conn.Close() }()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // redis-benchmark has one thread, too: the server has the other processor
	began, errs := time.Now(), make([]error, c.clients)
	var wg sync.WaitGroup
	for i, from := range consumers {
		share := (n + i) / c.clients // all shares together are n
		wg.Go(func() { errs[i] = from.consume(share) })
	}
	wg.Wait()
	took := time.Since(began)
	var latencies []time.Duration
	for i, from := range consumers {
		if errs[i] != nil {
			return one, errs[i]
		}
		latencies = append(latencies, from.latencies...)
	}
	slices.Sort(latencies)
	return sample{
		rate: float64(n) / took.Seconds(),
		p99:  float64(latencies[len(latencies)*99/100].Nanoseconds()) / 1e6,
	}, nil
}

// consumer is one client of consume.
type consumer struct {
	conn      net.Conn
	in        *bufio.Reader
	read      []byte // XREADGROUP
	pipeline  int
	latencies []time.Duration // of pipelines
}

func (c *cell) newConsumer(ctx context.Context, port, name string) (*consumer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	read := resp.AppendCommandStrings(nil, "XREADGROUP", "GROUP", "g", name, "COUNT", "1", "STREAMS", "mystream", ">")
	return &consumer{conn: conn, in: bufio.NewReaderSize(conn, 64<<10+c.size), read: read, pipeline: c.pipeline}, nil
}

// consume reads and acknowledges n entries.
func (c *consumer) consume(n int) error {
	var reads, acks []byte
	for ; n > 0; n -= c.pipeline {
		began := time.Now()
		many := min(n, c.pipeline)
		reads, acks = reads[:0], acks[:0]
		for range many {
			reads = append(reads, c.read...)
		}
		if _, err := c.conn.Write(reads); err != nil {
			return err
		}
		for range many {
			id, err := c.entry()
			if err != nil {
				return err
			}
			acks = resp.AppendCommandStrings(acks, "XACK", "mystream", "g", id)
		}
		if _, err := c.conn.Write(acks); err != nil {
			return err
		}
		for range many {
			if line, err := c.in.ReadSlice('\n'); err != nil || string(line) != ":1\r\n" {
				return errors.Join(fmt.Errorf("XACK was answered %q", line), err)
			}
		}
		c.latencies = append(c.latencies, time.Since(began))
	}
	return nil
}

// entry reads the reply of an XREADGROUP that has one entry of one field, and returns its id. It decodes
// nothing else, because the client takes its time from the server's processors.
func (c *consumer) entry() (id string, err error) {
	const lines, idAt = 13, 7
	for i := range lines {
		line, err := c.in.ReadSlice('\n')
		if err != nil || i == 0 && string(line) != "*1\r\n" {
			return "", errors.Join(fmt.Errorf("XREADGROUP was answered %q", line), err)
		}
		if i == idAt {
			id = strings.TrimSuffix(string(line), "\r\n")
		}
	}
	return id, nil
}
