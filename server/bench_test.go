package server_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// BenchmarkSession runs pipelines of 16 commands through a session on a store with 100,000 keys, without a network. The
// time is for one command.
func BenchmarkSession(b *testing.B) {
	const keys, pipeline = 100_000, 16
	v := newServer(b, openStore(b), nil)
	s := v.NewSession()
	for i := range keys {
		ask(s, fmt.Sprintf("SET key:%012d xxx\r\n", i))
	}
	ask(s, "RPUSH list a\r\n")
	for _, bench := range []struct {
		name    string
		command func(i int) []string
	}{
		{"ping", func(int) []string { return []string{"PING"} }},
		{"get", func(i int) []string { return []string{"GET", fmt.Sprintf("key:%012d", i%keys)} }},
		{"set", func(i int) []string { return []string{"SET", fmt.Sprintf("key:%012d", i%keys), "xxx"} }},
		{"rpush", func(int) []string { return []string{"RPUSH", "list", "xxx"} }},
		{"zadd", func(i int) []string {
			return []string{"ZADD", "zset", fmt.Sprint(i % 1000), fmt.Sprintf("member:%d", i%5000)}
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			streams := make([][]byte, 1000)
			for i := range streams {
				for j := range pipeline {
					streams[i] = resp.AppendCommandStrings(streams[i], bench.command((i*7919+j*104729)%keys)...)
				}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s.Feed(streams[n%len(streams)])
				s.Flushed(len(s.Output()))
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*pipeline), "ns/command")
		})
	}
}
