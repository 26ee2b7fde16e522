package server_test

import (
	"fmt"
)

// databases are those that the generator selects.
var databases = []string{"0", "1", "15"}

// readers are the commands that read all that a key of a type holds.
var readers = map[string][][]string{
	"string": {{"get"}, {"strlen"}},
	"hash":   {{"hgetall"}, {"hlen"}},
	"list":   {{"lrange", "0", "-1"}, {"llen"}},
	"set":    {{"smembers"}, {"scard"}},
	"stream": {{"xrange", "-", "+"}, {"xlen"}},
	"zset":   {{"zrange", "0", "-1", "withscores"}, {"zcard"}},
}

// sameState compares everything the two servers hold.
func (p *pair) sameState() string {
	compared, outcomes := p.compared, p.outcomes
	p.outcomes = map[string]*outcome{}
	defer func() { p.compared, p.outcomes = compared, outcomes }() // these are not random
	if d := p.run([]string{"reset"}); d != "" {
		return d
	}
	for _, database := range databases {
		for _, args := range [][]string{{"select", database}, {"dbsize"}, {"keys", "*"}} {
			if d := p.run(args); d != "" {
				return fmt.Sprintf("in the end, in database %s: %s", database, d)
			}
		}
		keys, err := p.redis.do([]string{"keys", "*"})
		if err != nil {
			return err.Error()
		}
		if d := p.sameKeys(texts(keys)); d != "" {
			return fmt.Sprintf("in the end, in database %s: %s", database, d)
		}
	}
	return ""
}

// sameKeys compares what keys hold.
func (p *pair) sameKeys(keys []string) string {
	var questions [][]string
	for _, key := range keys {
		questions = append(questions, []string{"type", key}, []string{"pexpiretime", key})
	}
	_, types, err := p.both(questions)
	if err != nil {
		return err.Error()
	}
	for i, key := range keys {
		for _, reader := range readers[types[2*i].String()] {
			questions = append(questions, join(reader[0], key, reader[1:]))
		}
		if types[2*i].String() == "stream" {
			questions = append(questions, fullStream(key))
		}
	}
	ours, theirs, err := p.both(questions)
	if err != nil {
		return err.Error()
	}
	for i, args := range questions {
		if d := diff(comparedName(args), ours[i], theirs[i]); d != "" {
			return fmt.Sprintf("%q: %s", args, d)
		}
	}
	return ""
}
