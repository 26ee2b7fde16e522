package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server"
)

const outOfMemory = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

// infoField is a field of INFO.
func infoField(v *server.Server, section, name string) string {
	_, after, _ := strings.Cut(v.Info(section), "\r\n"+name+":")
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

// TestEvictForWriters: a server with a bound and a policy takes writes for ever, and says what it evicts.
func TestEvictForWriters(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, nil)
	s, listener := v.NewSession(), v.NewSession()
	ask(s, "CONFIG SET notify-keyspace-events Ee\r\n")
	ask(listener, "SUBSCRIBE __keyevent@0__:evicted\r\n")
	ask(s, "CONFIG SET maxmemory 10000 maxmemory-policy allkeys-lru\r\n")
	for i := range 5000 {
		if got := ask(s, fmt.Sprintf("SET key:%d v\r\n", i)); got != "+OK\r\n" {
			t.Fatalf("key %d: %q", i, got)
		}
	}
	if n := store.Len(); n > 501 || n < 450 {
		t.Errorf("%d keys in 10000 bytes", n)
	}
	// What is too much after the last SET goes by itself.
	for end := time.Now().Add(10 * time.Second); (store.Len() > 500 || infoField(v, "all", "evicted_keys") != fmt.Sprint(5000-store.Len())) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	evicted := fmt.Sprint(5000 - store.Len())
	for name, want := range map[string]string{"evicted_keys": evicted, "maxmemory_policy": "allkeys-lru", "maxmemory": "10000", "maxmemory_counted": fmt.Sprint(20 * store.Len())} {
		if got := infoField(v, "all", name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	metrics := v.Metrics()
	for _, line := range []string{`maxmemory_policy="allkeys-lru"`, "\nredis_evicted_keys_total " + evicted + "\n", fmt.Sprintf("\nstave_maxmemory_counted_bytes %d\n", 20*store.Len())} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %q in the metrics", line)
		}
	}
	listener.Feed(nil)
	if told := strings.Count(string(listener.Output()), "__keyevent@0__:evicted\r\n$"); fmt.Sprint(told) != evicted {
		t.Errorf("%d notifications of %s evictions", told, evicted)
	}
}

// TestEvictProtects: what the policy protects stays, and where nothing else is left, commands that may add data are
// refused, and no others, in EXEC and scripts as well; within these nothing is evicted.
func TestEvictProtects(t *testing.T) {
	store := openStore(t)
	s := newSession(t, store, nil)
	for i := range 100 {
		ask(s, fmt.Sprintf("SET key:%d v\r\n", i))
	}
	for _, tt := range [][2]string{
		{"CONFIG SET maxmemory 2100 maxmemory-policy volatile-lru", "+OK\r\n"},
		{"SET a 1 EX 100", "+OK\r\n"}, // 2112 bytes
		{"SET b 1 EX 100", "+OK\r\n"}, // without a
		{"EXISTS a b key:1", ":2\r\n"},
		{"CONFIG SET maxmemory 1000", "+OK\r\n"},
		{"EXISTS b", ":0\r\n"}, // soon
		{"SET c 1", outOfMemory},
		{"GET key:1", "$1\r\nv\r\n"},
		{"OBJECT FREQ key:1", "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n"},
		{"OBJECT IDLETIME key:1", ":0\r\n"},
		{"MULTI", "+OK\r\n"},
		{"SET c 1", outOfMemory},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{`EVAL "return redis.pcall('set', KEYS[1], 'x').err" 1 c`, "$" + fmt.Sprint(len(outOfMemory)-3) + "\r\n" + outOfMemory[1:]},
		{"DEL key:2", ":1\r\n"},
		{"CONFIG SET maxmemory-policy noeviction", "+OK\r\n"},
		{"SET c 1", outOfMemory},
		{"CONFIG SET maxmemory 2100 maxmemory-policy allkeys-lfu", "+OK\r\n"},
		{"MULTI", "+OK\r\n"},
		{"SET c 1", "+QUEUED\r\n"},
		{"SET d 1 EX 100", "+QUEUED\r\n"},
		{"SET e 1 EX 100", "+QUEUED\r\n"}, // 2224 bytes
		{"DBSIZE", "+QUEUED\r\n"},
		{"EXEC", "*4\r\n+OK\r\n+OK\r\n+OK\r\n:102\r\n"},
		{"SET c 2", "+OK\r\n"},
		{"OBJECT IDLETIME c", "-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n"},
		{"OBJECT FREQ none", "$-1\r\n"},
		{"GET c", "$1\r\n2\r\n"},
		{"OBJECT FREQ c", ":1\r\n"},
		{"CONFIG SET maxmemory-policy allkeys-random", "+OK\r\n"},
		{"CONFIG SET maxmemory 1", "+OK\r\n"},
		{`EVAL "for i = 1, 50 do redis.call('set', KEYS[1] .. i, 'x') end return #redis.call('keys', 'x*')" 1 x`, ":50\r\n"},
		{"FLUSHALL", "+OK\r\n"},
		{"SET last 1", "+OK\r\n"},
		{"SET last 2", "+OK\r\n"},
		{"DBSIZE", ":1\r\n"},
	} {
		got := ask(s, tt[0]+"\r\n")
		for end := time.Now().Add(10 * time.Second); tt[0] == "EXISTS b" && got != tt[1] && time.Now().Before(end); got = ask(s, "EXISTS b\r\n") {
			time.Sleep(time.Millisecond)
		}
		if got != tt[1] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
		}
	}
}

