package server_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stavedb/stave/server"
)

// trackingScripts are conversations as scripts has them, in which id:a stands for the number of a connection. After
// what must not be reported there is a PING: its reply comes next.
var trackingScripts = map[string]string{
	"default mode": `
		a: HELLO3
		a: SET k 1
		a: CLIENT TRACKING on
		a: GET k
		b: SET k 2
		a: <
		b: SET k 3
		a: PING
		a: GET k
		a: SET k 4
		a: <
		a: MGET k none k
		b: SET none x
		a: <
		b: DEL k none
		a: <
		a: PING
		a: SMEMBERS s
		a: EXISTS s
		a: TTL s
		a: TYPE s
		b: SADD s m
		a: <
		a: PING
		a: INCR n
		b: INCR n
		a: PING
		a: CLIENT TRACKING off
		a: GET k
		b: SET k 5
		a: PING`,
	"what is no change": `
		a: HELLO3
		b: SET k v
		b: RPUSH l a
		b: HSET h f v
		a: CLIENT TRACKING on
		a: GET k
		a: LRANGE l 0 -1
		a: HGETALL h
		b: SETNX k w
		b: LREM l 0 none
		b: HDEL h none
		b: DEL none
		b: EXPIRE none 100
		b: PERSIST k
		b: LPUSHX none x
		a: PING
		b: EXPIRE k 100
		a: <
		b: LTRIM l 0 -1
		a: <
		b: HSET h f v
		a: <
		a: PING`,
	"keys of several databases": `
		a: HELLO3
		a: CLIENT TRACKING on
		a: GET k
		b: SELECT 1
		b: SET k v
		a: <
		b: SET k w
		a: PING`,
	"commands of several keys": `
		a: HELLO3
		b: RPUSH l a b c
		b: SET k v
		b: SADD s1 a b
		a: CLIENT TRACKING on
		a: EXISTS l2 l3 k k2 s2 s3
		b: LMOVE l l2 LEFT RIGHT
		a: <
		b: COPY l l3
		a: <
		b: SUNIONSTORE s2 s1
		a: <
		b: SORT l ALPHA STORE s3
		a: <
		a: PING`,
	"rename": `
		a: HELLO3
		b: SET k v
		a: CLIENT TRACKING on bcast
		b: RENAME k k2
		a: <
		a: PING`,
	"noloop": `
		a: HELLO3
		a: CLIENT TRACKING on NOLOOP
		a: CLIENT TRACKINGINFO
		a: GET k
		a: SET k 1
		a: PING
		b: SET k 2
		a: PING
		a: GET k
		b: SET k 3
		a: <
		a: PING`,
	"opt in": `
		a: HELLO3
		a: CLIENT TRACKING on OPTIN
		a: GET k
		b: SET k 1
		a: PING
		a: CLIENT CACHING yes
		a: CLIENT TRACKINGINFO
		a: CLIENT INFO x
		a: GET k
		b: SET k 2
		a: <
		a: CLIENT CACHING yes
		a: PING
		a: GET k
		b: SET k 3
		a: PING
		a: CLIENT CACHING yes
		a: NOPE
		a: CLIENT TRACKINGINFO
		a: CLIENT CACHING yes
		a: MULTI
		a: GET k
		a: GET k2
		a: EXEC
		a: GET k3
		b: SET k3 1
		b: SET k 1
		a: <
		b: SET k2 1
		a: <
		a: PING
		a: CLIENT CACHING no
		a: CLIENT CACHING x`,
	"opt in, pipelined": `
		a: HELLO3
		a: CLIENT TRACKING on OPTIN
		a: *GET k1 | CLIENT CACHING yes | MULTI | PTTL k | GET k | EXEC | GET k2
		b: SET k1 1
		b: SET k2 1
		b: SET k 1
		a: <
		a: PING
		a: *CLIENT CACHING yes | GET k | GET k1
		b: SET k1 2
		b: SET k 2
		a: <
		a: PING`,
	"opt out": `
		a: HELLO3
		a: CLIENT TRACKING on OPTOUT
		a: CLIENT CACHING no
		a: CLIENT TRACKINGINFO
		a: GET k
		b: SET k 1
		a: PING
		a: GET k
		b: SET k 2
		a: <
		a: CLIENT CACHING yes
		a: PING`,
	"broadcast": `
		a: HELLO3
		a: CLIENT TRACKING on BCAST
		a: CLIENT TRACKINGINFO
		b: SET k 1
		a: <
		a: SET k 2
		a: <
		b: MSET z 1 y 2 x 3
		a: <
		b: DEL none
		a: PING
		b: MULTI
		b: SET k 1
		b: SET j 1
		b: SET k 1
		b: EXEC
		a: <
		a: PING`,
	"broadcast of prefixes": `
		a: HELLO3
		c: HELLO3
		a: CLIENT TRACKING on BCAST PREFIX user: PREFIX obj
		a: CLIENT TRACKINGINFO
		c: CLIENT TRACKING on BCAST NOLOOP PREFIX user:1
		b: MSET user:1 a user:2 b obj c other d us e
		a: <
		a: <
		c: <
		c: MSET user:1 a user:2 b
		a: <
		c: PING
		a: CLIENT TRACKING on BCAST PREFIX x
		a: CLIENT TRACKINGINFO
		a: CLIENT TRACKING on BCAST PREFIX user
		a: CLIENT TRACKING on BCAST PREFIX y PREFIX z PREFIX ya
		a: CLIENT TRACKING on PREFIX y
		a: CLIENT TRACKING on
		a: CLIENT TRACKING off
		a: CLIENT TRACKINGINFO
		b: SET obj 1
		a: PING`,
	"redirect": `
		b: SUBSCRIBE __redis__:invalidate
		a: CLIENT TRACKING on REDIRECT id:b
		a: GET k
		a: GET k2
		c: SET k 1
		b: <
		a: SET k2 1
		b: <
		b: PING
		a: FLUSHDB
		b: <
		b: PING
		d: HELLO3
		a: CLIENT TRACKING on REDIRECT id:d
		a: GET k
		c: SET k 2
		d: <
		e: SET x y
		a: CLIENT TRACKING on REDIRECT id:e
		a: GET k
		c: SET k 3
		e: PING
		a: CLIENT TRACKING off
		a: CLIENT GETREDIR`,
	"broken redirect": `
		a: HELLO3
		b: HELLO3
		a: CLIENT TRACKING on REDIRECT id:b BCAST
		c: SET k 1
		b: <
		b: QUIT
		sleep: sleep
		c: SET k 2
		a: <
		a: CLIENT TRACKING on BCAST
		a: CLIENT TRACKINGINFO
		c: SET k 3
		a: <
		a: PING`,
	"flush": `
		a: HELLO3
		b: HELLO3
		a: CLIENT TRACKING on
		b: CLIENT TRACKING on BCAST NOLOOP
		c: SET k 1
		b: <
		a: GET k
		c: FLUSHALL
		a: <
		b: <
		c: SET k 1
		b: <
		a: PING
		a: FLUSHDB
		a: <
		b: <
		a: PING
		b: PING`,
	"expiry": `
		a: HELLO3
		b: HELLO3
		a: CLIENT TRACKING on
		b: CLIENT TRACKING on BCAST
		c: SET k v PX 1000
		b: <
		a: GET k
		a: <
		b: <
		a: GET k
		c: SET k v
		a: <
		b: <
		a: PING`,
	"transactions": `
		a: HELLO3
		a: CLIENT TRACKING on
		a: GET k
		a: MULTI
		a: SET k 1
		a: GET k
		a: GET k2
		a: EXEC
		a: <
		a: PING
		b: SET k 2
		a: <
		b: MULTI
		b: SET k2 1
		b: SET k2 2
		a: PING
		b: EXEC
		a: <
		a: PING
		a: WATCH w
		b: SET w 1
		a: PING
		a: UNWATCH`,
	"waiting": `
		a: HELLO3
		b: HELLO3
		a: CLIENT TRACKING on
		a: LLEN l
		a: ~BLPOP l2 0
		b: RPUSH l x
		a: <
		b: RPUSH l2 y
		a: <
		a: PING`,
	"states": `
		a: CLIENT GETREDIR
		a: CLIENT TRACKINGINFO
		a: CLIENT CACHING yes
		a: CLIENT TRACKING on
		a: CLIENT GETREDIR
		a: CLIENT TRACKINGINFO
		a: CLIENT CACHING yes
		a: CLIENT CACHING no
		a: GET k
		b: SET k 1
		a: PING
		a: HELLO3
		a: CLIENT TRACKINGINFO
		a: GET k
		b: SET k 2
		a: <
		a: GET k
		a: HELLO2
		b: SET k 3
		a: PING
		a: HELLO3
		a: GET k
		a: RESET
		a: CLIENT TRACKINGINFO
		a: HELLO3
		b: SET k 4
		a: PING
		a: CLIENT TRACKING on OPTIN NOLOOP
		a: CLIENT TRACKING on OPTOUT
		a: CLIENT TRACKING on NOLOOP
		a: CLIENT TRACKINGINFO
		a: CLIENT TRACKING on BCAST`,
	"refusals": `
		a: CLIENT TRACKING
		a: CLIENT TRACKING x
		a: CLIENT TRACKING on NOPE
		a: CLIENT TRACKING off NOPE
		a: CLIENT TRACKING on REDIRECT
		a: CLIENT TRACKING on REDIRECT x
		a: CLIENT TRACKING on REDIRECT 999999
		a: CLIENT TRACKING on REDIRECT id:b REDIRECT id:b
		a: CLIENT TRACKING on PREFIX
		a: CLIENT TRACKING on PREFIX a
		a: CLIENT TRACKING on OPTIN OPTOUT
		a: CLIENT TRACKING on BCAST OPTIN
		a: CLIENT TRACKING on BCAST OPTOUT
		a: CLIENT TRACKING on BCAST PREFIX ab PREFIX a
		a: CLIENT TRACKING off PREFIX a REDIRECT id:b
		a: CLIENT TRACKINGINFO x
		a: CLIENT CACHING
		a: CLIENT CACHING x
		a: CLIENT GETREDIR x
		a: CLIENT TRACKINGINFO`,
	"table": `
		a: HELLO3
		a: CONFIG SET tracking-table-max-keys 2
		a: CLIENT TRACKING on
		a: MGET k1 k2
		b: CONFIG SET tracking-table-max-keys 1
		b: PING
		a: <
		a: CLIENT TRACKING off
		a: CONFIG SET tracking-table-max-keys 1000000
		a: CONFIG GET tracking-table-max-keys`,
}

