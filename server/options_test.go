package server_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestOptionsAreValidated: whatever makes no sense is refused by New, and so by NewSession and Serve, with the name of
// the field.
func TestOptionsAreValidated(t *testing.T) {
	store := openStore(t)
	for field, o := range map[string]server.Options{
		"Transport":      {Transport: "threads"},
		"Databases":      {Databases: -1},
		"MaxClients":     {MaxClients: -1},
		"MaxArgument":    {MaxArgument: -1},
		"MaxReply":       {MaxReply: -1},
		"MaxQueue":       {MaxQueue: -1},
		"ClientMemory":   {ClientMemory: -1},
		"IdleTimeout":    {IdleTimeout: -time.Second},
		"PartialTimeout": {PartialTimeout: -1},
		"WriteTimeout":   {WriteTimeout: -1},
		"ShutdownGrace":  {ShutdownGrace: -1},
		"Settings":       {Settings: map[string]string{"Dir": "/data"}},
		"Version":        {Version: "1\r\nredis_version:6"},
	} {
		if _, err := server.New(store, &o); err == nil || !strings.Contains(err.Error(), "Options."+field+" ") {
			t.Errorf("%s: New says %v", field, err)
		}
		if _, err := server.NewSession(store, &o); err == nil {
			t.Errorf("%s: NewSession takes it", field)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(context.Background(), ln, store, &server.Options{MaxClients: -1}); err == nil || !strings.Contains(err.Error(), "MaxClients") {
		t.Errorf("Serve says %v", err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("Serve has refused and left the listener open")
	}
}

func TestMaxArgument(t *testing.T) {
	s := newSession(t, openStore(t), &server.Options{MaxArgument: 10})
	if got := ask(s, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n"); got != "+OK\r\n" {
		t.Errorf("an argument of 10 bytes: %q", got)
	}
	if got := ask(s, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$11\r\n"); got != "-ERR Protocol error: invalid bulk length\r\n" || !s.Closed() {
		t.Errorf("an argument of 11 bytes: %q, closed %t", got, s.Closed())
	}
}