// TestEvictOfTheProgram: what the program has said that opened the store holds, but for what a client sets.
func TestEvictOfTheProgram(t *testing.T) {
	store := openStore(t)
	if err := store.SetEvict(db.Evict{Policy: db.EvictAllKeysRandom, Memory: 4000}); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, store, nil)
	for _, tt := range [][2]string{
		{"CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$4\r\n4000\r\n"},
		{"CONFIG GET maxmemory-policy", "*2\r\n$16\r\nmaxmemory-policy\r\n$14\r\nallkeys-random\r\n"},
		{"CONFIG SET maxmemory 2000", "+OK\r\n"},
		{"CONFIG GET maxmemory-policy", "*2\r\n$16\r\nmaxmemory-policy\r\n$14\r\nallkeys-random\r\n"},
	} {
		if got := ask(s, tt[0]+"\r\n"); got != tt[1] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
		}
	}
	if got := store.Evict(); got != (db.Evict{Policy: db.EvictAllKeysRandom, Memory: 2000}) {
		t.Errorf("%+v", got)
	}
}

// TestEvictFromFile: the configuration of a cache, as people publish it, is accepted, says in one line what the bound is of,
// and evicts: by the size of the directory as well, unless the file has a bound for that.
func TestEvictFromFile(t *testing.T) {
	for text, want := range map[string]struct {
		said string
		disk int64
	}{
		"maxmemory 2gb\nmaxmemory-policy allkeys-lru\nmaxmemory-samples 5\n":                 {"stave.conf:1: maxmemory 2147483648 bounds the index in memory, about 20 bytes a key, and the directory", 2 << 30},
		"save \"\"\nappendonly no\nmaxmemory-policy volatile-ttl\nmaxmemory 100mb\nport 0\n": {"stave.conf:4: maxmemory 104857600 bounds the index in memory, about 20 bytes a key, and the directory", 100 << 20},
		"maxmemory 2gb\nmaxmemory-policy allkeys-lru\nmaxdisk 100gb\n":                       {"stave.conf:1: maxmemory 2147483648 bounds the index in memory, about 20 bytes a key: ", 100 << 30},
		"maxmemory 2gb\nmaxmemory-policy allkeys-lru\nmaxdisk 0\n":                           {"stave.conf:1: maxmemory 2147483648 bounds the index in memory, about 20 bytes a key: ", 0},
		"maxmemory 10mb\nmaxmemory-policy volatile-lru\n":                                    {"stave.conf:1: maxmemory 10485760 bounds the index in memory, about 20 bytes a key: ", 0},
		"maxmemory 2gb\n":                {"", 0},
		"maxmemory-policy allkeys-lru\n": {"", 0},
	} {
		c, _, warnings, err := load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, warning := range warnings {
			if strings.Contains(warning, " bounds the index") {
				said++
				if want.said == "" || !strings.Contains(warning, want.said) {
					t.Errorf("%q: %q", text, warning)
				}
			}
		}
		if said > 1 || said == 0 && want.said != "" {
			t.Errorf("%q: %q", text, warnings)
		}
		store := openStore(t)
		newServer(t, store, &server.Options{Config: c})
		if e := store.Evict(); strings.Contains(text, "2gb") != (e.Memory == 2<<30) || strings.Contains(text, "allkeys") != (e.Policy == db.EvictAllKeysLRU) || e.Disk != want.disk {
			t.Errorf("%q: %+v", text, e)
		}
	}
}

