package settings

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// kind is what values a directive takes.
type kind struct {
	text string // for the documentation
	// Check returns a value as CONFIG GET shows it, or what is wrong with it, in Redis's words where it has
	// the case. before is the present value, for what changes a part of it only.
	Check func(text, before string) (canonical string, err error)
}

// yesNo takes yes and no.
func yesNo() kind {
	return kind{"yes or no", func(text, _ string) (string, error) {
		if lower := strings.ToLower(text); lower == "yes" || lower == "no" {
			return lower, nil
		}
		return "", command.Error("argument must be 'yes' or 'no'")
	}}
}

// between takes integers within bounds.
func between(least, most int64) kind {
	bounds := strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10)
	if most >= math.MaxInt32 {
		bounds = "integer of at least " + strconv.FormatInt(least, 10)
	}
	return kind{bounds, func(text, _ string) (string, error) {
		n, ok := number.ParseInt([]byte(text))
		switch {
		case !ok:
			return "", command.Error("argument couldn't be parsed into an integer")
		case n < least || n > most:
			return "", command.Errorf("argument must be between %d and %d inclusive", least, most)
		}
		return strconv.FormatInt(n, 10), nil
	}}
}

// bytesFrom takes numbers of bytes of at least so many, with Redis's units.
func bytesFrom(least int64) kind { return bytesBetween(least, math.MaxInt64) }

// bytesBetween takes numbers of bytes within bounds.
func bytesBetween(least, most int64) kind {
	return kind{"bytes, with a unit such as 100mb", func(text, _ string) (string, error) {
		n, err := ParseMemory(text)
		switch {
		case err != nil:
			return "", err
		case n < least || n > most:
			return "", command.Errorf("argument must be between %d and %d inclusive", least, most)
		}
		return strconv.FormatInt(n, 10), nil
	}}
}

// bytesOrNone takes 0, or a number of bytes from least on.
func bytesOrNone(least int64) kind {
	return kind{"bytes, with a unit such as 100mb, or 0", func(text, _ string) (string, error) {
		n, err := ParseMemory(text)
		switch {
		case err != nil:
			return "", err
		case n != 0 && n < least:
			return "", command.Errorf("argument must be 0, or at least %d", least)
		}
		return strconv.FormatInt(n, 10), nil
	}}
}

// bytesOrPercent takes numbers of bytes, or a percentage.
func bytesOrPercent() kind {
	return kind{"bytes, or a percentage", func(text, _ string) (string, error) {
		digits, percent := strings.CutSuffix(text, "%")
		n, err := ParseMemory(digits)
		switch {
		case err != nil || percent && strings.Trim(digits, "0123456789") != "":
			return "", command.Error("argument must be a memory or percent value")
		case percent && n > 100:
			return "", command.Error("percentage argument must be less or equal to 100")
		case percent:
			return strconv.FormatInt(n, 10) + "%", nil
		}
		return strconv.FormatInt(n, 10), nil
	}}
}

// oneOf takes one of several words.
func oneOf(words ...string) kind {
	return kind{strings.Join(words, ", "), func(text, _ string) (string, error) {
		if i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, text) }); i >= 0 {
			return words[i], nil
		}
		return "", command.Errorf("argument(s) must be one of the following: %s", strings.Join(words, ", "))
	}}
}

// someOf takes several of these words.
func someOf(words ...string) kind {
	one := oneOf(words...)
	return kind{"some of " + strings.Join(words, ", "), func(text, _ string) (string, error) {
		fields := strings.Fields(text)
		for i, field := range fields {
			var err error
			if fields[i], err = one.Check(field, ""); err != nil {
				return "", err
			}
		}
		if len(fields) == 0 {
			return one.Check(text, "")
		}
		return strings.Join(fields, " "), nil
	}}
}

// words takes any words of one line, and puts a blank between them, as a file does.
func words() kind {
	return kind{"text", func(text, before string) (string, error) {
		text, err := anyText().Check(text, before)
		return strings.Join(strings.Fields(text), " "), err
	}}
}

// master takes the address of a master, HOST PORT or HOST:PORT; "no one" is none, as in the command.
func master() kind {
	return kind{"HOST PORT or no one", func(text, before string) (string, error) {
		text, err := words().Check(text, before)
		if err != nil {
			return "", err
		}
		host, port, err := ParseMaster(text)
		if host == "" {
			return "", err
		}
		return host + " " + strconv.Itoa(port), err
	}}
}

