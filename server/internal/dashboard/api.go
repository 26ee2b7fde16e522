package dashboard

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stavedb/stave/internal/resp"
)

// What one request shows at most.
const (
	maxKeys     = 100  // keys that a page of the browser has
	maxSteps    = 50   // steps of SCAN for it, where a pattern matches few
	scanCount   = 1000 // COUNT of a step
	maxElements = 100  // elements of a collection
	maxText     = 4096 // bytes of a string
	maxSlow     = 20   // slow commands
	maxClients  = 200
	sample      = 400 // keys drawn to find the shares of the types
)

// text is what JSON shows of a name or a value: bytes that are no text as Redis quotes them.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(resp.AppendQuoted(nil, b))
}

// errNotAllKeys is what a user gets who may read some keys only.
const errNotAllKeys = resp.ServerError("NOPERM a backup has all keys, and this user may not read them all")

// isForbidden reports whether the user may not do that, perhaps with this key only.
func isForbidden(err error) bool {
	var e resp.ServerError
	return errors.As(err, &e) && e.Code() == "NOPERM"
}

// segments is the log.
func (b Backend) segments(ctx context.Context, c Client, _ *http.Request) (any, error) {
	if _, err := do(ctx, c, "INFO", "storage"); err != nil {
		return nil, err
	}
	return map[string]any{"segments": b.Segments()}, nil
}

// slowLog is the slowest commands of late, as SLOWLOG GET has them.
func slowLog(ctx context.Context, c Client, _ *http.Request) (any, error) {
	r, err := do(ctx, c, "SLOWLOG", "GET", strconv.Itoa(maxSlow))
	if err != nil {
		return nil, err
	}
	type entry struct {
		At      int64    `json:"at"`     // seconds since 1970
		Micros  int64    `json:"micros"` // that it took
		Args    []string `json:"args"`
		Address string   `json:"address"`
		Name    string   `json:"name"`
	}
	list := []entry{}
	for _, item := range r.Items {
		if len(item.Items) < 6 {
			return nil, errors.New("SLOWLOG GET: an entry of fewer than six parts")
		}
		e := entry{At: item.Items[1].Int, Micros: item.Items[2].Int, Address: item.Items[4].String(), Name: item.Items[5].String()}
		for _, arg := range item.Items[3].Items {
			e.Args = append(e.Args, text(arg.Text))
		}
		list = append(list, e)
	}
	return list, nil
}

// replication is the fields of INFO replication.
func replication(ctx context.Context, c Client, _ *http.Request) (any, error) {
	r, err := do(ctx, c, "INFO", "replication")
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(r.Text)) {
		if name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); found {
			fields[name] = text([]byte(value))
		}
	}
	return fields, nil
}

// clients is CLIENT LIST.
func clients(ctx context.Context, c Client, _ *http.Request) (any, error) {
	r, err := do(ctx, c, "CLIENT", "LIST")
	if err != nil {
		return nil, err
	}
	list := []map[string]string{}
	total := 0
	for line := range strings.Lines(string(r.Text)) {
		if total++; len(list) == maxClients {
			continue
		}
		one := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			if name, value, found := strings.Cut(word, "="); found && slices.Contains([]string{"id", "addr", "name", "age", "idle", "flags", "db", "cmd", "user", "tot-mem"}, name) {
				one[name] = value
			}
		}
		list = append(list, one)
	}
	return map[string]any{"clients": list, "total": total}, nil
}

// selectDB makes the client see the database that a request names.
func selectDB(ctx context.Context, c Client, r *http.Request) error {
	if db := r.URL.Query().Get("db"); db != "" && db != "0" {
		_, err := do(ctx, c, "SELECT", db)
		return err
	}
	return nil
}