// TestMaxDisk: a server with maxdisk refuses what adds data where no policy evicts, in EXEC and scripts as well, and says so; with one
// it takes writes for ever, and INFO and the metrics have the figures.
func TestMaxDisk(t *testing.T) {
	const bound, size = 16 << 20, 40_000
	store, err := db.Open(t.TempDir(), &db.Options{Sync: db.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // what counts has been checked
	v := newServer(t, store, nil)
	s := v.NewSession()
	value := strings.Repeat("v", size)
	set := func(i int) string { return ask(s, requestOf("SET", fmt.Sprint("key:", i), value)) }
	if got := ask(s, "CONFIG SET maxdisk 1000\r\n"); got != "-ERR CONFIG SET failed (possibly related to argument 'maxdisk') - argument must be 0, or at least 16777216\r\n" {
		t.Errorf("%q", got)
	}
	if got := ask(s, "CONFIG SET maxdisk 16mb\r\n"); got != "+OK\r\n" {
		t.Fatalf("%q", got)
	}
	n := 0
	for ; n < 2*bound/size; n++ {
		if got := set(n); got == outOfDisk {
			break
		} else if got != "+OK\r\n" {
			t.Fatalf("key %d: %q", n, got)
		}
	}
	if n < bound*3/4/size || n > bound/size {
		t.Errorf("%d keys of %d bytes", n, size)
	}
	for refused := 0; refused < 100; time.Sleep(time.Millisecond) { // merges that were running may have found something
		if refused++; set(n) != outOfDisk {
			n, refused = n+1, 0
		}
	}
	for _, tt := range [][2]string{
		{"MULTI", "+OK\r\n"},
		{requestOf("SET", "c", value), outOfDisk},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{requestOf("EVAL", "return redis.pcall('set', KEYS[1], ARGV[1]).err", "1", "c", value), "$" + fmt.Sprint(len(outOfDisk)-3) + "\r\n" + outOfDisk[1:]},
		{"DEL key:0", ":1\r\n"},
		{"CONFIG SET maxmemory-policy allkeys-lru", "+OK\r\n"},
		{"CONFIG GET maxdisk", "*2\r\n$7\r\nmaxdisk\r\n$8\r\n16777216\r\n"},
	} {
		if got := ask(s, strings.TrimSuffix(tt[0], "\r\n")+"\r\n"); got != tt[1] {
			t.Errorf("%.40s: %q, want %q", tt[0], got, tt[1])
		}
	}
	for begin := time.Now(); set(0) == outOfDisk; time.Sleep(time.Millisecond) { // until it is evicted
		if time.Since(begin) > time.Minute {
			t.Fatal("nothing is evicted")
		}
	}
	for i := range 2 * bound / size {
		if got := set(i); got != "+OK\r\n" {
			t.Fatalf("key %d: %q", i, got)
		}
	}
	if infoField(v, "all", "evicted_keys") == "0" || infoField(v, "all", "maxdisk") != "16777216" || infoField(v, "all", "maxdisk_bound") != "16777216" || infoField(v, "all", "maxdisk_used") == "0" {
		t.Errorf("%s", v.Info("all"))
	}
	for _, line := range []string{"\nstave_maxdisk_bytes 1.6777216e+07\n", "\nstave_maxdisk_used_bytes 1", "\nstave_maxdisk_live_bytes "} {
		if !strings.Contains(v.Metrics(), line) {
			t.Errorf("no %q in the metrics", line)
		}
	}
}

const outOfDisk = "-OOM command not allowed when used disk > 'maxdisk'. Delete keys, raise maxdisk, or set a maxmemory-policy that evicts.\r\n"
