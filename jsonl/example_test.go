package jsonl_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/jsonl"
)

// Keys go from one store to another as lines of JSON.
func Example() {
	store, err := db.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	text := `
# made by hand
{"key":"greeting","type":"string","value":"hi"}
{"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
{"key":"mistake","tipe":"string","value":""}
{"key":"\u006aobs","type":"list","value":["first",2]}
`
	result, err := jsonl.Import(context.Background(), store, strings.NewReader(text), jsonl.ImportOptions{
		BadLine: func(e *jsonl.LineError) error {
			message, _, _ := strings.Cut(e.Error(), " (")
			fmt.Println("skipped", message)
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Keys, "keys")

	if _, err := jsonl.Export(context.Background(), store, os.Stdout, jsonl.ExportOptions{Sort: true}); err != nil {
		log.Fatal(err)
	}

	// Output:
	// skipped line 5: unknown member "tipe"
	// 3 keys
	// {"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
	// {"key":"greeting","type":"string","value":"hi"}
	// {"key":"jobs","type":"list","value":["first","2"]}
}
