package server

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// With cluster-enabled a server is a cluster of one node, which owns all slots: clients that speak to clusters only run against it.
// Nothing is ever elsewhere, so no client is redirected. What a cluster refuses is refused in Redis's words, so that a program which
// works here works on a larger cluster too: requests for keys of several slots, and databases but 0.

// slots is how many slots a cluster has.
const slots = 16384

// The refusals of a cluster.
const (
	errCrossSlot         command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	errClusterSelect     command.Error = "ERR SELECT is not allowed in cluster mode"
	errClusterMove       command.Error = "ERR MOVE is not allowed in cluster mode"
	errClusterSwap       command.Error = "ERR SWAPDB is not allowed in cluster mode"
	errClusterCopy       command.Error = "ERR Copying to another database is not allowed in cluster mode"
	errClusterSortBy     command.Error = "ERR BY option of SORT denied in Cluster mode."
	errClusterSortGet    command.Error = "ERR GET option of SORT denied in Cluster mode."
	errFlagNoCluster     command.Error = "ERR Can not run script on cluster, 'no-cluster' flag is set."
	errScriptNotLocalKey               = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot                 = "ERR Script attempted to access keys that do not hash to the same slot"
)

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

// slotOf is the slot of a key: that of its hash tag, which is what the first braces have between them, if that is not empty.
func slotOf[K []byte | string](key K) int {
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
	return int(crc % slots)
}

// sameSlot reports whether all keys, and all shard channels, of a request have one slot.
func sameSlot(cmd *command.Command, args [][]byte) bool {
	if len(cmd.Keys) == 0 && len(cmd.Channels) == 0 || len(args) <= 2 {
		return true
	}
	slot := -1
	same := func(key string) bool {
		at := slotOf(key)
		if slot < 0 {
			slot = at
		}
		return at == slot
	}
	for _, key := range cmd.AppendKeys(nil, args) {
		if !same(key) {
			return false
		}
	}
	for i := range cmd.Channels {
		for _, channel := range cmd.Channels[i].Append(nil, args) {
			if !same(channel) {
				return false
			}
		}
	}
	return true
}

// sameSlotQueued is sameSlot for the requests of an EXEC together.
func sameSlotQueued(q *queue) bool {
	for _, key := range q.keys {
		if slotOf(key) != slotOf(q.keys[0]) {
			return false
		}
	}
	return true
}

// refusesInCluster says why a server in cluster mode does not execute a request: its keys have several slots, or it is about several
// databases, or about keys that it does not name.
func (s *Session) refusesInCluster(cmd *command.Command, args [][]byte) error {
	switch cmd.Name {
	case "exec":
		if s.queue != nil && !sameSlotQueued(s.queue) {
			return errCrossSlot
		}
	case "select":
		if n, ok := number.ParseInt(args[1]); ok && n != 0 {
			return errClusterSelect
		}
	case "move":
		return errClusterMove
	case "swapdb":
		return errClusterSwap
	case "copy":
		if value := wordAfter(args[3:], "db"); value != nil && string(value) != "0" {
			return errClusterCopy
		}
	case "sort", "sort_ro":
		if bytes.IndexByte(wordAfter(args[2:], "by"), '*') >= 0 {
			return errClusterSortBy
		}
		if wordAfter(args[2:], "get") != nil {
			return errClusterSortGet
		}
	}
	if !sameSlot(cmd, args) {
		return errCrossSlot
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

// nodeID is an id of the store as that of a node or a shard, which is the same whenever the store is opened.
func (v *Server) nodeID(of string) string {
	sum := sha1.Sum([]byte(of + " " + v.store.Stats().StoreID))
	return hex.EncodeToString(sum[:])
}

// endpoint is where clients find the node: what the settings announce, or else where this client has found it.
type endpoint struct {
	ip, hostname  string
	port, busPort int
}

func (s *Session) endpoint() endpoint {
	setting := s.server.config.Get
	number := func(name string) int {
		n, _ := strconv.Atoi(setting(name)) // checked
		return n
	}
	e := endpoint{ip: setting("cluster-announce-ip"), hostname: setting("cluster-announce-hostname")}
	host, port, err := net.SplitHostPort(s.client.local)
	if err != nil { // a Unix socket
		_, port = s.server.listenAddress()
		host = ""
	}
	if e.ip == "" {
		e.ip = host
	}
	e.port, _ = strconv.Atoi(port)
	if n := number("cluster-announce-port"); n > 0 {
		e.port = n
	}
	if e.busPort = number("cluster-announce-bus-port"); e.busPort == 0 {
		e.busPort = e.port + 10000 // nothing listens there
	}
	return e
}

// preferred is how the endpoint is named to clients, as cluster-preferred-endpoint-type says; ok is false if they shall use the
// address that they know.
func (e *endpoint) preferred(kind string) (name string, ok bool) {
	switch {
	case kind == "unknown-endpoint":
		return "", false
	case kind == "hostname" && e.hostname != "":
		return e.hostname, true
	case kind == "hostname":
		return "?", true
	}
	return e.ip, true
}

// refusesCall is refusesInCluster for a call of a script.
func (s *Session) refusesCall(cmd *command.Command, args [][]byte) string {
	if !s.server.options.Cluster {
		return ""
	}
	err := s.refusesInCluster(cmd, args)
	switch {
	case err == errCrossSlot:
		return errScriptNotLocalKey
	case err != nil:
		return errorText(err)
	}
	return ""
}

// leavesSlot refuses a command of a script whose keys are of another slot than those before them. The keys of one command are of one slot.
func (r *scriptRun) leavesSlot(cmd *command.Command, args [][]byte) (refusal string) {
	for _, key := range cmd.AppendKeys(nil, args) {
		slot := slotOf(key)
		if r.slot >= 0 && slot != r.slot {
			return errScriptCrossSlot
		}
		r.slot = slot
	}
	return ""
}

// modeName is the mode as INFO and HELLO name it.
func (v *Server) modeName() string {
	if v.options.Cluster {
		return "cluster"
	}
	return "standalone"
}
