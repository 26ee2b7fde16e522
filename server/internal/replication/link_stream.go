package replication

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
)

// Command is one of a master's stream.
type Command struct {
	Database int // that the stream has selected
	Args     [][]byte
}

// word reports whether an argument is a word, in any case.
func word(arg []byte, lower string) bool { return bytes.EqualFold(arg, []byte(lower)) }

// stream applies what has arrived of the stream, in commits.
func (l *Link) stream(in []byte) error {
	l.parser.Feed(in)
	l.arrived += int64(len(in))
	l.raw = append(l.raw, in...)
	for {
		args, err := l.parser.Next()
		if err != nil {
			return errors.New("the master's stream: " + err.Error())
		}
		if args == nil {
			break
		}
		if err := l.take(args); err != nil {
			return err
		}
	}
	if l.inMulti {
		l.keep()
	} else if err := l.commit(); err != nil {
		return err
	}
	if l.replica.Applied != nil && l.at.Offset != l.told {
		l.tellGroup(l.replica.Applied(l.at.Offset))
	}
	if l.raw = l.raw[:copy(l.raw, l.raw[l.passed:])]; cap(l.raw) > keepBytes && len(l.raw) < keepBytes/2 {
		l.raw = bytes.Clone(l.raw)
	}
	l.passed = 0
	return nil
}

// take takes one command of the stream.
func (l *Link) take(args [][]byte) error {
	after := l.arrived - int64(l.parser.Ahead())
	alone := !l.inMulti && standsAlone(args[0])
	if alone {
		if err := l.commit(); err != nil {
			return err
		}
	}
	l.after = after
	switch {
	case word(args[0], "multi"):
		l.inMulti = true
	case word(args[0], "exec"):
		l.inMulti = false
	case word(args[0], "ping"):
	case word(args[0], "select") && len(args) == 2:
		n, err := strconv.Atoi(string(args[1]))
		if err != nil {
			return errors.New("the master selected no database")
		}
		l.database = n
	case word(args[0], "replconf"): // it asks for an acknowledgement
		if err := l.commit(); err != nil {
			return err
		}
		l.acknowledge()
		if l.replica.Pinged != nil && len(args) == 3 && !l.inMulti {
			l.tellGroup(l.replica.Pinged(string(args[2]), l.at.Offset))
		}
	default:
		l.pending = append(l.pending, Command{l.database, slices.Clone(args)})
		for _, arg := range args {
			l.size += len(arg)
		}
	}
	if l.inMulti && len(l.raw)-l.passed-l.parser.Ahead() > l.mostTransaction { // whatever is in it: nothing of it can be passed on before its end
		return errors.New("a transaction of the master is larger than 1 GiB")
	}
	if alone || !l.inMulti && (len(l.pending) >= maxCommands || l.size >= maxBytes) {
		return l.commit()
	}
	return nil
}

// standsAlone reports whether a command is a commit by itself, because that is cheaper than as a part of one.
func standsAlone(name []byte) bool {
	return word(name, "flushall") || word(name, "flushdb") || word(name, "swapdb")
}

// commit applies what is pending. Where there are no commands, as after a PING, the store does not note the position: after a
// crash that is received again.
func (l *Link) commit() error {
	received := l.raw[l.passed : len(l.raw)-int(l.arrived-l.after)]
	if l.inMulti || len(received) == 0 {
		return nil
	}
	after := Origin{ReplID: l.at.ReplID, Offset: l.after, Database: l.database}
	if err := l.replica.Apply(l.pending, received, after); err != nil {
		return err
	}
	clear(l.pending)
	l.pending, l.kept, l.size = l.pending[:0], 0, 0
	if cap(l.pending) > keepCommands {
		l.pending = nil
	}
	l.at, l.passed = after, l.passed+len(received)
	return nil
}

// keep copies the arguments of a transaction that has not ended: those of the parser are valid until more is fed.
func (l *Link) keep() {
	for _, c := range l.pending[l.kept:] {
		for i := range c.Args {
			c.Args[i] = bytes.Clone(c.Args[i])
		}
	}
	l.kept = len(l.pending)
}
