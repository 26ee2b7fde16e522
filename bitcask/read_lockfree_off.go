//go:build !(amd64 || arm64) || race

package bitcask

const lockFree = false
