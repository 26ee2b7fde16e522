package server_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

// BenchmarkKeysInSlot: CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT of a million keys.
func BenchmarkKeysInSlot(b *testing.B) {
	const keys, batch = 1_000_000, 1000
	store := openStore(b)
	for i := 0; i < keys; i += batch {
		pairs := make([]db.Pair, batch)
		for j := range pairs {
			pairs[j] = db.Pair{Key: "key:" + strconv.Itoa(i+j), Value: []byte("value")}
		}
		if err := store.Keyspace().Put(pairs...); err != nil {
			b.Fatal(err)
		}
	}
	s := newSession(b, store, &server.Options{Cluster: true})
	for _, request := range []string{"CLUSTER COUNTKEYSINSLOT 7\r\n", "CLUSTER GETKEYSINSLOT 7 10\r\n", "CLUSTER GETKEYSINSLOT 7 1000\r\n"} {
		b.Run(fmt.Sprint(request[:len(request)-2]), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := ask(s, request); got[0] == '-' {
					b.Fatal(got)
				}
			}
		})
	}
}
