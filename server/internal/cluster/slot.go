package cluster

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// Slots is how many slots a cluster has.
const Slots = group.SlotCount

// crcTable is that of CRC-16/XMODEM, whose polynomial is 0x1021.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// SlotOf is the slot of a key: that of its hash tag, which is what the first braces have between them, if that is not
// empty.
func SlotOf[K []byte | string](key K) int {
	tag := []byte(key)
	if open := bytes.IndexByte(tag, '{'); open >= 0 {
		if n := bytes.IndexByte(tag[open+1:], '}'); n > 0 {
			tag = tag[open+1:][:n]
		}
	}
	crc := uint16(0)
	for _, b := range tag {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return int(crc % Slots)
}

// LooksAtKeys reports whether a command of CLUSTER shows what keys there are, which Redis has not marked as a read.
func LooksAtKeys(cmd *command.Command) bool {
	return cmd.Name == "cluster|countkeysinslot" || cmd.Name == "cluster|getkeysinslot"
}

// names are the keys, and the shard channels, of a request.
func names(cmd *command.Command, args [][]byte) []string {
	if len(cmd.Keys) == 0 && len(cmd.Channels) == 0 {
		return nil
	}
	names := cmd.AppendKeys(nil, args)
	for i := range cmd.Channels {
		names = cmd.Channels[i].Append(names, args)
	}
	return names
}

// SlotOfRequest is the slot of the keys, and of the shard channels, of a request that Refuses does not refuse; ok is false if it names
// none.
func SlotOfRequest(cmd *command.Command, args [][]byte) (slot int, ok bool) {
	if len(cmd.Keys) > 0 && cmd.Keys[0].Keyword == "" && cmd.StartsWithKey() && len(args) > 1 { // as most have it
		return SlotOf(args[1]), true
	}
	if names := names(cmd, args); len(names) > 0 {
		return SlotOf(names[0]), true
	}
	return 0, false
}

// sameSlot reports whether all keys, and all shard channels, of a request have one slot.
func sameSlot(cmd *command.Command, args [][]byte) bool {
	if len(args) <= 2 {
		return true
	}
	names := names(cmd, args)
	if len(names) == 0 {
		return true
	}
	slot := SlotOf(names[0])
	return !slices.ContainsFunc(names[1:], func(name string) bool { return SlotOf(name) != slot })
}

// The refusals of a cluster.
const (
	ErrCrossSlot command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	ErrNotServed command.Error = "CLUSTERDOWN Hash slot not served"
	errSelect    command.Error = "ERR SELECT is not allowed in cluster mode"
	errMove      command.Error = "ERR MOVE is not allowed in cluster mode"
	errSwap      command.Error = "ERR SWAPDB is not allowed in cluster mode"
	errCopy      command.Error = "ERR Copying to another database is not allowed in cluster mode"
	errSortBy    command.Error = "ERR BY option of SORT denied in Cluster mode."
	errSortGet   command.Error = "ERR GET option of SORT denied in Cluster mode."
)

// Refuses says why a cluster does not execute a request: its keys have several slots, or it is about several databases,
// or about keys that it does not name.
func Refuses(cmd *command.Command, args [][]byte) error {
	switch cmd.Name {
	case "select":
		if n, ok := number.ParseInt(args[1]); ok && n != 0 {
			return errSelect
		}
	case "move":
		return errMove
	case "swapdb":
		return errSwap
	case "copy":
		if value := wordAfter(args[3:], "db"); value != nil && string(value) != "0" {
			return errCopy
		}
	case "sort", "sort_ro":
		if bytes.IndexByte(wordAfter(args[2:], "by"), '*') >= 0 {
			return errSortBy
		}
		if wordAfter(args[2:], "get") != nil {
			return errSortGet
		}
	}
	if !sameSlot(cmd, args) {
		return ErrCrossSlot
	}
	return nil
}

// wordAfter is the argument that follows a word, nil without one.
func wordAfter(args [][]byte, word string) []byte {
	for i := 0; i+1 < len(args); i++ {
		if strings.EqualFold(string(args[i]), word) {
			return args[i+1]
		}
	}
	return nil
}