// In some conversations replies have what differs: numbers of connections, which key is evicted.
func TestTrackingAgreesWithRedis(t *testing.T) {
	agreeWithRedis(t, trackingScripts, regexp.MustCompile(`(redir-broken").*|(invalidate" \*)\[\$"k[12]"\]`))
}

// TestTrackingOfScripts: what a script reads is tracked, and not what it declares, as from Redis 7.2 on.
func TestTrackingOfScripts(t *testing.T) {
	const script = `
		a: HELLO3
		a: CLIENT TRACKING on
		a: EVAL return{redis.call('get',KEYS[1]),redis.call('set',KEYS[2],'x')} 2 k k2
		b: SET k2 1
		b: SET k 1
		a: <
		a: EVAL_RO return{redis.call('get',KEYS[1])} 2 k k2
		b: SET k2 1
		b: SET k 1
		a: <
		a: GET k
		a: EVAL redis.call('set',KEYS[1],'x')return(redis.call('get',KEYS[1])) 1 k
		a: <
		b: SET k 2
		a: <
		a: PING`
	want := []string{
		`a: CLIENT TRACKING on: +"OK"`, `a: EVAL return{redis.call('get',KEYS[1]),redis.call('set',KEYS[2],'x')} 2 k k2: *[_null +"OK"]`, `b: SET k2 1: +"OK"`,
		`b: SET k 1: +"OK"`, `a: <: >[$"invalidate" *[$"k"]]`, `a: EVAL_RO return{redis.call('get',KEYS[1])} 2 k k2: *[$"1"]`, `b: SET k2 1: +"OK"`,
		`b: SET k 1: +"OK"`, `a: <: >[$"invalidate" *[$"k"]]`, `a: GET k: $"1"`,
		`a: EVAL redis.call('set',KEYS[1],'x')return(redis.call('get',KEYS[1])) 1 k: $"x"`, `a: <: >[$"invalidate" *[$"k"]]`, `b: SET k 2: +"OK"`,
		`a: <: >[$"invalidate" *[$"k"]]`, `a: PING: +"PONG"`,
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		if got := talk(t, serveUnix(t, transport), script); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	})
}
