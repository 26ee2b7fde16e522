//go:build !(amd64 || arm64) || race || stave_locked

package bitcask

const lockFree = false