// ParseMaster reads the value of replicaof, "HOST PORT" or HOST:PORT; "" and "no one" are no master, which has no host.
func ParseMaster(value string) (host string, port int, err error) {
	words := strings.Fields(value)
	if len(words) == 1 {
		if host, text, err := net.SplitHostPort(words[0]); err == nil {
			words = []string{host, text}
		}
	}
	if len(words) == 0 || strings.EqualFold(strings.Join(words, " "), "no one") {
		return "", 0, nil
	}
	if len(words) == 2 {
		port, err = strconv.Atoi(words[1])
	}
	if len(words) != 2 || err != nil || words[0] == "" || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not HOST PORT", value)
	}
	return words[0], port, nil
}

// logFile takes a path; stdout, in files of Redis 2.6 and older, is none.
func logFile() kind {
	return kind{"text", func(text, before string) (string, error) {
		if text == "stdout" {
			text = ""
		}
		return anyText().Check(text, before)
	}}
}

// anyText takes any text of one line.
func anyText() kind {
	return kind{"text", func(text, _ string) (string, error) {
		if strings.ContainsAny(text, "\r\n\x00") {
			return "", command.Error("argument must be one line")
		}
		return text, nil
	}}
}

// octal takes the permissions of a file.
func octal() kind {
	return kind{"octal permissions", func(text, _ string) (string, error) {
		n, err := strconv.ParseUint(text, 8, 32)
		if err != nil || n > 0o777 {
			return "", command.Error("argument must be an octal number up to 777")
		}
		return strconv.FormatUint(n, 8), nil
	}}
}

// ParseMemory reads a number of bytes with Redis's units: 1k is 1000, 1kb is 1024. The units are
// those of redis.conf, in any case.
func ParseMemory(text string) (int64, error) {
	lower := strings.ToLower(text)
	digits := strings.TrimRight(lower, "bkmg")
	factor, known := map[string]int64{
		"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
	}[lower[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, command.Error("argument must be a memory value")
	}
	return n * factor, nil
}

// savePoints takes pairs of seconds and changes, or nothing.
func savePoints() kind {
	return kind{"pairs of seconds and changes", func(text, _ string) (string, error) {
		fields := strings.Fields(text)
		if len(fields)%2 != 0 {
			return "", command.Error("Invalid save parameters")
		}
		for i, field := range fields {
			if n, err := strconv.ParseInt(field, 10, 32); err != nil || n < int64(1-i%2) {
				return "", command.Error("Invalid save parameters")
			}
		}
		return strings.Join(fields, " "), nil
	}}
}

// percentages takes numbers from 0 to 100.
func percentages() kind {
	return kind{"percentiles", func(text, _ string) (string, error) {
		fields := strings.Fields(text)
		for i, field := range fields {
			p, err := strconv.ParseFloat(field, 64)
			switch {
			case err != nil || math.IsNaN(p):
				return "", command.Error("Invalid latency-tracking-info-percentiles parameters")
			case p < 0 || p > 100:
				return "", command.Error("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
			}
			fields[i] = strconv.FormatFloat(p, 'f', -1, 64)
		}
		return strings.Join(fields, " "), nil
	}}
}

// bufferLimits takes groups of a class, a hard limit, a soft one and its seconds. Classes that are not named
// keep theirs.
func bufferLimits() kind {
	classes := []string{"normal", "slave", "pubsub"}
	return kind{"class, hard limit, soft limit, seconds", func(text, before string) (string, error) {
		limits := strings.Fields(before)
		fields := strings.Fields(text)
		if len(fields) == 0 || len(fields)%4 != 0 {
			return "", command.Error("Wrong number of arguments in buffer limit configuration.")
		}
		for ; len(fields) > 0; fields = fields[4:] {
			class := strings.ToLower(fields[0])
			if class == "replica" {
				class = "slave"
			}
			at := 4 * slices.Index(classes, class)
			if at < 0 {
				return "", command.Error("Invalid client class specified in buffer limit configuration.")
			}
			hard, err := ParseMemory(fields[1])
			soft, err2 := ParseMemory(fields[2])
			seconds, err3 := strconv.ParseInt(fields[3], 10, 32)
			if err != nil || err2 != nil || err3 != nil || seconds < 0 {
				return "", command.Error("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
			}
			limits[at+1], limits[at+2] = strconv.FormatInt(hard, 10), strconv.FormatInt(soft, 10)
			limits[at+3] = strconv.FormatInt(seconds, 10)
		}
		return strings.Join(limits, " "), nil
	}}
}

// eventFlags takes the letters of notify-keyspace-events.
func eventFlags() kind {
	return kind{"letters of event classes", func(text, _ string) (string, error) {
		flags, err := ParseEvents(text)
		return flags.setting(), err
	}}
}
