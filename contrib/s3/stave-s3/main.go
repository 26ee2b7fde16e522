// Stave-s3 is stave with a driver for archives in S3: wherever stave takes the directory of an archive, it takes
// s3://BUCKET/PREFIX as well.
package main

import (
	"os"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/contrib/s3"
)

func main() {
	program := cli.Program{Archives: map[string]func(url string) (archive.Store, error){
		"s3": func(url string) (archive.Store, error) { return s3.Open(url) },
	}}
	os.Exit(program.Run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