// types is how many keys of a database are of which type: all of them if they are few, and otherwise of keys drawn at random.
func types(ctx context.Context, c Client, r *http.Request) (any, error) {
	if err := selectDB(ctx, c, r); err != nil {
		return nil, err
	}
	size, err := do(ctx, c, "DBSIZE")
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	seen := 0
	count := func(key string) error {
		if !c.May("TYPE", key) {
			return nil
		}
		t, err := do(ctx, c, "TYPE", key)
		if isForbidden(err) {
			return nil
		}
		if err == nil && t.String() != "none" {
			counts[t.String()]++
			seen++
		}
		return err
	}
	if size.Int <= sample {
		found, _, err := scan(ctx, c, "0", nil, sample+maxKeys)
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			if err := count(key); err != nil {
				return nil, err
			}
		}
	} else {
		for range sample {
			key, err := do(ctx, c, "RANDOMKEY")
			if err == nil && !key.Null {
				err = count(key.String())
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return map[string]any{"keys": size.Int, "seen": seen, "types": counts}, nil
}

// scan walks over keys until there are enough, or for as many steps as one request may take. The cursor that it returns goes on from there.
func scan(ctx context.Context, c Client, cursor string, options []string, enough int) (found []string, next string, err error) {
	count := scanCount
	if len(options) == 0 {
		count = maxKeys
	}
	for range maxSteps {
		r, err := do(ctx, c, append([]string{"SCAN", cursor, "COUNT", strconv.Itoa(count)}, options...)...)
		var e resp.ServerError
		if errors.As(err, &e) && strings.Contains(string(e), "the reply is too large") && count > 1 {
			count = max(1, count/8) // the keys are long
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if len(r.Items) != 2 {
			return nil, "", errors.New("SCAN: a reply that has no two parts")
		}
		for _, key := range r.Items[1].Items {
			found = append(found, key.String())
		}
		if cursor = r.Items[0].String(); cursor == "0" || len(found) >= enough {
			break
		}
	}
	return found, cursor, nil
}

// keys is a page of the browser: ?db=&cursor=&match=&type=.
func keys(ctx context.Context, c Client, r *http.Request) (any, error) {
	if err := selectDB(ctx, c, r); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	cursor := cmp.Or(q.Get("cursor"), "0")
	var options []string
	if match := q.Get("match"); match != "" {
		options = append(options, "MATCH", match)
	}
	if typ := q.Get("type"); typ != "" {
		options = append(options, "TYPE", typ)
	}
	found, next, err := scan(ctx, c, cursor, options, maxKeys)
	if err != nil {
		return nil, err
	}
	type row struct {
		Key   string `json:"key"` // its bytes in base64, for ?key=
		Name  string `json:"name"`
		Type  string `json:"type"`
		TTL   int64  `json:"ttl"`   // milliseconds; -1 for none
		Bytes int64  `json:"bytes"` // MEMORY USAGE
	}
	list := []row{}
	for _, key := range found {
		var figures [3]resp.Reply
		asks := [][]string{{"TYPE", key}, {"PTTL", key}, {"MEMORY", "USAGE", key}}
		if slices.ContainsFunc(asks, func(args []string) bool { return !c.May(args...) }) {
			continue
		}
		for i, args := range asks {
			if figures[i], err = do(ctx, c, args...); err != nil {
				break
			}
		}
		if isForbidden(err) || figures[0].String() == "none" {
			continue // it is not for this user any more, or has gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, row{base64.RawURLEncoding.EncodeToString([]byte(key)), text([]byte(key)), figures[0].String(), figures[1].Int, figures[2].Int})
	}
	return map[string]any{"keys": list, "cursor": next}, nil
}

// value is what the browser shows of a key: the beginning of it.
type value struct {
	Name     string     `json:"name"`
	Type     string     `json:"type"`
	TTL      int64      `json:"ttl"` // milliseconds; -1 for none
	Encoding string     `json:"encoding"`
	Length   int64      `json:"length"` // bytes of a string, elements of others
	Head     []string   `json:"head"`   // of the columns
	Rows     [][]string `json:"rows"`
	More     bool       `json:"more"` // there is more than the rows show
}

// view is how a type is shown.
type view struct {
	length []string
	read   []string // after the key comes the rest
	head   []string
}

var views = map[string]view{
	"string": {[]string{"STRLEN"}, []string{"GETRANGE", "0", strconv.Itoa(maxText - 1)}, []string{"value"}},
	"list":   {[]string{"LLEN"}, []string{"LRANGE", "0", strconv.Itoa(maxElements - 1)}, []string{"element"}},
	"hash":   {[]string{"HLEN"}, []string{"HSCAN", "0", "COUNT", strconv.Itoa(maxElements)}, []string{"field", "value"}},
	"set":    {[]string{"SCARD"}, []string{"SSCAN", "0", "COUNT", strconv.Itoa(maxElements)}, []string{"member"}},
	"zset":   {[]string{"ZCARD"}, []string{"ZRANGE", "0", strconv.Itoa(maxElements - 1), "WITHSCORES"}, []string{"member", "score"}},
	"stream": {[]string{"XLEN"}, []string{"XREVRANGE", "+", "-", "COUNT", strconv.Itoa(maxElements)}, []string{"id", "fields"}},
}

// key shows one key: ?db=&key=, the key in base64.
func key(ctx context.Context, c Client, r *http.Request) (any, error) {
	raw, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("key"))
	if err != nil {
		return nil, badRequest("?key= is a key's bytes in base64, as RFC 4648 has it for URLs, without padding")
	}
	if err := selectDB(ctx, c, r); err != nil {
		return nil, err
	}
	name := string(raw)
	typ, err := do(ctx, c, "TYPE", name)
	if err != nil {
		return nil, err
	}
	v := value{Name: text(raw), Type: typ.String(), Rows: [][]string{}}
	how, known := views[v.Type]
	if !known {
		return v, nil // none: it has gone
	}
	v.Head = how.head
	var length, ttl, encoding, content resp.Reply
	for _, ask := range []struct {
		args  []string
		reply *resp.Reply
	}{
		{append(slices.Clone(how.length), name), &length}, {[]string{"PTTL", name}, &ttl}, {[]string{"OBJECT", "ENCODING", name}, &encoding},
		{slices.Concat(how.read[:1], []string{name}, how.read[1:]), &content},
	} {
		if *ask.reply, err = do(ctx, c, ask.args...); err != nil {
			return nil, err
		}
	}
	v.Length, v.TTL, v.Encoding = length.Int, ttl.Int, encoding.String()
	v.Rows = rows(v.Type, content)
	if v.Type == "string" {
		v.More = v.Length > maxText
	} else {
		v.More = v.Length > int64(len(v.Rows))
	}
	return v, nil
}

// rows are the rows that a reply to a view's command has.
func rows(typ string, r resp.Reply) (list [][]string) {
	if r.Kind == resp.BulkString {
		return [][]string{{text(r.Text)}}
	}
	items, columns := r.Items, 1
	switch typ {
	case "hash", "set":
		items = r.Items[1].Items // behind the cursor
		if typ == "hash" {
			columns = 2
		}
	case "zset":
		columns = 2
	case "stream":
		for _, entry := range items {
			var fields []string
			for i := 0; i+1 < len(entry.Items[1].Items); i += 2 {
				fields = append(fields, text(entry.Items[1].Items[i].Text)+" = "+text(entry.Items[1].Items[i+1].Text))
			}
			list = append(list, []string{entry.Items[0].String(), strings.Join(fields, ", ")})
		}
		return list
	}
	for part := range slices.Chunk(items, columns) {
		row := make([]string, 0, columns)
		for _, one := range part {
			row = append(row, text(one.Text))
		}
		if list = append(list, row); len(list) == maxElements {
			break
		}
	}
	return list
}
